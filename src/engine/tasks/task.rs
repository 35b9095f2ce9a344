//! The units of background work.

use crate::engine::backoff::TaskKind;
use crate::engine::compact::compaction::Compaction;
use crate::engine::control::{Control, TombstoneFlush};
use crate::filter::FilterSpec;
use crate::id::FileId;
use crate::manifest::SegmentMeta;
use crate::memtable::Memtable;
use crate::sync::Instant;
use std::sync::Arc;

/// A unit of background work. Variants are in order of urgency.
pub(super) enum BackgroundTask {
    UnmapCold,
    RemoveLeftovers,
    FreeMemtables,
    QueueBadSidecars,
    QueueMissingSidecars,
    QueueSuspects,
    Flush(Arc<Memtable>, FileId),
    /// Hands a memtable with many tombstones over to a flush.
    RotateTombstones,
    /// Checks a segment's sidecar, and has others read ahead.
    CheckSidecar(Arc<SegmentMeta>, Vec<Arc<SegmentMeta>>),
    WarmIndex(Arc<SegmentMeta>),
    Compact(Compaction),
    Retune(Arc<SegmentMeta>, FilterSpec),
}

impl BackgroundTask {
    /// The kind whose retries its outcome counts for; `None` if it cannot fail.
    pub fn kind(&self) -> Option<TaskKind> {
        match self {
            BackgroundTask::UnmapCold
            | BackgroundTask::RemoveLeftovers
            | BackgroundTask::FreeMemtables
            | BackgroundTask::QueueBadSidecars
            | BackgroundTask::QueueMissingSidecars
            | BackgroundTask::QueueSuspects => None,
            BackgroundTask::Flush(..) | BackgroundTask::RotateTombstones => Some(TaskKind::Flush),
            BackgroundTask::Compact(_) => Some(TaskKind::Compaction),
            BackgroundTask::CheckSidecar(..) | BackgroundTask::WarmIndex(_) | BackgroundTask::Retune(..) => {
                Some(TaskKind::Sidecars)
            }
        }
    }

    /// Drops what a finished task worked on. That may remove files, so it happens before waiters learn that
    /// the task has ended.
    pub fn let_go(&mut self) {
        if let BackgroundTask::Compact(compaction) = self {
            compaction.let_go();
        }
    }

    /// Clears the marks that `next_task` set. If the task must run `again` and nothing else would remember
    /// it, queues it. The caller drops the task without the lock: that may free a memtable.
    pub fn hand_back(&self, control: &mut Control, failed: bool, again: bool) {
        match self {
            BackgroundTask::Flush(table, next_log) => {
                control.flushes.running = None;
                if failed {
                    control.flushes.waiting.push_front((Arc::clone(table), *next_log));
                }
            }
            BackgroundTask::RotateTombstones if control.flushes.tombstones == TombstoneFlush::Starting => {
                control.flushes.tombstones =
                    if again { TombstoneFlush::Due(Instant::now()) } else { TombstoneFlush::NotNeeded };
            }
            // Due again: the next memtable has many, too, or the log was locked.
            BackgroundTask::RotateTombstones => {}
            BackgroundTask::RemoveLeftovers | BackgroundTask::FreeMemtables => {}
            BackgroundTask::QueueBadSidecars
            | BackgroundTask::QueueMissingSidecars
            | BackgroundTask::QueueSuspects => {}
            BackgroundTask::UnmapCold => {
                control.sidecars.unmap_from.get_or_insert_with(Instant::now);
            }
            BackgroundTask::CheckSidecar(meta, _) => {
                control.sidecars.checking = false;
                if again {
                    control.sidecars.to_check.push(Arc::clone(meta));
                }
                if !failed {
                    control.sidecars.indexes_to_warm.push(Arc::clone(meta));
                }
            }
            BackgroundTask::WarmIndex(meta) => {
                control.sidecars.checking = false;
                if again {
                    control.sidecars.indexes_to_warm.push(Arc::clone(meta));
                }
            }
            BackgroundTask::Retune(..) => control.sidecars.checking = false,
            BackgroundTask::Compact(compaction) => {
                control.compactions.running.retain(|running| running != compaction.reservation());
            }
        }
    }
}

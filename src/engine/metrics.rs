//! The counters behind [`Stats`](crate::Stats).

use crate::engine::backoff::TaskKind;
use crate::engine::read::counts::{FilterCounts, ShownAnswers};
use crate::event::WriteStall;
use crate::shards::Shards;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

impl WriteStall {
    pub(crate) fn of(kind: TaskKind) -> Option<Self> {
        match kind {
            TaskKind::Flush => Some(WriteStall::Flush),
            TaskKind::Compaction => Some(WriteStall::Compaction),
            TaskKind::Sidecars => None,
        }
    }

    /// Not 0.
    pub(crate) fn to_metric(self) -> u64 {
        match self {
            WriteStall::Flush => 1,
            WriteStall::Compaction => 2,
        }
    }

    pub(crate) fn of_metric(metric: u64) -> Option<Self> {
        [WriteStall::Flush, WriteStall::Compaction].into_iter().find(|stall| stall.to_metric() == metric)
    }
}

#[derive(Default)]
pub(crate) struct Metrics {
    pub filters: Shards<Arc<FilterCounts>>,
    /// What of them was shown.
    pub shown_answers: ShownAnswers,
    /// Sidecars found unusable since the store was opened.
    pub filters_unavailable: AtomicU64,
    /// Keys and values passed to `write`, as encoded.
    pub user_bytes: AtomicU64,
    pub log_bytes: AtomicU64,
    pub flush_bytes: AtomicU64,
    pub compaction_bytes: AtomicU64,
    pub compaction_read_bytes: AtomicU64,
    pub filter_bytes: AtomicU64,
    pub flushes: AtomicU64,
    pub compactions: AtomicU64,
    pub compactions_running: AtomicU64,
    /// Time that compactions waited for their rate.
    pub compaction_throttled_micros: AtomicU64,
    pub filters_rebuilt: AtomicU64,
    /// Failed attempts at background work that is tried again.
    pub background_failures: AtomicU64,
    pub stalls: AtomicU64,
    pub stall_micros: AtomicU64,
    /// What a writer waits for now, encoded by [`WriteStall::to_metric`].
    pub write_stall: AtomicU64,
    /// Attempts that failed for lack of file descriptors.
    pub descriptor_waits: AtomicU64,
    /// Attempts that failed for lack of disk space.
    pub shortages: AtomicU64,
}

/// Counted in a gauge of running work until it is dropped.
pub(crate) struct Running<'a>(&'a AtomicU64);

impl<'a> Running<'a> {
    pub fn begin(gauge: &'a AtomicU64) -> Self {
        gauge.fetch_add(1, Relaxed);
        Running(gauge)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

//! The state that background threads, writers and waiters share, under one short lock.

use crate::engine::compact::reservation::Reservation;
use crate::engine::filters::queue::SidecarQueue;
use crate::engine::retry::{Retries, TaskKind};
use crate::engine::tasks::id_queue::IdQueue;
use crate::id::FileId;
use crate::live::LiveSegment;
use crate::manifest::LogMark;
use crate::memtable::Memtable;
use crate::sync::Instant;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A store is idle once no memtable has filled up for this long.
const IDLE_AFTER: Duration = Duration::from_secs(5);

/// Whether the active memtable is to be flushed because of its tombstones, once the store is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TombstoneFlush {
    #[default]
    NotNeeded,
    /// From this time on.
    Due(Instant),
    /// A thread is about to hand it over.
    Starting,
}

/// The state of the background work.
pub(crate) struct Control {
    /// Memtables to flush, oldest first, each with the first log that is still needed after its flush.
    pub to_flush: VecDeque<(Arc<Memtable>, FileId)>,
    /// While a memtable is being flushed: the first log that is still needed after it.
    pub flushing: Option<FileId>,
    pub tombstone_flush: TombstoneFlush,
    /// Logs of this open below this number hold nothing that segments do not have.
    pub log_floor: FileId,
    /// How much of the logs this process has synced.
    pub synced: Option<LogMark>,
    /// When a memtable last filled up. While writes come in, work that can wait is postponed.
    pub last_full: Option<Instant>,
    /// Threads in `wait_for_compaction`. While there are any, the store counts as idle.
    pub compaction_waiters: usize,
    /// What the running compactions own.
    pub running: Vec<Reservation>,
    /// How many of them are steps of manual compactions, which use no background thread.
    pub manual: usize,
    /// Tasks that have ended, of background threads and others.
    pub finished: u64,
    /// Segments whose sidecars wait to be verified or rebuilt.
    pub sidecars_to_check: SidecarQueue,
    pub checking_sidecars: bool,
    /// Segments whose index partitions wait to be read.
    pub indexes_to_warm: IdQueue,
    /// When cold sidecars may next be unmapped; `None` while a thread does so.
    pub unmap_from: Option<Instant>,
    /// Faults in maps ([`sigbus_faults`](crate::fs::sigbus_faults)) that were handled already.
    pub faults_seen: usize,
    /// When segments without a sidecar are next checked, and the last wait before that.
    pub missing_sidecars_due: Option<Instant>,
    pub missing_sidecars_wait: Duration,
    /// When segments in quarantine are next read, and the last wait before that.
    pub suspects_due: Option<Instant>,
    pub suspects_wait: Duration,
    pub suspects_to_try: IdQueue,
    pub flush_retries: Retries,
    pub compaction_retries: Retries,
    pub sidecar_retries: Retries,
    /// Segments of a failed manifest edit. The edit may have reached the disk, so their files stay until the manifest is rewritten.
    pub doubtful: Vec<LiveSegment>,
    /// Memtables that a follower no longer needs.
    pub retired: Vec<Arc<Memtable>>,
    pub closing: bool,
}

impl Control {
    pub fn new(log_floor: FileId) -> Self {
        Control {
            to_flush: VecDeque::new(),
            flushing: None,
            tombstone_flush: TombstoneFlush::default(),
            log_floor,
            synced: None,
            last_full: None,
            compaction_waiters: 0,
            running: Vec::new(),
            manual: 0,
            finished: 0,
            sidecars_to_check: SidecarQueue::default(),
            checking_sidecars: false,
            indexes_to_warm: IdQueue::default(),
            unmap_from: Some(Instant::now()),
            faults_seen: 0,
            missing_sidecars_due: None,
            missing_sidecars_wait: Duration::ZERO,
            suspects_due: None,
            suspects_wait: Duration::ZERO,
            suspects_to_try: IdQueue::default(),
            flush_retries: Retries::default(),
            compaction_retries: Retries::default(),
            sidecar_retries: Retries::default(),
            doubtful: Vec::new(),
            retired: Vec::new(),
            closing: false,
        }
    }

    pub fn retries(&mut self, kind: TaskKind) -> &mut Retries {
        match kind {
            TaskKind::Flush => &mut self.flush_retries,
            TaskKind::Compaction => &mut self.compaction_retries,
            TaskKind::Sidecars => &mut self.sidecar_retries,
        }
    }

    /// How long until segments without a sidecar are checked again, if that is planned.
    pub fn until_missing_sidecars(&self) -> Option<Duration> {
        self.missing_sidecars_due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// How long until the segments in quarantine are read again, if that is planned.
    pub fn until_suspects(&self) -> Option<Duration> {
        self.suspects_due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// How long until the active memtable is to be flushed because of its tombstones, if that is planned.
    pub fn until_tombstone_flush(&self, now: Instant) -> Option<Duration> {
        let TombstoneFlush::Due(from) = self.tombstone_flush else { return None };
        let pause = from.saturating_duration_since(now).max(self.flush_retries.pause(now));
        Some(pause.max(self.until_idle()))
    }

    /// How long until the store counts as idle; zero if it does.
    pub fn until_idle(&self) -> Duration {
        let since = self.last_full.map_or(IDLE_AFTER, |full| full.elapsed());
        if self.compaction_waiters > 0 { Duration::ZERO } else { IDLE_AFTER.saturating_sub(since) }
    }
}

//! The state shared by background threads, writers and waiters, under one short lock.

use super::backoff::{Backoff, Retries, TaskKind};
use super::compact::rate_bucket::RateBucket;
use super::compact::reservation::Reservation;
use super::filters::sidecar_queue::SidecarQueue;
use super::tasks::queue::Queue;
use crate::id::FileId;
use crate::live::LiveSegment;
use crate::manifest::{LogMark, SegmentMeta};
use crate::memtable::Memtable;
use crate::sync::Instant;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A store is idle once no memtable has filled up for this long.
const IDLE_AFTER: Duration = Duration::from_secs(5);

/// The pauses between checks of segments without a sidecar.
const MISSING_SIDECARS: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(60));

/// The pauses between reads of quarantined segments.
const SUSPECTS: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(3600));

/// The state of the background work.
pub(crate) struct Control {
    pub flushes: Flushes,
    pub logs: Logs,
    pub compactions: Compactions,
    pub sidecars: SidecarWork,
    pub suspects: Suspects,
    pub workers: Workers,
    pub idleness: Idleness,
    /// Tasks that have ended, in background threads and elsewhere.
    pub finished: u64,
    /// Segments of a failed manifest edit. The edit may have reached the disk, so their files stay until the
    /// manifest is rewritten.
    pub doubtful: Vec<LiveSegment>,
    /// Memtables that a follower no longer needs.
    pub retired: Vec<Arc<Memtable>>,
    pub closing: bool,
}

/// Memtables to flush.
#[derive(Default)]
pub(crate) struct Flushes {
    /// Oldest first, each with the first log still needed after its flush.
    pub waiting: VecDeque<(Arc<Memtable>, FileId)>,
    /// During a flush: the first log still needed after it.
    pub running: Option<FileId>,
    pub tombstones: TombstoneFlush,
    pub retries: Retries,
}

/// Whether to flush the active memtable because of its tombstones, once the store is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TombstoneFlush {
    #[default]
    NotNeeded,
    /// From this time on.
    Due(Instant),
    /// A thread is about to hand it over.
    Starting,
}

/// What of the logs is in segments, and what is durable.
pub(crate) struct Logs {
    /// Logs of this open below this number hold only what segments have.
    pub floor: FileId,
    /// How much of them this process has synced.
    pub synced: Option<LogMark>,
}

/// What the running compactions own.
pub(crate) struct Compactions {
    pub running: Vec<Reservation>,
    /// How many of them use no background thread: steps of manual compactions, and ingests.
    pub manual: usize,
    pub retries: Retries,
    /// What they may read and write now.
    pub rate: RateBucket,
}

/// The background threads, by number.
#[derive(Default)]
pub(crate) struct Workers {
    pub running: Vec<usize>,
    /// Those that have ended because there were too many, and are not joined yet.
    pub ended: Vec<usize>,
}

/// Sidecars to verify, rebuild and unmap, and indexes to read.
pub(crate) struct SidecarWork {
    /// Segments whose sidecars wait to be verified or rebuilt.
    pub to_check: SidecarQueue<Arc<SegmentMeta>>,
    /// Segments whose index partitions wait to be read.
    pub indexes_to_warm: Queue<Arc<SegmentMeta>>,
    /// Whether a thread works on one of these.
    pub checking: bool,
    /// When to check next for segments without a sidecar.
    pub missing: Backoff,
    /// When cold sidecars may next be unmapped; `None` while a thread does so.
    pub unmap_from: Option<Instant>,
    /// Mapping faults ([`sigbus_faults`](crate::fs::sigbus_faults)) already handled.
    pub faults_seen: usize,
    pub retries: Retries,
}

/// Segments in quarantine.
pub(crate) struct Suspects {
    /// Those to read.
    pub to_try: Queue<Arc<SegmentMeta>>,
    /// When to queue all of them next.
    pub next: Backoff,
}

/// Whether the store is idle. Work that can wait is postponed while writes come in.
#[derive(Default)]
pub(crate) struct Idleness {
    /// When a memtable last filled up.
    pub last_full: Option<Instant>,
    /// Threads in `wait_for_compaction`. While there are any, the store counts as idle.
    pub waiters: usize,
}

impl Control {
    /// Nothing to do. `floor` is the number before this open's first log; `compaction_rate` is in bytes per
    /// second, 0 if unlimited.
    pub fn new(floor: FileId, compaction_rate: u64) -> Self {
        Control {
            flushes: Flushes::default(),
            logs: Logs { floor, synced: None },
            compactions: Compactions {
                running: Vec::new(),
                manual: 0,
                retries: Retries::default(),
                rate: RateBucket::new(compaction_rate, Instant::now()),
            },
            sidecars: SidecarWork {
                to_check: SidecarQueue::default(),
                indexes_to_warm: Queue::default(),
                checking: false,
                missing: MISSING_SIDECARS,
                unmap_from: Some(Instant::now()),
                faults_seen: 0,
                retries: Retries::default(),
            },
            suspects: Suspects { to_try: Queue::default(), next: SUSPECTS },
            workers: Workers::default(),
            idleness: Idleness::default(),
            finished: 0,
            doubtful: Vec::new(),
            retired: Vec::new(),
            closing: false,
        }
    }

    pub fn retries(&mut self, kind: TaskKind) -> &mut Retries {
        match kind {
            TaskKind::Flush => &mut self.flushes.retries,
            TaskKind::Compaction => &mut self.compactions.retries,
            TaskKind::Sidecars => &mut self.sidecars.retries,
        }
    }

    /// How long until the active memtable is flushed because of its tombstones, if planned.
    pub fn until_tombstone_flush(&self, now: Instant) -> Option<Duration> {
        let TombstoneFlush::Due(from) = self.flushes.tombstones else { return None };
        let pause = from.saturating_duration_since(now).max(self.flushes.retries.pause(now));
        Some(pause.max(self.idleness.until_idle()))
    }
}

impl Flushes {
    /// The number of full memtables that wait or are being flushed.
    pub fn memtables(&self) -> usize {
        self.waiting.len() + usize::from(self.running.is_some())
    }

    /// The first logs still needed after each pending flush.
    pub fn next_logs(&self) -> impl Iterator<Item = FileId> {
        self.waiting.iter().map(|(_, next)| *next).chain(self.running)
    }
}

impl Workers {
    /// Whether one of them shall end, so that only `wanted` are left. As long as others run `compactions`,
    /// one stays free for flushing.
    pub fn may_end(&self, wanted: usize, compactions: usize) -> bool {
        self.running.len() > wanted && compactions + 1 < self.running.len()
    }

    /// The number of a new one.
    pub fn begin(&mut self) -> usize {
        let is_free = |number: &usize| !self.running.contains(number);
        let number = (0..).find(is_free).unwrap_or(self.running.len());
        self.running.push(number);
        number
    }

    /// It never started.
    pub fn forget(&mut self, number: usize) {
        self.running.retain(|running| *running != number);
    }

    /// It does no more work.
    pub fn end(&mut self, number: usize) {
        self.forget(number);
        self.ended.push(number);
    }
}

impl Compactions {
    /// Reserves what a compaction needs, unless a running one is in the way.
    pub fn reserve(&mut self, wanted: &Reservation) -> bool {
        let is_free = wanted.is_free(&self.running);
        self.running.extend(is_free.then(|| wanted.clone()));
        is_free
    }

    /// How many of the running ones use a background thread.
    pub fn in_background(&self) -> usize {
        self.running.len().saturating_sub(self.manual)
    }

    /// Whether a segment comes back from quarantine.
    pub fn any_takes_back(&self) -> bool {
        self.running.iter().any(Reservation::takes_back)
    }
}

impl Idleness {
    /// How long until the store counts as idle; zero if it does.
    pub fn until_idle(&self) -> Duration {
        let since = self.last_full.map_or(IDLE_AFTER, |full| full.elapsed());
        if self.waiters > 0 { Duration::ZERO } else { IDLE_AFTER.saturating_sub(since) }
    }
}

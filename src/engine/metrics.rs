//! The counters behind [`Stats`](crate::Stats).

use crate::engine::backoff::TaskKind;
use crate::filter::Verdict;
use crate::live::LevelCounts;
use crate::manifest::LEVELS;
use crate::shards::{OwnShard, Shards};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a write waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteStall {
    /// Two full memtables wait for a flush.
    Flush,
    /// Level 0 has so many segments that a compaction must come first.
    Compaction,
}

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

/// In place of a level: quarantined segments belong to none.
pub(crate) const QUARANTINE: usize = LEVELS;
/// The levels, and quarantine.
const COUNTED: usize = LEVELS + 1;

/// The filter counters of the read path.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct FilterCounts {
    /// Probes of sidecars, by level, except those in `denials`.
    probes: [AtomicU64; COUNTED],
    /// How many of them returned "maybe".
    maybes: [AtomicU64; COUNTED],
    /// How many "maybe"s were wrong: the segment did not have the key.
    false_positives: [AtomicU64; COUNTED],
    /// The latest probes that returned "absent", as [`LevelCounts`].
    denials: AtomicU64,
}

/// The calling thread's filter counters.
pub(crate) type FilterCounters<'m> = OwnShard<'m, FilterCounts>;

impl FilterCounters<'_> {
    /// Counts a probe of a filter in a level or in [`QUARANTINE`].
    pub fn probe(&self, level: usize, verdict: Verdict) {
        self.count(&self.shard.probes, level, 1);
        if verdict == Verdict::Maybe {
            self.count(&self.shard.maybes, level, 1);
        }
    }

    /// Counts that the last "maybe" was wrong.
    pub fn false_positive(&self, level: usize) {
        self.count(&self.shard.false_positives, level, 1);
    }

    /// Counts probes that returned "absent": at most [`LevelCounts::MAX`] in each level.
    #[inline]
    pub fn denials(&self, counts: LevelCounts) {
        let denials = LevelCounts::from_bits(self.shard.denials.load(Relaxed)) + counts;
        if self.is_alone() && !denials.is_full() {
            self.shard.denials.store(denials.to_bits(), Relaxed)
        } else {
            self.spread_denials(counts)
        }
    }

    /// Moves the denials into the counters of their levels. A shared shard keeps none.
    #[cold]
    fn spread_denials(&self, counts: LevelCounts) {
        let before = if self.is_alone() { self.shard.denials.swap(0, Relaxed) } else { 0 };
        let counts = counts + LevelCounts::from_bits(before);
        for level in 0..LEVELS {
            self.count(&self.shard.probes, level, counts.of(level));
        }
    }

    fn count(&self, levels: &[AtomicU64; COUNTED], level: usize, n: u64) {
        if let Some(counter) = levels.get(level) {
            self.add(counter, n);
        }
    }
}

/// The sums of the filter counters, by level, with quarantine last.
#[derive(Default)]
pub(crate) struct FilterSums {
    pub probes: [u64; COUNTED],
    pub maybes: [u64; COUNTED],
    pub false_positives: [u64; COUNTED],
}

#[derive(Default)]
pub(crate) struct Metrics {
    shards: Shards<FilterCounts>,
    /// Sidecars found unusable since the store was opened.
    pub filters_unavailable: AtomicU64,
    /// Keys and values passed to `write`, as encoded.
    pub user_bytes: AtomicU64,
    pub log_bytes: AtomicU64,
    pub flush_bytes: AtomicU64,
    pub compaction_bytes: AtomicU64,
    pub compaction_read_bytes: AtomicU64,
    pub filter_bytes: AtomicU64,
    pub stall_micros: AtomicU64,
    /// What a writer waits for now, encoded by [`WriteStall::to_metric`].
    pub write_stall: AtomicU64,
    /// Attempts that failed for lack of file descriptors.
    pub descriptor_waits: AtomicU64,
    /// Attempts that failed for lack of disk space.
    pub shortages: AtomicU64,
}

impl Metrics {
    /// The calling thread's shard.
    #[inline]
    pub fn filter_counters(&self) -> FilterCounters<'_> {
        self.shards.mine()
    }

    /// The sums of the filter counters over all threads.
    pub fn filter_sums(&self) -> FilterSums {
        let mut sums = FilterSums::default();
        for shard in self.shards.iter() {
            let denials = LevelCounts::from_bits(shard.denials.load(Relaxed));
            for level in 0..COUNTED {
                let denied = if level == QUARANTINE { 0 } else { denials.of(level) };
                sums.probes[level] += shard.probes[level].load(Relaxed) + denied;
                sums.maybes[level] += shard.maybes[level].load(Relaxed);
                sums.false_positives[level] += shard.false_positives[level].load(Relaxed);
            }
        }
        sums
    }
}

/// Adds to a counter.
#[inline]
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Relaxed);
}

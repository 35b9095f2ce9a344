//! The counters behind [`Stats`](crate::Stats).

use super::shards::{OwnShard, Shards};
use crate::manifest::LEVELS;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The filter counters of the read path.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct FilterCounts {
    /// Probes of sidecars, by level.
    pub probes: [AtomicU64; LEVELS],
    /// How many of them returned "maybe".
    pub maybes: [AtomicU64; LEVELS],
    /// How many "maybe"s were wrong: the segment did not have the key.
    pub false_positives: [AtomicU64; LEVELS],
}

/// The calling thread's filter counters.
pub(crate) type FilterCounters<'m> = OwnShard<'m, FilterCounts>;

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

    /// Sums a per-level counter over the shards.
    pub fn sum(&self, counter: impl Fn(&FilterCounts) -> &[AtomicU64; LEVELS]) -> [u64; LEVELS] {
        let mut sums = [0; LEVELS];
        for shard in self.shards.iter() {
            sums.iter_mut().zip(counter(shard)).for_each(|(sum, count)| *sum += count.load(Relaxed));
        }
        sums
    }
}

/// Adds to a counter.
#[inline]
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Relaxed);
}

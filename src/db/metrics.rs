//! Counters of the read and write paths.

use super::shards::{Mine, Shards};
use crate::manifest::LEVELS;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What one get adds up.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct FilterCounts {
    /// Questions answered by a sidecar, by level.
    pub probes: [AtomicU64; LEVELS],
    /// Of these, "maybe".
    pub maybes: [AtomicU64; LEVELS],
    /// Of these, wrongly: the segment did not have the key.
    pub false_positives: [AtomicU64; LEVELS],
}

/// The calling thread's counters.
pub(crate) type FilterCounters<'m> = Mine<'m, FilterCounts>;

#[derive(Default)]
pub(crate) struct Metrics {
    shards: Shards<FilterCounts>,
    /// Sidecars found unusable since the store was opened.
    pub filters_unavailable: AtomicU64,
    /// Keys and values handed to `write`.
    pub user_bytes: AtomicU64,
    pub log_bytes: AtomicU64,
    pub flush_bytes: AtomicU64,
    pub compaction_bytes: AtomicU64,
    pub compaction_read_bytes: AtomicU64,
    pub filter_bytes: AtomicU64,
    pub stall_micros: AtomicU64,
    /// Attempts of the background that found no descriptor.
    pub descriptor_waits: AtomicU64,
    /// Writes and attempts of the background that found no space.
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

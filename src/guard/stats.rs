//! What a guard has saved, and what it takes.

use super::handle::Guard;
use crate::db::Shards;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of the questions.
#[derive(Default)]
pub(super) struct Counters {
    shards: Shards<Shard>,
    pub false_positives: AtomicU64,
    /// Removals of keys that the guard did not have.
    pub unknown_removals: AtomicU64,
    /// Removals that a refresh had perhaps counted already, and that were left out.
    pub doubtful_removals: AtomicU64,
}

#[derive(Default)]
#[repr(align(128))]
struct Shard {
    asked: AtomicU64,
    absent: AtomicU64,
}

impl Counters {
    #[inline]
    pub fn count(&self, asked: u64, absent: u64) {
        let mine = self.shards.mine();
        mine.add(&mine.shard.asked, asked);
        mine.add(&mine.shard.absent, absent);
    }
}

/// Counters since opening, and the guard as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct GuardStats {
    /// Keys asked for.
    pub asked: u64,
    /// Of these, answered "absent": so many calls of the database were saved.
    pub absent: u64,
    /// "Maybe"s that the caller has reported as wrong; see [`Guard::confirm_absent`].
    pub false_positives: u64,
    /// Known false positives that are remembered now.
    pub exceptions: u64,
    /// Removals of keys that the guard did not have.
    pub unknown_removals: u64,
    /// Removals left out because a refresh may have counted them already: keys that stay "maybe" until the next refresh.
    pub doubtful_removals: u64,
    /// Rows of the database.
    pub rows: u64,
    /// Distinct keys among them.
    pub keys: u64,
    /// Segments of keys, each with a filter of its own.
    pub filters: u64,
    /// Memory of the filters, in bytes.
    pub filter_bytes: u64,
    /// Memory of the latest changes, in bytes.
    pub memtable_bytes: u64,
    /// Bytes on disk, filters included.
    pub disk_bytes: u64,
    /// The expected share of missing keys that get a "maybe", 0 to 1; exceptions and the latest changes left aside.
    pub expected_fpr: f64,
    /// Whether every answer is "maybe" for now: see [`Guard::suspend`].
    pub suspended: bool,
    /// Filters that cannot be used until they are rebuilt: their keys are all "maybe" meanwhile.
    pub filters_unavailable: u64,
    /// The number of this generation: refreshes so far, and one.
    pub generation: u64,
}

impl Guard {
    /// Counters since opening, and the guard as it is now.
    pub fn stats(&self) -> GuardStats {
        let shared = self.shared();
        let live = shared.live.load();
        let store = live.db.stats();
        let sum =
            |of: fn(&Shard) -> &AtomicU64| shared.counters.shards.iter().map(|s| of(s).load(Relaxed)).sum();
        let (rows, keys) = live.totals();
        GuardStats {
            asked: sum(|shard| &shard.asked),
            absent: sum(|shard| &shard.absent),
            false_positives: shared.counters.false_positives.load(Relaxed),
            exceptions: live.exceptions() as u64,
            unknown_removals: shared.counters.unknown_removals.load(Relaxed),
            doubtful_removals: shared.counters.doubtful_removals.load(Relaxed),
            rows,
            keys,
            filters: store.levels.iter().map(|level| level.segments as u64).sum(),
            filter_bytes: store.levels.iter().map(|level| level.filter_bytes).sum(),
            memtable_bytes: store.memtable_bytes,
            disk_bytes: store.levels.iter().map(|level| level.data_bytes + level.filter_bytes).sum(),
            expected_fpr: store.expected_false_positives().min(1.0),
            suspended: self.is_suspended(),
            filters_unavailable: store.filters_unavailable,
            generation: live.number,
        }
    }
}

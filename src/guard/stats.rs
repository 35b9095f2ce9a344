//! What a guard saves and costs.

use super::handle::Guard;
use crate::api::Stats;
use std::sync::atomic::Ordering::Relaxed;

/// Counters since opening, and the current state of a guard.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct GuardStats {
    /// Keys looked up.
    pub asked: u64,
    /// Lookups answered "absent": the number of database calls saved.
    pub absent: u64,
    /// "Maybe" answers that the caller reported as wrong; see [`Guard::confirm_absent`].
    pub false_positives: u64,
    /// Known false positives currently remembered.
    pub known_absent: u64,
    /// Removals of keys that the guard did not have.
    pub unknown_removals: u64,
    /// Removals left out because a refresh may already have counted them: they stay "maybe" until the next.
    pub doubtful_removals: u64,
    /// Rows of the database.
    pub rows: u64,
    /// Distinct keys of these rows.
    pub keys: u64,
    /// Segments of keys, each with its own filter.
    pub filters: u64,
    /// Memory of the filters, in bytes.
    pub filter_bytes: u64,
    /// Memory of the latest changes, in bytes.
    pub memtable_bytes: u64,
    /// Bytes on disk, including filters.
    pub disk_bytes: u64,
    /// The expected share of missing keys that get a "maybe", 0 to 1, without known absent keys and the
    /// latest changes.
    pub expected_fpr: f64,
    /// Whether every answer is currently "maybe": see [`Guard::suspend`].
    pub suspended: bool,
    /// Filters that are unusable until rebuilt; until then all their keys are "maybe".
    pub filters_unavailable: u64,
    /// The number of this generation: one more than the refreshes so far.
    pub generation: u64,
}

impl Guard {
    /// The statistics of the store in which the guard has its hashes. They start again with each refresh,
    /// which replaces that store.
    pub fn store_stats(&self) -> Stats {
        self.shared().live.load().db.stats()
    }

    /// Counters since opening, and the current state of the guard.
    pub fn stats(&self) -> GuardStats {
        let shared = self.shared();
        let live = shared.live.load();
        let store = live.db.stats();
        let (rows, keys) = live.totals();
        GuardStats {
            asked: shared.counters.asked(),
            absent: shared.counters.absent(),
            false_positives: shared.counters.false_positives.load(Relaxed),
            known_absent: live.known_absent() as u64,
            unknown_removals: shared.counters.unknown_removals.load(Relaxed),
            doubtful_removals: shared.counters.doubtful_removals.load(Relaxed),
            rows,
            keys,
            filters: store.levels.iter().map(|level| level.segments as u64).sum(),
            filter_bytes: store.levels.iter().map(|level| level.filter_bytes).fold(0, u64::saturating_add),
            memtable_bytes: store.memtable_bytes,
            disk_bytes: store
                .levels
                .iter()
                .map(|level| level.data_bytes.saturating_add(level.filter_bytes))
                .fold(0, u64::saturating_add),
            expected_fpr: store.expected_false_positives().min(1.0),
            suspended: self.is_suspended(),
            filters_unavailable: store.filters_unavailable,
            generation: live.number,
        }
    }
}

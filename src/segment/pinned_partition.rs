//! Index partitions that stay in memory.

use super::cache::BlockCache;
use super::index::Index;
use std::sync::{Arc, OnceLock};

/// An index partition of an open segment, kept in memory once read, so that a point read needs no cache
/// lookup for it. Empty if the budget for pinned partitions was used up by then.
#[derive(Default)]
pub(super) struct PinnedPartition(OnceLock<Arc<Index>>);

impl PinnedPartition {
    /// The partition, if it is pinned.
    #[inline]
    pub fn get(&self) -> Option<&Arc<Index>> {
        self.0.get()
    }

    /// Pins `index` within the budget of `cache`. `false` if the budget is used up.
    pub fn set(&self, cache: &BlockCache, index: &Arc<Index>) -> bool {
        if !cache.pin(index.weight()) {
            return false;
        }
        if self.0.set(Arc::clone(index)).is_err() {
            cache.unpin(index.weight()); // Another thread was first.
        }
        true
    }

    /// Gives the budget back. Only for a segment that is about to be dropped.
    pub fn release(&self, cache: &BlockCache) {
        if let Some(index) = self.0.get() {
            cache.unpin(index.weight());
        }
    }
}

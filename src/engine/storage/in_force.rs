//! The options that may change while a store is open, as they are now. All others stay as the store was
//! opened. The size of the cache is in the cache, the filter policy in the
//! [`FilterKeeper`](crate::engine::filters::FilterKeeper).

use crate::options::{Durability, Options};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What is in force now. A change is for what begins later, so relaxed loads suffice.
pub(crate) struct InForce {
    syncs: AtomicBool,
    background_threads: AtomicUsize,
    compaction_rate: AtomicU64,
}

impl InForce {
    /// As the store is opened.
    pub fn new(options: &Options) -> Self {
        // A store that is only read has little to do in the background.
        let threads = if options.read_only { 1 } else { options.background_threads };
        InForce {
            syncs: AtomicBool::new(options.durability == Durability::Sync),
            background_threads: AtomicUsize::new(threads),
            compaction_rate: AtomicU64::new(options.compaction_bytes_per_second),
        }
    }

    /// When a write is acknowledged that does not say so itself.
    #[inline]
    pub fn durability(&self) -> Durability {
        if self.syncs.load(Relaxed) { Durability::Sync } else { Durability::Os }
    }

    pub fn set_durability(&self, durability: Durability) {
        self.syncs.store(durability == Durability::Sync, Relaxed);
    }

    /// How many background threads there shall be.
    pub fn background_threads(&self) -> usize {
        self.background_threads.load(Relaxed)
    }

    /// Returns the number before.
    pub fn set_background_threads(&self, threads: usize) -> usize {
        self.background_threads.swap(threads, Relaxed)
    }

    /// The most bytes that compactions read and write per second; 0 if unlimited.
    pub fn compaction_rate(&self) -> u64 {
        self.compaction_rate.load(Relaxed)
    }

    pub fn set_compaction_rate(&self, bytes_per_second: u64) {
        self.compaction_rate.store(bytes_per_second, Relaxed);
    }
}

//! What a guard counts while it is open.

use crate::shards::Shards;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters since opening.
#[derive(Default)]
pub(super) struct GuardCounters {
    lookups: Shards<LookupShard>,
    pub false_positives: AtomicU64,
    /// Removals of keys that the guard did not have.
    pub unknown_removals: AtomicU64,
    /// Removals left out because a refresh may already have counted them.
    pub doubtful_removals: AtomicU64,
}

#[derive(Default)]
#[repr(align(128))]
struct LookupShard {
    asked: AtomicU64,
    absent: AtomicU64,
}

impl GuardCounters {
    /// Counts keys looked up, and how many of them were absent.
    #[inline]
    pub fn count_lookups(&self, asked: u64, absent: u64) {
        let mine = self.lookups.mine();
        mine.add(&mine.shard.asked, asked);
        mine.add(&mine.shard.absent, absent);
    }

    pub fn asked(&self) -> u64 {
        self.lookups.iter().map(|shard| shard.asked.load(Relaxed)).sum()
    }

    pub fn absent(&self) -> u64 {
        self.lookups.iter().map(|shard| shard.absent.load(Relaxed)).sum()
    }
}

//! The counters of reads, shared by the segments of a store.

use crate::shards::Shards;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Reads of segments since the store was opened. Opening and verifying a segment do not count.
#[derive(Default)]
pub struct ReadCounters(Shards<ReadsOfThread>);

/// Sums of [`ReadCounters`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// Reads of data and index blocks from the file; a read-ahead of several blocks counts once.
    pub blocks: u64,
    /// Data and index blocks found in the cache.
    pub cache_hits: u64,
    /// Bytes read by `blocks`.
    pub bytes: u64,
}

#[derive(Default)]
#[repr(align(64))]
struct ReadsOfThread {
    blocks: AtomicU64,
    cache_hits: AtomicU64,
    bytes: AtomicU64,
}

impl ReadCounters {
    pub(super) fn read(&self, bytes: usize) {
        let mine = self.0.mine();
        mine.add(&mine.shard.blocks, 1);
        mine.add(&mine.shard.bytes, bytes as u64);
    }

    #[inline]
    pub(super) fn hit(&self) {
        let mine = self.0.mine();
        mine.add(&mine.shard.cache_hits, 1);
    }

    /// What all threads have read.
    pub fn sum(&self) -> Reads {
        self.0.iter().map(ReadsOfThread::load).fold(Reads::default(), |sum, of| Reads {
            blocks: sum.blocks + of.blocks,
            cache_hits: sum.cache_hits + of.cache_hits,
            bytes: sum.bytes + of.bytes,
        })
    }

    /// The reads of the calling thread, and perhaps of others.
    pub fn mine(&self) -> Reads {
        self.0.mine().shard.load()
    }
}

impl ReadsOfThread {
    fn load(&self) -> Reads {
        let [blocks, cache_hits, bytes] =
            [&self.blocks, &self.cache_hits, &self.bytes].map(|n| n.load(Relaxed));
        Reads { blocks, cache_hits, bytes }
    }
}

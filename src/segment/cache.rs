//! The block cache of a store, shared by its segments.

use super::block::Block;
use super::block_hash::BlockHash;
use super::compress::keep_spare;
use super::index::Index;
use crate::fs::Process;
use crate::id::FileId;
use crate::sync::{Mutex, lock};
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, Weighter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Identifies a segment by its number and digest. In a published store that another writer has taken over,
/// two segments have the same number.
pub(super) type SegmentIdentity = (FileId, u64);

/// Decompressed and verified blocks, by segment and offset. Shares a byte budget with indexes and range
/// tombstones outside the cache. One cache serves one store, since file numbers are only unique there.
pub struct BlockCache {
    blocks: Cache<(SegmentIdentity, u64), CachedBlock, BlockWeight, BlockHash, Recycling>,
    /// 0 if the cache is turned off.
    capacity: AtomicU64,
    /// Held by the thread that changes the capacity.
    resizing: Mutex<()>,
    indexes: Mutex<IndexBytes>,
    /// The process whose threads may hold the cache's locks. They may stay locked for good in a forked
    /// process, which therefore does not use the cache.
    process: Process,
}

/// Bytes of indexes and range tombstones outside the cache. Blocks leave these free, up to their share.
#[derive(Default)]
struct IndexBytes {
    /// Of pinned partitions.
    pinned: u64,
    /// Of the top indexes of open segments.
    open: u64,
    /// Of the range tombstones of segments.
    ranges: u64,
}

#[derive(Clone)]
enum CachedBlock {
    Data(Block),
    Index(Arc<Index>),
}

/// Weighs a block by its bytes and the cache's approximate overhead.
#[derive(Clone)]
struct BlockWeight;

/// Keeps the memory of evicted blocks for the next ones.
#[derive(Clone)]
struct Recycling;

/// What an insertion evicted: usually one block or two. Up to four are dropped after the cache is unlocked.
#[derive(Default)]
struct Evicted([Option<CachedBlock>; 4]);

const OVERHEAD_BYTES: usize = 100;
/// Pinned partitions take at most this share of the cache, a quarter. So do top indexes.
const INDEX_SHARE: u64 = 4;
/// The most bytes of pinned partitions when the cache is turned off: as many as with the default size.
/// Without them, each read of a row would read its partition first.
const PINNED_BYTES_WITHOUT_CACHE: u64 = 64 << 20;
/// Range tombstones also take at most a quarter, or this much if it is more: otherwise a lookup that finds a
/// key would have to read them.
const RANGES_BYTES_MIN: u64 = 1 << 20;
/// The top indexes of open segments may take this much at any cache size: enough for 1000 segments of 64 MiB.
const OPEN_BYTES_MIN: u64 = 8 << 20;
/// Assumed block size, to size the cache's tables: the default.
const TYPICAL_BLOCK_BYTES: u64 = 4096;
/// The tables of a cache that is turned off are made for this size, the default, in case it is turned on.
const TYPICAL_CAPACITY: u64 = 256 << 20;
/// A cache shrinks by this many bytes at a time. Lookups wait for one step at most: some 2,000 blocks.
const SHRINK_STEP: u64 = 8 << 20;

impl Weighter<(SegmentIdentity, u64), CachedBlock> for BlockWeight {
    fn weight(&self, _: &(SegmentIdentity, u64), cached: &CachedBlock) -> u64 {
        (OVERHEAD_BYTES + cached.bytes()) as u64
    }
}

impl Lifecycle<(SegmentIdentity, u64), CachedBlock> for Recycling {
    type RequestState = Evicted;

    fn on_evict(&self, evicted: &mut Evicted, _: (SegmentIdentity, u64), cached: CachedBlock) {
        if let Some(free) = evicted.0.iter_mut().find(|cached| cached.is_none()) {
            *free = Some(cached);
        }
    }
}

impl Drop for Evicted {
    fn drop(&mut self) {
        for cached in self.0.iter_mut().filter_map(Option::take) {
            if let CachedBlock::Data(block) = cached {
                keep_spare(block.into_memory());
            }
        }
    }
}

impl CachedBlock {
    fn bytes(&self) -> usize {
        match self {
            CachedBlock::Data(block) => block.bytes(),
            CachedBlock::Index(index) => index.weight(),
        }
    }
}

impl BlockCache {
    /// A cache of `capacity` bytes. A block larger than an eighth of that is never cached, so that one huge
    /// value does not evict everything else.
    pub fn new(capacity: u64) -> Self {
        let typical = if capacity == 0 { TYPICAL_CAPACITY } else { capacity };
        let items = usize::try_from(typical / TYPICAL_BLOCK_BYTES).unwrap_or(usize::MAX).max(1);
        let blocks = Cache::with(items, capacity, BlockWeight, BlockHash, Recycling);
        BlockCache {
            blocks,
            capacity: AtomicU64::new(capacity),
            resizing: Mutex::default(),
            indexes: Mutex::default(),
            process: Process::current(),
        }
    }

    /// The size of the cache, in bytes; 0 if it is turned off.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.capacity.load(Relaxed)
    }

    /// Changes the size of the cache. When this returns, blocks that no longer fit have been evicted; 0 turns
    /// the cache off. Calls from several threads run one after the other. Does nothing in a forked process.
    ///
    /// Indexes and range tombstones stay: [`OpenFiles::set_cache_bytes`](super::OpenFiles::set_cache_bytes)
    /// also gives back what they have too much. The number of locks and the memory for evicted blocks'
    /// hashes are those of the first size, in proportion: a cache that began with a few KiB is slower than
    /// one that had its size from the start.
    pub fn set_capacity(&self, bytes: u64) {
        if !self.is_used() {
            return;
        }
        let _resizing = lock(&self.resizing);
        loop {
            let indexes = lock(&self.indexes);
            let now = self.capacity();
            let next = if bytes < now { bytes.max(now.saturating_sub(SHRINK_STEP)) } else { bytes };
            self.capacity.store(next, Relaxed);
            self.make_room(&indexes);
            if next == bytes {
                break;
            }
        }
        if bytes == 0 {
            self.blocks.clear();
        }
    }

    #[cfg(test)]
    /// The bytes in use.
    pub fn weight(&self) -> u64 {
        let indexes = lock(&self.indexes);
        self.blocks.weight() + indexes.pinned + indexes.ranges
    }

    #[cfg(test)]
    /// The bytes of pinned partitions.
    pub fn pinned(&self) -> u64 {
        lock(&self.indexes).pinned
    }

    #[cfg(test)]
    /// The bytes of the top indexes of open segments.
    pub fn opened(&self) -> u64 {
        lock(&self.indexes).open
    }

    /// The bytes of the indexes that no lookup evicts: top indexes of open segments, and pinned partitions. 0
    /// in a forked process.
    pub fn index_bytes(&self) -> u64 {
        if !self.is_used() {
            return 0;
        }
        let indexes = lock(&self.indexes);
        indexes.open + indexes.pinned
    }

    /// The bytes of cached blocks, with the cache's overhead. 0 in a forked process.
    pub fn cached_bytes(&self) -> u64 {
        if self.is_used() { self.blocks.weight() } else { 0 }
    }

    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.process.is_current()
    }

    /// Whether a sixteenth of the cache is free, so that it can take a block that was requested only once.
    pub(super) fn has_room(&self) -> bool {
        self.capacity() > 0 && self.is_used() && self.blocks.weight() < self.blocks.capacity() / 16 * 15
    }

    /// Bytes that a walk may take even of a full cache.
    pub(super) fn small_part(&self) -> u64 {
        self.capacity() / 64
    }

    /// What pinned partitions may take, and top indexes as well.
    fn index_share(&self) -> u64 {
        self.capacity() / INDEX_SHARE
    }

    /// The most bytes of pinned partitions.
    fn pinned_max(&self) -> u64 {
        if self.capacity() == 0 { PINNED_BYTES_WITHOUT_CACHE } else { self.index_share() }
    }

    /// A larger block is not cached.
    fn largest_block(&self) -> usize {
        usize::try_from(self.capacity() / 8).unwrap_or(usize::MAX)
    }

    /// Leaves room in the cache for the indexes. A cache that is turned off keeps no block anyway; its tables
    /// keep their size for the case that it is turned on again.
    fn make_room(&self, indexes: &IndexBytes) {
        let capacity = self.capacity();
        if capacity == 0 {
            return;
        }
        let shares = [indexes.open, indexes.ranges].map(|bytes| bytes.min(self.index_share()));
        let taken = shares.iter().fold(indexes.pinned, |sum, bytes| sum.saturating_add(*bytes));
        self.blocks.set_capacity(capacity.saturating_sub(taken));
    }

    /// Sets how many bytes range tombstones take now.
    pub(super) fn set_ranges(&self, bytes: u64) {
        let mut indexes = lock(&self.indexes);
        indexes.ranges = bytes;
        self.make_room(&indexes);
    }

    /// The most bytes of range tombstones.
    pub(super) fn ranges_max(&self) -> u64 {
        self.index_share().max(RANGES_BYTES_MIN)
    }

    /// Takes `bytes` of the budget for a partition outside the cache; `false` if less is left.
    pub(super) fn pin(&self, bytes: usize) -> bool {
        if !self.is_used() {
            return false;
        }
        let mut indexes = lock(&self.indexes);
        let fits = indexes.pinned.saturating_add(bytes as u64) <= self.pinned_max();
        if fits {
            indexes.pinned += bytes as u64;
            self.make_room(&indexes);
        }
        fits
    }

    /// Gives back what [`pin`](Self::pin) took.
    pub(super) fn unpin(&self, bytes: usize) {
        if !self.is_used() {
            return;
        }
        let mut indexes = lock(&self.indexes);
        indexes.pinned = indexes.pinned.saturating_sub(bytes as u64);
        self.make_room(&indexes);
    }

    /// Counts the top index of an opened segment.
    pub(super) fn open(&self, bytes: usize) {
        if !self.is_used() {
            return;
        }
        let mut indexes = lock(&self.indexes);
        indexes.open = indexes.open.saturating_add(bytes as u64);
        self.make_room(&indexes);
    }

    /// No longer counts it.
    pub(super) fn close(&self, bytes: usize) {
        if !self.is_used() {
            return;
        }
        let mut indexes = lock(&self.indexes);
        indexes.open = indexes.open.saturating_sub(bytes as u64);
        self.make_room(&indexes);
    }

    /// Whether the top indexes of open segments exceed their share, so that some segments should be closed.
    pub(super) fn is_overdrawn(&self) -> bool {
        self.is_used() && lock(&self.indexes).open > self.index_share().max(OPEN_BYTES_MIN)
    }

    /// Whether pinned partitions exceed their share, as they may after the cache has shrunk.
    pub(super) fn pins_too_much(&self) -> bool {
        self.is_used() && lock(&self.indexes).pinned > self.pinned_max()
    }

    /// A data block. `used` makes its use count for eviction.
    #[inline]
    pub(super) fn data(&self, of: SegmentIdentity, offset: u64, used: bool) -> Option<Block> {
        if !self.is_used() {
            return None;
        }
        let key = (of, offset);
        match if used { self.blocks.get(&key) } else { self.blocks.peek(&key) } {
            Some(CachedBlock::Data(block)) => Some(block),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn index(&self, of: SegmentIdentity, offset: u64) -> Option<Arc<Index>> {
        if !self.is_used() {
            return None;
        }
        match self.blocks.get(&(of, offset)) {
            Some(CachedBlock::Index(index)) => Some(index),
            _ => None,
        }
    }

    pub(super) fn keep_data(&self, of: SegmentIdentity, offset: u64, block: &Block) {
        self.keep(of, offset, CachedBlock::Data(block.clone()));
    }

    pub(super) fn keep_index(&self, of: SegmentIdentity, offset: u64, index: &Arc<Index>) {
        self.keep(of, offset, CachedBlock::Index(index.clone()));
    }

    fn keep(&self, of: SegmentIdentity, offset: u64, cached: CachedBlock) {
        let (key, bytes) = ((of, offset), cached.bytes());
        if bytes <= self.largest_block() && self.is_used() {
            self.blocks.insert(key, cached);
            if bytes > self.largest_block() {
                self.blocks.remove(&key); // The cache was turned off, or has shrunk, just before.
            }
        }
    }
}

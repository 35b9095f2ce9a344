//! The block cache of a store, shared by its segments, and the counters of reads.

use super::block::Block;
use super::compress::keep_spare;
use super::index::Index;
use crate::fs::Process;
use crate::id::FileId;
use crate::shards::Shards;
use crate::sync::{Mutex, lock};
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, Weighter};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
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

/// Identifies a segment by its number and digest. In a published store that another writer has taken over,
/// two segments have the same number.
pub(super) type SegmentIdentity = (FileId, u64);

/// Decompressed and verified blocks, by segment and offset. Shares a byte budget with indexes and range
/// tombstones outside the cache. One cache serves one store, since file numbers are only unique there.
pub struct BlockCache {
    blocks: Cache<(SegmentIdentity, u64), CachedBlock, BlockWeight, BlockHash, Recycling>,
    capacity: u64,
    indexes: Mutex<IndexBytes>,
    largest_block: usize,
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
        let items = usize::try_from(capacity / TYPICAL_BLOCK_BYTES).unwrap_or(usize::MAX).max(1);
        let largest_block = usize::try_from(capacity / 8).unwrap_or(usize::MAX);
        let blocks = Cache::with(items, capacity, BlockWeight, BlockHash, Recycling);
        BlockCache { blocks, capacity, indexes: Mutex::default(), largest_block, process: Process::current() }
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
        self.is_used() && self.blocks.weight() < self.blocks.capacity() / 16 * 15
    }

    /// Bytes that a walk may take even of a full cache.
    pub(super) fn small_part(&self) -> u64 {
        self.capacity / 64
    }

    /// What pinned partitions may take, and top indexes as well.
    fn index_share(&self) -> u64 {
        self.capacity / INDEX_SHARE
    }

    /// Leaves room in the cache for the indexes.
    fn make_room(&self, indexes: &IndexBytes) {
        let shares = [indexes.open, indexes.ranges].map(|bytes| bytes.min(self.index_share()));
        let taken = shares.iter().fold(indexes.pinned, |sum, bytes| sum.saturating_add(*bytes));
        self.blocks.set_capacity(self.capacity.saturating_sub(taken));
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
        let most = if self.capacity == 0 { PINNED_BYTES_WITHOUT_CACHE } else { self.index_share() };
        let fits = indexes.pinned.saturating_add(bytes as u64) <= most;
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
        if cached.bytes() <= self.largest_block && self.is_used() {
            self.blocks.insert((of, offset), cached);
        }
    }
}

/// log2 of the part of a file whose blocks share a neighbourhood.
pub const UNIT_BITS: u32 = 16;
/// log2 of the part of a file that shares a slot: about a compressed block of the default size.
pub const SLOT_BITS: u32 = 11;
/// The table compares this many high bits of the hash before the keys. Neighbours must differ there.
const TAG_BITS: u32 = 7;

/// The cache's hash of a block's location, the digest of a segment and an offset in it: blocks close to each
/// other in a file get neighbouring slots of the hash table.
///
/// A walk looks up consecutive blocks. With unrelated hashes, each lookup misses the CPU's caches in the
/// table, which took a third of its time. This hash only decides speed (I11).
#[derive(Clone, Default)]
pub struct BlockHash;

/// The hasher of [`BlockHash`]: the last two words written.
#[derive(Default)]
pub struct BlockHasher {
    segment: u64,
    offset: u64,
}

impl BuildHasher for BlockHash {
    type Hasher = BlockHasher;

    #[inline]
    fn build_hasher(&self) -> BlockHasher {
        BlockHasher::default()
    }
}

impl Hasher for BlockHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        (self.segment, self.offset) = (self.offset, word);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let unit = mix(mix(self.segment) ^ self.offset >> UNIT_BITS);
        let slot = (self.offset & ((1 << UNIT_BITS) - 1)) >> SLOT_BITS;
        let tag = mix(self.offset) & !(u64::MAX >> TAG_BITS);
        tag | unit.wrapping_add(slot) & u64::MAX >> TAG_BITS
    }
}

/// Spreads `x` over all bits (the finalizer of SplitMix64).
#[inline]
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

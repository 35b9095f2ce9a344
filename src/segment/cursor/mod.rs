//! Walking a segment's entries from any bound, in either direction.

mod pass_damage;
mod steps;

use self::steps::{beyond, step};
use super::access::Access;
use super::block::{Block, Rows};
use super::compress::keep_spare;
use super::in_place::BlockPlace;
use super::index::Index;
use super::read_ahead::ReadAhead;
use super::reader::Segment;
use crate::direction::Direction;
use crate::error::Result;
use crate::key::{EntryKind, Seq, SplitKey, Value};
use std::ops::{Bound, Range};
use std::sync::Arc;

/// The value of `current` when the cursor is at no entry.
const NOWHERE: usize = usize::MAX;

/// A walk of [`Access::Range`] is long beyond this many bytes of blocks: about the largest read-ahead.
const LONG_WALK_BYTES: u64 = 256 << 10;

/// Walks the entries of a segment: `(advance access*)*`. Three ranges hold what is left, from index
/// partitions down to the rows of one block. Each step takes from the front of the innermost non-empty range
/// (from its back in reverse) and refills the ranges below it.
pub struct SegmentCursor {
    segment: Arc<Segment>,
    direction: Direction,
    access: Access,
    window: ReadAhead,
    walked: u64,
    partitions: Range<usize>,
    partition: Option<Arc<Index>>,
    /// The number of `partition`.
    partition_at: usize,
    blocks: Range<usize>,
    ahead: Ahead,
    /// Entries were stepped over since the last look ahead.
    skips: bool,
    rows: Rows,
    /// The number of the rows' block in `partition`; [`NOWHERE`] if they belong to none.
    block_at: usize,
    left: Range<usize>,
    current: usize,
    /// What the last error was about.
    stop: Option<Stop>,
}

impl Segment {
    /// A cursor before its first entry: forward, the first key at or after the bound; reverse, the last key
    /// at or before it. Reads the block of the bound; nothing when unbounded.
    pub fn cursor(
        self: &Arc<Self>,
        direction: Direction,
        start: Bound<&[u8]>,
        access: Access,
    ) -> Result<SegmentCursor> {
        let mut cursor = self.resting_cursor(direction, access);
        cursor.start(start)?;
        Ok(cursor)
    }

    /// A cursor without entries, until it is [restarted](SegmentCursor::restart).
    pub fn resting_cursor(self: &Arc<Self>, direction: Direction, access: Access) -> SegmentCursor {
        SegmentCursor {
            segment: self.clone(),
            direction,
            access,
            window: ReadAhead::default(),
            walked: 0,
            partitions: 0..self.top.len(),
            partition: None,
            partition_at: NOWHERE,
            blocks: 0..0,
            ahead: Ahead::Unknown,
            skips: false,
            rows: Rows::default(),
            block_at: NOWHERE,
            left: 0..0,
            current: NOWHERE,
            stop: None,
        }
    }
}

impl SegmentCursor {
    /// Moves to the next entry; `false` at the end, and from then on. An error ends the walk, unless it is
    /// [passed](Self::pass_damage).
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        while self.left.is_empty() {
            if !self.refill().inspect_err(|_| self.end())? {
                return Ok(false);
            }
        }
        self.step();
        Ok(true)
    }

    /// Bytes of the blocks entered so far.
    pub fn walked(&self) -> u64 {
        self.walked
    }

    /// Counts the bytes of blocks that the walk has entered in other segments.
    pub fn add_walked(&mut self, bytes: u64) {
        self.walked += bytes;
    }

    /// Number of entries that [`step`](Self::step) can reach: the rest of the block.
    #[inline]
    pub fn ahead(&self) -> usize {
        self.left.len()
    }

    /// The key `n` entries ahead of the current one, from 1 to [`ahead`](Self::ahead).
    #[inline]
    pub fn key_ahead(&self, n: usize) -> SplitKey<'_> {
        self.rows.key(match self.direction {
            Direction::Forward => (self.left.start + n).wrapping_sub(1),
            Direction::Reverse => self.left.end.wrapping_sub(n),
        })
    }

    /// Moves to the next entry of the block. Only while entries are [`ahead`](Self::ahead).
    #[inline]
    pub fn step(&mut self) {
        self.current = step(self.direction, &mut self.left).unwrap_or(NOWHERE);
    }

    /// How many of the next `most` entries of the block are known to be puts without checking each: all of
    /// them, or none in a block with tombstones.
    #[inline]
    pub fn puts_ahead(&self, most: usize) -> usize {
        if self.rows.has_tombstones() { 0 } else { most.min(self.left.len()) }
    }

    /// Moves `n` entries further in the block, from 1 to [`ahead`](Self::ahead).
    #[inline]
    pub fn step_over(&mut self, n: usize) {
        let last = match self.direction {
            Direction::Forward => self.left.nth(n.wrapping_sub(1)),
            Direction::Reverse => self.left.nth_back(n.wrapping_sub(1)),
        };
        self.current = last.unwrap_or(NOWHERE);
        self.skips = true;
    }

    /// The key; empty before the first `advance` and after the end.
    #[inline]
    pub fn key(&self) -> SplitKey<'_> {
        self.rows.key(self.current)
    }

    /// The sequence number.
    #[inline]
    pub fn seq(&self) -> Seq {
        self.segment.seq_of(self.rows.seq(self.current))
    }

    /// Put or tombstone.
    #[inline]
    pub fn kind(&self) -> EntryKind {
        self.rows.kind(self.current)
    }

    /// The value; empty for a tombstone, before the first `advance` and after the end.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.rows.value(self.current)
    }

    /// The value, sharing the memory of its block.
    #[inline]
    pub fn to_value(&self) -> Value {
        self.rows.to_value(self.current)
    }

    /// Starts another walk, in this segment or another one, as [`Segment::cursor`] does. Reuses what it has
    /// in memory: the block if the walk starts in it, the index partition, and the read buffer.
    pub fn restart(
        &mut self,
        segment: Arc<Segment>,
        direction: Direction,
        start: Bound<&[u8]>,
    ) -> Result<()> {
        if !Arc::ptr_eq(&self.segment, &segment) {
            self.segment = segment;
            self.window.forget();
            self.partition = None;
            (self.partition_at, self.block_at) = (NOWHERE, NOWHERE);
        }
        self.window.start_over();
        (self.direction, self.walked, self.skips) = (direction, 0, false);
        (self.partitions, self.blocks, self.left) = (0..self.segment.top.len(), 0..0, 0..0);
        (self.ahead, self.current, self.stop) = (Ahead::Unknown, NOWHERE, None);
        self.start(start).inspect_err(|_| self.end())
    }

    /// [`restart`](Self::restart) in the same segment and direction, if the walk starts in the current block;
    /// otherwise does nothing and returns `false`.
    pub fn restart_in_block(&mut self, start: Bound<&[u8]>) -> bool {
        let Some((key, after)) = self.place_of(start) else { return false };
        let is_within = self.is_within_block(key);
        if is_within {
            self.place(key, after);
            (self.walked, self.current) = (0, NOWHERE);
        }
        is_within
    }

    fn start(&mut self, start: Bound<&[u8]>) -> Result<()> {
        self.place_of(start).map_or(Ok(()), |(key, after)| self.seek(key, after))
    }

    /// The key of a bound, and whether the walk starts directly after it; otherwise directly before it.
    fn place_of<'a>(&self, start: Bound<&'a [u8]>) -> Option<(&'a [u8], bool)> {
        match start {
            Bound::Unbounded => None,
            Bound::Included(key) => Some((key, self.direction == Direction::Reverse)),
            Bound::Excluded(key) => Some((key, self.direction == Direction::Forward)),
        }
    }

    /// Starts the walk at `key`: directly after it if `after`, otherwise directly before it.
    fn seek(&mut self, key: &[u8], after: bool) -> Result<()> {
        if !self.is_within_block(key) {
            let at = self.segment.top.seek(key);
            self.partitions = beyond(self.direction, at, self.segment.top.len());
            if at == self.segment.top.len() {
                return Ok(());
            }
            let partition = self.enter_partition(at)?;
            let found = self.segment.seek_block(&partition, at, key);
            let at = found.inspect_err(|_| self.stop_at_partition(at))?;
            if at != self.block_at {
                self.enter_block(at)?;
            }
        }
        let blocks = self.partition.as_ref().map_or(0, |partition| partition.len());
        self.partitions = beyond(self.direction, self.partition_at, self.segment.top.len());
        self.blocks = beyond(self.direction, self.block_at, blocks);
        self.place(key, after);
        Ok(())
    }

    /// Starts at `key` in the current block.
    fn place(&mut self, key: &[u8], after: bool) {
        let before = self.rows.count_before(key, after);
        self.left = match self.direction {
            Direction::Forward => before..self.rows.len(),
            Direction::Reverse => 0..before,
        };
    }

    /// Whether `key` lies between two rows of the current block, or is one.
    fn is_within_block(&self, key: &[u8]) -> bool {
        self.block_at != NOWHERE
            && self.rows.key(0).cmp_bytes(key).is_lt()
            && self.rows.key(self.rows.len().wrapping_sub(1)).cmp_bytes(key).is_gt()
    }

    /// Moves to the next block or partition; `false` when none is left.
    fn refill(&mut self) -> Result<bool> {
        if let Some(at) = step(self.direction, &mut self.blocks) {
            self.enter_block(at)?;
            self.look_ahead();
        } else if let Some(at) = step(self.direction, &mut self.partitions) {
            self.enter_partition(at)?;
        } else {
            self.end();
            return Ok(false);
        }
        Ok(true)
    }

    fn stop_at_partition(&mut self, partition: usize) {
        self.stop = Some(Stop { partition, block: None });
    }

    fn end(&mut self) {
        (self.partitions, self.blocks, self.left) = (0..0, 0..0, 0..0);
        self.rows = Rows::default();
        self.ahead = Ahead::Unknown;
        (self.block_at, self.current) = (NOWHERE, NOWHERE);
    }

    fn enter_partition(&mut self, at: usize) -> Result<Arc<Index>> {
        let partition = match self.partition.take() {
            Some(partition) if at == self.partition_at => partition,
            _ => {
                self.block_at = NOWHERE;
                let read = self.segment.partition(at, self.access.is_range());
                read.inspect_err(|_| self.stop_at_partition(at))?
            }
        };
        self.blocks = 0..partition.len();
        self.ahead = Ahead::Unknown;
        self.partition_at = at;
        self.partition = Some(Arc::clone(&partition));
        Ok(partition)
    }

    /// Whether the walk is short so far, so that the cache keeps its blocks.
    fn is_short(&self) -> bool {
        self.access.is_range() && self.walked < LONG_WALK_BYTES
    }

    fn enter_block(&mut self, at: usize) -> Result<()> {
        let partition = self.partition_at;
        self.enter_readable(at).inspect_err(|_| self.stop = Some(Stop { partition, block: Some(at) }))
    }

    fn enter_readable(&mut self, at: usize) -> Result<()> {
        let is_short = self.is_short();
        self.block_at = NOWHERE;
        if let Some(block) = self.copy_in_place(at) {
            self.hold(at, block);
            return Ok(());
        }
        let Some(partition) = &self.partition else { return Ok(()) };
        let handle = partition.handle(at);
        let cached = match std::mem::take(&mut self.ahead) {
            Ahead::Cached(block) => Some(block),
            Ahead::Missing => None,
            Ahead::Unknown => self.segment.cached_block(handle, is_short),
        };
        let block = match cached {
            Some(block) => block,
            None => {
                let backwards = self.direction == Direction::Reverse;
                let stored = self.window.stored(&self.segment, partition, at, backwards)?;
                let block = self.segment.decode_block(handle, stored)?;
                if is_short || self.access.is_range() && self.segment.cache.has_room() {
                    self.segment.keep_block(handle, &block);
                }
                block
            }
        };
        self.hold(at, block);
        Ok(())
    }

    fn hold(&mut self, at: usize, block: Block) {
        self.walked += block.bytes() as u64;
        self.rows = block.rows();
        self.block_at = at;
        self.left = 0..self.rows.len();
    }

    /// A copy of block `at`, if it can be read in place. Its memory is that of the previous block, unless
    /// somebody holds a value of that.
    fn copy_in_place(&mut self, at: usize) -> Option<Block> {
        let partition = self.partition.as_ref().filter(|_| self.access.is_range())?;
        if !self.segment.reads_in_place() {
            return None;
        }
        self.window.announce(&self.segment, partition, at, self.direction == Direction::Reverse);
        keep_spare(std::mem::take(&mut self.rows).into_memory());
        self.segment.copy_in_place(BlockPlace { partition, number: self.partition_at, at })
    }

    /// Looks up the next block of the partition in the cache, and prefetches it if its values will be read:
    /// the misses then overlap with the use of this block's rows.
    fn look_ahead(&mut self) {
        let skips = std::mem::take(&mut self.skips);
        let is_cached = self.access.is_range() && !self.segment.reads_in_place();
        let Some(partition) = self.partition.as_ref().filter(|_| is_cached) else { return };
        let Some(at) = step(self.direction, &mut self.blocks.clone()) else { return };
        let block = self.segment.cached_block(partition.handle(at), self.is_short());
        if self.access == Access::Range && !skips {
            block.iter().for_each(Block::prefetch);
        }
        self.ahead = block.map_or(Ahead::Missing, Ahead::Cached);
    }
}

/// A partition, or a block of it, that could not be read.
struct Stop {
    partition: usize,
    block: Option<usize>,
}

/// What the cursor knows about the block that it enters next.
#[derive(Default)]
enum Ahead {
    #[default]
    Unknown,
    Missing,
    Cached(Block),
}

//! Walking a segment's entries from any bound, in either direction.

mod copies;
mod deferred;
mod key_group;
mod keys_only;
mod pass_damage;
mod seek;
mod steps;
mod walked_bytes;

use self::steps::{Ahead, Stop, step};
use super::access::Access;
use super::block::{Block, Rows};
use super::compress::keep_spare;
use super::format::BlockHandle;
use super::index::{BlockPlace, Index};
use super::read_ahead::ReadAhead;
use super::reader::Segment;
use crate::direction::Direction;
use crate::error::Result;
use crate::key::{EntryKind, Seq, SplitKey, Value};
use key_group::{GROUP_BLOCKS, Gathered};
use std::ops::Range;
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
    /// The front of what their keys share.
    shared: u128,
    /// The number of the rows' block in `partition`; [`NOWHERE`] if they belong to none.
    block_at: usize,
    left: Range<usize>,
    current: usize,
    /// The suffix of the current key in the block.
    suffix: Range<usize>,
    /// The walk wants no values now.
    keys_only: bool,
    /// The walk asks for the values of a row before it uses them.
    defers_values: bool,
    /// The rows of a block have no values yet.
    lacks_values: bool,
    /// The rows are the keys of a group of blocks.
    is_in_group: bool,
    gathered: Option<Box<Gathered>>,
    /// Bytes of groups that the walk has made.
    group_bytes: u64,
    /// What the last error was about.
    stop: Option<Stop>,
}

impl Segment {
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
            shared: 0,
            block_at: NOWHERE,
            left: 0..0,
            current: NOWHERE,
            suffix: 0..0,
            keys_only: false,
            defers_values: false,
            lacks_values: false,
            is_in_group: false,
            gathered: None,
            group_bytes: 0,
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
        let at = step(self.direction, &mut self.left).unwrap_or(NOWHERE);
        self.move_to(at);
    }

    /// How many of the next `most` entries of the block are known to be puts without checking each: all of
    /// them, or none in a block with others.
    #[inline]
    pub fn puts_ahead(&self, most: usize) -> usize {
        if self.rows.has_only_puts() { most.min(self.left.len()) } else { 0 }
    }

    /// Moves `n` entries further in the block, from 1 to [`ahead`](Self::ahead).
    #[inline]
    pub fn step_over(&mut self, n: usize) {
        let last = match self.direction {
            Direction::Forward => self.left.nth(n.wrapping_sub(1)),
            Direction::Reverse => self.left.nth_back(n.wrapping_sub(1)),
        };
        self.move_to(last.unwrap_or(NOWHERE));
        self.skips = true;
    }

    #[inline]
    fn move_to(&mut self, at: usize) {
        self.current = at;
        self.suffix = self.rows.suffix_range(at);
    }

    /// The key; empty before the first `advance` and after the end.
    #[inline]
    pub fn key(&self) -> SplitKey<'_> {
        if self.current == NOWHERE { SplitKey::default() } else { self.rows.key_of(self.suffix.clone()) }
    }

    /// The [front](SplitKey::front) of the key.
    #[inline]
    pub fn front(&self) -> u128 {
        self.rows.front_of(self.suffix.clone(), self.shared)
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

    /// Moves to the next block or partition; `false` when none is left.
    fn refill(&mut self) -> Result<bool> {
        if let Some(at) = step(self.direction, &mut self.blocks) {
            if !self.enter_group(at) {
                self.enter_block(at)?;
                self.gather(at);
                self.look_ahead();
            }
        } else if let Some(at) = step(self.direction, &mut self.partitions) {
            self.enter_partition(at)?;
        } else {
            self.end();
            return Ok(false);
        }
        Ok(true)
    }

    /// Enters the group that starts at block `at` of the partition, if it is in the cache.
    fn enter_group(&mut self, at: usize) -> bool {
        let Some(group) = self.group_at(at) else { return false };
        let Some(block) = self.segment.cached_block(group, true) else { return false };
        self.blocks.start = self.group_end(at);
        self.walked += block.bytes() as u64;
        self.hold(block.rows());
        (self.ahead, self.is_in_group) = (Ahead::Unknown, true);
        true
    }

    /// The place of the group that starts at block `at`, if the walk uses groups and one starts there.
    fn group_at(&self, at: usize) -> Option<BlockHandle> {
        let uses_groups = self.keys_only && self.direction == Direction::Forward && self.access.is_range();
        let partition = self.partition.as_ref().filter(|_| uses_groups && at.is_multiple_of(GROUP_BLOCKS))?;
        let handle = partition.handle(at);
        Some(BlockHandle { offset: handle.offset + 1, ..handle })
    }

    /// The number of the first block after the group of block `at`.
    fn group_end(&self, at: usize) -> usize {
        let blocks = self.partition.as_ref().map_or(0, |partition| partition.len());
        (at - at % GROUP_BLOCKS + GROUP_BLOCKS).min(blocks)
    }

    /// Adds the keys of block `at`, which was just entered, to those of the blocks before it. Keeps the group
    /// in the cache after its last block.
    fn gather(&mut self, at: usize) {
        if self.group_at(at).is_some() {
            self.gathered = Gathered::before(at, &self.rows);
        }
        let Some(mut gathered) = self.gathered.take().filter(|gathered| gathered.next == at) else { return };
        gathered.append(&self.rows);
        if gathered.next < self.group_end(at) {
            self.gathered = Some(gathered);
        } else if let Some(group) = self.group_at(at - at % GROUP_BLOCKS)
            && let Some(block) = gathered.finish()
        {
            self.keep_group(group, &block);
        }
    }

    /// A long walk leaves no more groups in a full cache than a small part of it.
    fn keep_group(&mut self, group: BlockHandle, block: &Block) {
        self.group_bytes += block.bytes() as u64;
        if self.group_bytes <= self.segment.cache.small_part() || self.segment.cache.has_room() {
            self.segment.keep_block(group, block);
        }
    }

    /// Holds the rows of a block or a group.
    #[inline]
    fn hold(&mut self, rows: Rows) {
        self.rows = rows;
        self.lacks_values = false;
        self.shared = self.rows.shared_front();
        self.left = 0..self.rows.len();
        (self.block_at, self.is_in_group) = (NOWHERE, false);
    }

    fn stop_at_partition(&mut self, partition: usize) {
        self.stop = Some(Stop { partition, block: None });
    }

    fn end(&mut self) {
        (self.partitions, self.blocks, self.left) = (0..0, 0..0, 0..0);
        self.rows = Rows::default();
        self.ahead = Ahead::Unknown;
        (self.block_at, self.current) = (NOWHERE, NOWHERE);
        (self.is_in_group, self.lacks_values) = (false, false);
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
        if self.enter_in_place(at) {
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
        self.hold_at(at, block);
        Ok(())
    }

    /// Enters block `at`, if it can be read in place. Its memory is that of the previous block, unless
    /// somebody holds a value of that.
    fn enter_in_place(&mut self, at: usize) -> bool {
        if !self.access.is_range() || !self.segment.reads_in_place() {
            return false;
        }
        // Taken, because other threads count references to it too.
        let Some(partition) = self.partition.take() else { return false };
        keep_spare(std::mem::take(&mut self.rows).into_memory());
        let place = BlockPlace { partition: &partition, number: self.partition_at, at };
        let (backwards, keeps) = (self.direction == Direction::Reverse, self.is_short());
        let wants_values = !self.defers_values && !self.keys_only;
        let copy = self.segment.copy_ahead(&mut self.window, place, backwards, wants_values, keeps);
        self.partition = Some(partition);
        let Some(rows) = copy else { return false };
        self.walked += rows.bytes() as u64;
        self.hold(rows);
        (self.block_at, self.lacks_values) = (at, !wants_values);
        true
    }

    fn hold_at(&mut self, at: usize, block: Block) {
        self.walked += block.bytes() as u64;
        self.hold(block.rows());
        self.block_at = at;
    }

    /// Looks up the next block of the partition in the cache, and prefetches it if its values will be read:
    /// the misses then overlap with the use of this block's rows.
    fn look_ahead(&mut self) {
        let skips = std::mem::take(&mut self.skips);
        let Some(partition) = self.partition.as_ref().filter(|_| self.access.is_range()) else { return };
        let Some(at) = step(self.direction, &mut self.blocks.clone()) else { return };
        let wants_values = !skips && !self.defers_values && !self.keys_only;
        if self.segment.reads_in_place() {
            return if wants_values {
                self.segment.prefetch_in_place(partition.handle(at))
            };
        }
        let block = self.segment.cached_block(partition.handle(at), self.is_short());
        if self.access == Access::Range && !skips {
            block.iter().for_each(Block::prefetch);
        }
        self.ahead = block.map_or(Ahead::Missing, Ahead::Cached);
    }
}

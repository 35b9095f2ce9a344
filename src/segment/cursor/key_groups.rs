//! Walks without values: the keys of neighbouring blocks, in one block of their own.
//!
//! Where values are large, a block has few rows, and a walk that skips or counts rows spends its time on
//! entering blocks. So such a walk gathers the keys of each *group* of [`GROUP_BLOCKS`] blocks that it passes
//! as a whole, and leaves them in the block cache. The next one reads the group instead of its blocks.
//!
//! 1. A group has the keys, sequence numbers and kinds of all rows of its blocks, and empty values. It has
//!    the form of a data block, so its rows are walked in the same way.
//! 2. It is derived from blocks that were verified, and is never written. Its place in the cache is the
//!    offset of its first block plus one, where no block begins.
//! 3. Only forward walks use groups. A walk that wants values again enters the block of its current key.

use super::{NOWHERE, SegmentCursor};
use crate::direction::Direction;
use crate::error::Result;
use crate::key::common_prefix;
use crate::segment::block::{Block, Rows};
use crate::segment::block_builder::BlockBuilder;
use crate::segment::compress::Payload;
use crate::segment::format::BlockHandle;

/// Neighbours in an index partition. The first number of a group is a multiple of this.
const GROUP_BLOCKS: usize = 32;
/// Values are large if a block has this many bytes for each row. Then its keys are a small part of it.
const LARGE_ROW_BYTES: usize = 256;

/// The keys of the blocks of a group that the walk has passed so far.
#[derive(Default)]
pub(super) struct Gathered {
    builder: BlockBuilder,
    /// The last key.
    last: Vec<u8>,
    /// The number of the next block.
    next: usize,
}

impl Gathered {
    fn append(&mut self, rows: &Rows) {
        let mut key = Vec::with_capacity(self.last.len());
        for at in 0..rows.len() {
            rows.key(at).copy_into(&mut key);
            let shared = common_prefix(&self.last, &key);
            self.builder.append(&key, shared, rows.fingerprint(at), rows.seq(at), rows.kind(at), &[]);
            std::mem::swap(&mut self.last, &mut key);
        }
        self.next += 1;
    }

    fn finish(mut self) -> Option<Block> {
        let mut bytes = Vec::new();
        self.builder.finish_into(&mut bytes);
        Block::parse(Payload::from(bytes)).ok()
    }
}

impl SegmentCursor {
    /// Sets whether the walk wants keys only. Values are then empty, until it is called with `false` again.
    pub fn want_keys(&mut self, keys_only: bool) -> Result<()> {
        self.keys_only = keys_only;
        if keys_only || !self.is_in_group { Ok(()) } else { self.leave_group().inspect_err(|_| self.end()) }
    }

    /// Enters the group that starts at block `at` of the partition, if it is in the cache.
    pub(super) fn enter_group(&mut self, at: usize) -> bool {
        let Some(group) = self.group_at(at) else { return false };
        let Some(block) = self.segment.cached_block(group, true) else { return false };
        self.blocks.start = self.group_end(at);
        self.walked += block.bytes() as u64;
        self.hold(block);
        (self.ahead, self.is_in_group) = (Default::default(), true);
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
    pub(super) fn gather(&mut self, at: usize) {
        if self.group_at(at).is_some() {
            let is_large = self.rows.bytes() / self.rows.len().max(1) >= LARGE_ROW_BYTES;
            self.gathered = is_large.then(|| Box::new(Gathered { next: at, ..Gathered::default() }));
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

    /// Enters the block of the current key, and stays at that key.
    fn leave_group(&mut self) -> Result<()> {
        let mut key = Vec::new();
        self.rows.key(self.current).copy_into(&mut key);
        let Some(partition) = self.partition.clone() else { return Ok(()) };
        let number = self.partition_at;
        let at = self.segment.seek_block(&partition, number, &key);
        let at = at.inspect_err(|_| self.stop_at_partition(number))?;
        self.ahead = Default::default();
        self.enter_block(at)?;
        self.blocks = at + 1..partition.len();
        let before = self.rows.count_before(&key, false);
        self.left = before..self.rows.len();
        self.step();
        Ok(())
    }

    /// Holds the rows of a block or a group.
    #[inline]
    pub(super) fn hold(&mut self, block: Block) {
        self.rows = block.rows();
        self.shared = self.rows.shared_front();
        self.left = 0..self.rows.len();
        (self.block_at, self.is_in_group) = (NOWHERE, false);
    }
}

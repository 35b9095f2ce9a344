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

use crate::key::common_prefix;
use crate::segment::block::{Block, Rows};
use crate::segment::block_builder::BlockBuilder;
use crate::segment::compress::Payload;

/// Neighbours in an index partition. The first number of a group is a multiple of this.
pub(super) const GROUP_BLOCKS: usize = 32;
/// Values are large if a block has this many bytes for each row. Then its keys are a small part of it.
const LARGE_ROW_BYTES: usize = 256;

/// The keys of the blocks of a group that the walk has passed so far.
#[derive(Default)]
pub(super) struct Gathered {
    builder: BlockBuilder,
    /// The last key.
    last: Vec<u8>,
    /// The number of the next block.
    pub next: usize,
}

impl Gathered {
    /// None yet, before block `next`, whose rows these are. `None` if they are small.
    pub fn before(next: usize, rows: &Rows) -> Option<Box<Self>> {
        let is_large = rows.bytes() / rows.len().max(1) >= LARGE_ROW_BYTES;
        is_large.then(|| Box::new(Gathered { next, ..Gathered::default() }))
    }

    /// Adds the keys of block `next`.
    pub fn append(&mut self, rows: &Rows) {
        let mut key = Vec::with_capacity(self.last.len());
        for at in 0..rows.len() {
            rows.key(at).copy_into(&mut key);
            let shared = common_prefix(&self.last, &key);
            self.builder.append(&key, shared, rows.fingerprint(at), rows.seq(at), rows.kind(at), &[]);
            std::mem::swap(&mut self.last, &mut key);
        }
        self.next += 1;
    }

    /// The group.
    pub fn finish(mut self) -> Option<Block> {
        let mut bytes = Vec::new();
        self.builder.finish_into(&mut bytes);
        Block::parse(Payload::from(bytes)).ok()
    }
}

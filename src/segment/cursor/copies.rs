//! Copies of blocks that are read in place.
//!
//! 1. Keys lie at the front of a block, so a copy without values is small.
//! 2. Coded values are decoded on the way. A short walk leaves the decoded block in the block cache, so the
//!    next one decodes nothing.
//! 3. Blocks ahead are announced to the kernel, unless those before came from memory.

use crate::segment::block::{Block, Rows};
use crate::segment::index::BlockPlace;
use crate::segment::read_ahead::ReadAhead;
use crate::segment::reader::Segment;
use crate::sync::Instant;

impl Segment {
    /// A copy of a block, without its values unless `wants_values`. The cache keeps what it decodes if
    /// `keeps`. `None` if the block must be read from the file.
    pub(super) fn copy_ahead(
        &self,
        window: &mut ReadAhead,
        block: BlockPlace<'_>,
        backwards: bool,
        wants_values: bool,
        keeps: bool,
    ) -> Option<Rows> {
        let was_read = self.in_place.as_ref()?.is_verified(block);
        let is_timed = window.announce(self, block.partition, block.at, backwards, was_read);
        let begin = is_timed.then(Instant::now);
        let rows = if wants_values { self.copy_values(block, keeps) } else { self.copy_keys(block) };
        begin.iter().for_each(|begin| window.note_time(begin.elapsed()));
        rows
    }

    fn copy_keys(&self, block: BlockPlace<'_>) -> Option<Rows> {
        let location = || self.location(block.handle().offset);
        self.in_place.as_ref()?.copy_keys(block, location, &self.counters)
    }

    fn copy_values(&self, block: BlockPlace<'_>, keeps: bool) -> Option<Rows> {
        if self.tail.symbols.is_none() {
            return self.copy_in_place(block).map(Block::rows);
        }
        let handle = block.handle();
        if let Some(block) = self.cached_block(handle, keeps) {
            return Some(block.rows());
        }
        let block = self.copy_in_place(block)?;
        if keeps {
            self.keep_block(handle, &block);
        }
        Some(block.rows())
    }
}

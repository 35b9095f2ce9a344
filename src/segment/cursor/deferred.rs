//! Walks over blocks that are read in place. They copy what they use of a block, in two steps where they can.
//!
//! 1. A merge hides many rows behind newer ones, so it first wants keys alone: they lie at the front of a
//!    block, and their copy is small.
//! 2. Before the merge shows a row, it asks for the values of its block.
//! 3. Coded values are decoded then. A short walk leaves the decoded block in the block cache, so the next
//!    one decodes nothing.
//! 4. Blocks ahead are announced to the kernel, unless those before came from memory.

use super::SegmentCursor;
use crate::direction::Direction;
use crate::error::Result;
use crate::segment::block::{Block, Rows};
use crate::segment::compress::keep_spare;
use crate::segment::index::BlockPlace;
use crate::segment::reader::Segment;
use crate::sync::Instant;

impl Segment {
    /// [`copy_in_place`](Self::copy_in_place) without the values, which are empty.
    fn copy_keys_in_place(&self, block: BlockPlace<'_>) -> Option<Rows> {
        let location = || self.location(block.handle().offset);
        self.in_place.as_ref()?.copy_keys(block, location, &self.counters)
    }

    /// Whether values are coded, so that a walk has to decode them.
    fn has_coded_values(&self) -> bool {
        self.tail.symbols.is_some()
    }

    /// Whether a block that is read in place was verified, and so read.
    fn has_verified(&self, block: BlockPlace<'_>) -> bool {
        self.in_place.as_ref().is_some_and(|in_place| in_place.is_verified(block))
    }
}

impl SegmentCursor {
    /// Sets whether the walk calls [`load_values`](Self::load_values) at each row whose value it uses.
    pub fn defer_values(&mut self, defers: bool) {
        self.defers_values = defers;
    }

    /// Makes the values of the current block available, unless the walk wants keys only.
    #[inline]
    pub fn load_values(&mut self) -> Result<()> {
        if self.lacks_values && !self.keys_only { self.enter_again() } else { Ok(()) }
    }

    /// Whether the rows of the current block have their values.
    pub fn has_values(&self) -> bool {
        !self.lacks_values
    }

    /// Enters the current block again, with its values, and stays at its current row.
    #[inline(never)]
    fn enter_again(&mut self) -> Result<()> {
        let (at, current, left, walked) = (self.block_at, self.current, self.left.clone(), self.walked);
        let defers = std::mem::replace(&mut self.defers_values, false);
        let entered = self.enter_block(at);
        self.defers_values = defers;
        entered.inspect_err(|_| self.end())?;
        (self.left, self.walked) = (left, walked);
        self.move_to(current);
        Ok(())
    }

    /// Enters block `at`, if it can be read in place. Its memory is that of the previous block, unless
    /// somebody holds a value of that.
    pub(super) fn enter_in_place(&mut self, at: usize) -> bool {
        if !self.access.is_range() || !self.segment.reads_in_place() {
            return false;
        }
        // Taken, because other threads count references to it too.
        let Some(partition) = self.partition.take() else { return false };
        let place = BlockPlace { partition: &partition, number: self.partition_at, at };
        let (backwards, was_read) = (self.direction == Direction::Reverse, self.segment.has_verified(place));
        let is_timed = self.window.announce(&self.segment, &partition, at, backwards, was_read);
        let begin = is_timed.then(Instant::now);
        keep_spare(std::mem::take(&mut self.rows).into_memory());
        let has_entered = self.copy(place);
        begin.iter().for_each(|begin| self.window.note_time(begin.elapsed()));
        self.partition = Some(partition);
        has_entered
    }

    /// Copies a block, or its keys if they are enough for now.
    fn copy(&mut self, place: BlockPlace<'_>) -> bool {
        if !self.defers_values && !self.keys_only {
            let block = self.decoded(place);
            return block.map(|block| self.hold_at(place.at, block)).is_some();
        }
        let Some(rows) = self.segment.copy_keys_in_place(place) else { return false };
        self.walked += u64::from(place.handle().len);
        self.hold_rows(rows);
        (self.block_at, self.lacks_values) = (place.at, true);
        true
    }

    /// A block with its values, from the cache if they are coded.
    fn decoded(&self, place: BlockPlace<'_>) -> Option<Block> {
        if !self.segment.has_coded_values() {
            return self.segment.copy_in_place(place);
        }
        let (handle, is_short) = (place.handle(), self.is_short());
        if let Some(block) = self.segment.cached_block(handle, is_short) {
            return Some(block);
        }
        let block = self.segment.copy_in_place(place)?;
        if is_short {
            self.segment.keep_block(handle, &block);
        }
        Some(block)
    }
}

//! Walks that want keys first, and the values of only some rows.
//!
//! A merge hides many rows behind newer ones. So of a block that is read in place, a walk first copies the
//! keys, and its values only when the merge shows one of its rows.

use super::SegmentCursor;
use crate::error::Result;

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
}

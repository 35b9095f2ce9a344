//! Walks that want keys only, and no values.

use super::SegmentCursor;
use crate::error::Result;
use crate::key::LongFront;

impl SegmentCursor {
    /// Sets whether the walk wants keys only. Values are then empty, until it is called with `false` again.
    pub fn want_keys(&mut self, keys_only: bool) -> Result<()> {
        self.keys_only = keys_only;
        if keys_only || !self.is_in_group { Ok(()) } else { self.leave_group().inspect_err(|_| self.end()) }
    }

    /// Appends the fronts of the current entry and those ahead of it in the block or group, of a forward
    /// walk. Returns the length of their keys, if they have one length and are puts.
    pub fn list_fronts(&self, out: &mut Vec<LongFront>) -> Option<usize> {
        let len = self.rows.key_len().filter(|_| self.rows.has_only_puts())?;
        self.rows.list_fronts(self.current, self.shared, out);
        Some(len)
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
}

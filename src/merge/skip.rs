//! Passing a deleted range: a walk need not meet every entry that a range tombstone hides.
//!
//! After a few hidden entries, each source with segments that have nothing newer than the tombstone moves past them at once, up to the end of the
//! range. The others go on step by step.

use super::{MergeCursor, MergeSource};
use crate::error::Result;
use crate::key::Seq;
use std::ops::Bound;

impl MergeCursor {
    /// Moves past the current entry, which is hidden, and past the deleted range as far as the sources allow. `false` at the end.
    pub(super) fn pass_deleted(&mut self) -> Result<bool> {
        let Some((edge, deleted)) = self.mask.as_ref().and_then(|mask| mask.edge(self.direction)) else {
            return self.advance();
        };
        let here = self.key().to_vec();
        let left = std::mem::take(&mut self.heap);
        // An error ends the walk, as in `advance`.
        let mut heap = Vec::with_capacity(left.len());
        for index in left {
            if self.pass_input(index, &here, &edge, deleted)? {
                heap.push(index);
            }
        }
        self.heap = heap;
        self.order_all();
        self.settle()
    }

    /// Moves an input past the entries of `here` and, if it has nothing newer than `deleted` before the edge, up to there.
    fn pass_input(&mut self, index: usize, here: &[u8], edge: &Bound<Vec<u8>>, deleted: Seq) -> Result<bool> {
        let Some(input) = self.inputs.get_mut(index) else { return Ok(false) };
        let is_here = input.source.is_open() && input.source.key().cmp_bytes(here).is_eq();
        let to = match &input.source {
            MergeSource::Run(run) => run.newer_from(self.direction, here, edge, deleted),
            MergeSource::Memtable(_) => None,
        };
        match to.as_ref().map(|to| to.as_ref().map(Vec::as_slice)) {
            Some(Bound::Unbounded) => Ok(false),
            Some(start) => {
                input.source.seek(self.direction, start);
                self.advance_input(index)
            }
            None if is_here => self.advance_input(index),
            None => Ok(true),
        }
    }
}

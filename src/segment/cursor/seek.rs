//! Starting a walk at a key.

use super::steps::{Ahead, beyond};
use super::{NOWHERE, SegmentCursor};
use crate::direction::Direction;
use crate::error::Result;
use crate::segment::access::Access;
use crate::segment::reader::Segment;
use std::ops::Bound;
use std::sync::Arc;

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
}

impl SegmentCursor {
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
        (self.direction, self.walked, self.skips, self.is_in_group) = (direction, 0, false, false);
        (self.partitions, self.blocks, self.left) = (0..self.segment.top.len(), 0..0, 0..0);
        (self.ahead, self.current, self.stop, self.gathered) = (Ahead::Unknown, NOWHERE, None, None);
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
}

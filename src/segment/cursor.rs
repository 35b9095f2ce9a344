//! Walking a segment's entries from any bound, in either direction.

use super::access::{Access, Direction};
use super::block::Rows;
use super::index::Index;
use super::reader::Segment;
use super::window::Window;
use crate::error::Result;
use crate::key::{EntryKind, Seq, SplitKey, Value};
use std::ops::{Bound, Range};
use std::sync::Arc;

/// The value of `current` when the cursor is at no entry.
const NOWHERE: usize = usize::MAX;

/// A walk of [`Access::Range`] is long beyond so many bytes of blocks: about as much as the largest read-ahead.
const LONG_WALK_BYTES: u64 = 256 << 10;

/// Walks the entries of a segment: `(advance access*)*`. Three ranges hold what is left, from index partitions down to the rows of one
/// block. Each step takes from the front of the innermost non-empty range (from its back in reverse) and refills the ranges below it.
pub struct SegmentCursor {
    segment: Arc<Segment>,
    direction: Direction,
    access: Access,
    window: Window,
    walked: u64,
    partitions: Range<usize>,
    partition: Option<Arc<Index>>,
    blocks: Range<usize>,
    rows: Rows,
    left: Range<usize>,
    current: usize,
}

impl Segment {
    /// A cursor before its first entry: forward, the first key at or after the bound; reverse, the last key at or before it. Reads the
    /// block of the bound; nothing when unbounded.
    pub fn cursor(
        self: &Arc<Self>,
        direction: Direction,
        start: Bound<&[u8]>,
        access: Access,
    ) -> Result<SegmentCursor> {
        let mut cursor = SegmentCursor {
            segment: self.clone(),
            direction,
            access,
            window: Window::default(),
            walked: 0,
            partitions: 0..self.top.len(),
            partition: None,
            blocks: 0..0,
            rows: Rows::default(),
            left: 0..0,
            current: NOWHERE,
        };
        match start {
            Bound::Unbounded => {}
            Bound::Included(key) => cursor.seek(key, direction == Direction::Reverse)?,
            Bound::Excluded(key) => cursor.seek(key, direction == Direction::Forward)?,
        }
        Ok(cursor)
    }
}

impl SegmentCursor {
    /// Moves to the next entry; `false` at the end, and from then on. An error ends the walk.
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

    /// Bytes of the blocks that it has come to.
    pub fn walked(&self) -> u64 {
        self.walked
    }

    /// The walk came from other segments, in which it came to blocks of so many bytes.
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

    /// The key; empty before the first `advance` and after the end.
    #[inline]
    pub fn key(&self) -> SplitKey<'_> {
        self.rows.key(self.current)
    }

    /// The sequence number.
    #[inline]
    pub fn seq(&self) -> Seq {
        self.rows.seq(self.current)
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

    /// Starts the walk at `key`: directly after it if `after`, otherwise directly before it.
    fn seek(&mut self, key: &[u8], after: bool) -> Result<()> {
        let at = self.segment.top.seek(key);
        self.partitions = beyond(self.direction, at, self.segment.top.len());
        if at == self.segment.top.len() {
            return Ok(());
        }
        let partition = self.enter_partition(at)?;
        let at = self.segment.seek_block(&partition, at, key)?;
        self.blocks = beyond(self.direction, at, partition.len());
        self.enter_block(&partition, at)?;
        let before = self.rows.count_before(key, after);
        match self.direction {
            Direction::Forward => self.left.start = before,
            Direction::Reverse => self.left.end = before,
        }
        Ok(())
    }

    /// Moves to the next block or partition; `false` when none is left.
    fn refill(&mut self) -> Result<bool> {
        if let Some(at) = step(self.direction, &mut self.blocks) {
            if let Some(partition) = self.partition.clone() {
                self.enter_block(&partition, at)?;
            }
        } else if let Some(at) = step(self.direction, &mut self.partitions) {
            self.enter_partition(at)?;
        } else {
            self.end();
            return Ok(false);
        }
        Ok(true)
    }

    fn end(&mut self) {
        (self.partitions, self.blocks, self.left) = (0..0, 0..0, 0..0);
        self.rows = Rows::default();
        self.current = NOWHERE;
    }

    fn enter_partition(&mut self, at: usize) -> Result<Arc<Index>> {
        let partition = self.segment.partition(at, self.access == Access::Range)?;
        self.blocks = 0..partition.len();
        self.partition = Some(partition.clone());
        Ok(partition)
    }

    fn enter_block(&mut self, partition: &Index, at: usize) -> Result<()> {
        let handle = partition.handle(at);
        let is_short = self.access == Access::Range && self.walked < LONG_WALK_BYTES;
        let block = match self.segment.cached_block(handle, is_short) {
            Some(block) => block,
            None => {
                let backwards = self.direction == Direction::Reverse;
                let stored = self.window.stored(&self.segment, partition, at, backwards)?;
                let block = self.segment.decode_block(handle, stored)?;
                if is_short || self.access == Access::Range && self.segment.cache.has_room() {
                    self.segment.keep_block(handle, &block);
                }
                block
            }
        };
        self.walked += block.bytes() as u64;
        self.rows = block.rows();
        self.left = 0..self.rows.len();
        Ok(())
    }
}

/// The numbers below `count` that follow `at` in the direction of the walk.
fn beyond(direction: Direction, at: usize, count: usize) -> Range<usize> {
    match direction {
        Direction::Forward => (at + 1).min(count)..count,
        Direction::Reverse => 0..at,
    }
}

#[inline]
fn step(direction: Direction, left: &mut Range<usize>) -> Option<usize> {
    match direction {
        Direction::Forward => left.next(),
        Direction::Reverse => left.next_back(),
    }
}

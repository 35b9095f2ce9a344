//! Walking a segment's entries from any bound, in either direction.

use super::access::{Access, Direction};
use super::block::Block;
use super::index::Index;
use super::interval::{Interval, IntervalEntry};
use super::reader::Segment;
use super::window::Window;
use crate::error::Result;
use crate::key::{EntryKind, Seq, Value};
use std::ops::{Bound, Range};
use std::sync::Arc;

/// The value of `current` when the cursor is at no entry.
const NOWHERE: usize = usize::MAX;

/// Walks the entries of a segment: `(advance access*)*`. Four ranges hold what is left, from index partitions down to the entries of one
/// restart interval. Each step takes from the front of the innermost non-empty range (from its back in reverse) and refills the ranges
/// below it.
pub struct SegmentCursor {
    segment: Arc<Segment>,
    direction: Direction,
    access: Access,
    window: Window,
    partitions: Range<usize>,
    partition: Option<Arc<Index>>,
    blocks: Range<usize>,
    block: Option<Block>,
    block_offset: u64,
    intervals: Range<usize>,
    interval: Interval,
    entries: Range<usize>,
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
            partitions: 0..self.top.len(),
            partition: None,
            blocks: 0..0,
            block: None,
            block_offset: 0,
            intervals: 0..0,
            interval: Interval::default(),
            entries: 0..0,
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
        loop {
            if let Some(at) = step(self.direction, &mut self.entries) {
                self.current = at;
                return Ok(true);
            }
            if !self.refill().inspect_err(|_| self.end())? {
                return Ok(false);
            }
        }
    }

    /// The key; empty before the first `advance` and after the end.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.interval.key(self.current)
    }

    /// The sequence number; 0 before the first `advance` and after the end.
    #[inline]
    pub fn seq(&self) -> Seq {
        self.entry().map_or(0, |entry| entry.seq)
    }

    /// Put or tombstone; a tombstone before the first `advance` and after the end.
    #[inline]
    pub fn kind(&self) -> EntryKind {
        self.entry().map_or(EntryKind::Tombstone, |entry| entry.kind)
    }

    /// The value; empty for a tombstone, before the first `advance` and after the end.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match (&self.block, self.entry()) {
            (Some(block), Some(entry)) => &block.bytes()[entry.value.clone()],
            _ => &[],
        }
    }

    /// The value, sharing the memory of its block.
    pub fn to_value(&self) -> Value {
        match (&self.block, self.entry()) {
            (Some(block), Some(entry)) => Value::new(block.bytes().slice(entry.value.clone())),
            _ => Value::default(),
        }
    }

    #[inline]
    fn entry(&self) -> Option<&IntervalEntry> {
        self.interval.entry(self.current)
    }

    /// Starts the walk at `key`: directly after it if `after`, otherwise directly before it.
    fn seek(&mut self, key: &[u8], after: bool) -> Result<()> {
        let at = self.segment.top.seek(key);
        self.partitions = beyond(self.direction, at, self.segment.top.len());
        if at == self.segment.top.len() {
            return Ok(());
        }
        let partition = self.enter_partition(at)?;
        let at = self.segment.block_for(&partition, at, key)?;
        self.blocks = beyond(self.direction, at, partition.len());
        let block = self.enter_block(&partition, at)?;
        let handle = partition.handle(at);
        let Some(at) = self.segment.located(handle, block.intervals_from(key))?.checked_sub(1) else {
            if self.direction == Direction::Reverse {
                self.intervals = 0..0;
            }
            return Ok(());
        };
        self.intervals = beyond(self.direction, at, block.intervals());
        self.enter_interval(at)?;
        let before = self.interval.count_while(|found| found < key || (after && found == key));
        match self.direction {
            Direction::Forward => self.entries.start = before,
            Direction::Reverse => self.entries.end = before,
        }
        Ok(())
    }

    /// Moves to the next interval, block or partition; `false` when none is left.
    fn refill(&mut self) -> Result<bool> {
        if let Some(at) = step(self.direction, &mut self.intervals) {
            self.enter_interval(at)?;
        } else if let Some(at) = step(self.direction, &mut self.blocks) {
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
        (self.partitions, self.blocks, self.intervals, self.entries) = (0..0, 0..0, 0..0, 0..0);
        self.current = NOWHERE;
    }

    fn enter_partition(&mut self, at: usize) -> Result<Arc<Index>> {
        let partition = self.segment.partition(at, self.access)?;
        self.blocks = 0..partition.len();
        self.partition = Some(partition.clone());
        Ok(partition)
    }

    fn enter_block(&mut self, partition: &Index, at: usize) -> Result<Block> {
        let handle = partition.handle(at);
        let block = match self.access {
            Access::Cached => self.segment.data_block(handle)?,
            Access::Scan => match self.segment.cached_block(handle) {
                Some(block) => block,
                None => {
                    let backwards = self.direction == Direction::Reverse;
                    let stored = self.window.stored(&self.segment, partition, at, backwards)?;
                    self.segment.decode_block(handle, stored)?
                }
            },
        };
        self.intervals = 0..block.intervals();
        self.block_offset = handle.offset;
        self.block = Some(block.clone());
        Ok(block)
    }

    fn enter_interval(&mut self, at: usize) -> Result<()> {
        let Some(block) = &self.block else { return Ok(()) };
        let decoded = self.interval.decode(block, at);
        decoded.map_err(|what| self.segment.location(self.block_offset).damaged(what))?;
        self.entries = 0..self.interval.len();
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

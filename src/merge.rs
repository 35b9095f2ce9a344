//! K-way merge of memtables, segments and levels: each key once, its newest entry, in key order or backwards.
//!
//! 1. Every source is at its next entry. A binary heap orders the sources by (key, newest first).
//! 2. The top of the heap is the current entry.
//! 3. To advance, advance every other source at the same key (their entries are older), then the top itself.
//!
//! Sources may come in any order: sequence numbers decide which entry is the newest.

use crate::error::Result;
use crate::key::{EntryKind, Seq, Value, prefix8};
use crate::memtable::MemtableCursor;
use crate::segment::{Access, Direction, SegmentCursor, SegmentFile};
use std::ops::Bound;
use std::sync::Arc;

/// A sorted source of entries, with each key at most once.
pub enum MergeSource {
    /// A memtable, as of a sequence number.
    Memtable(MemtableCursor),
    /// One segment.
    Segment(SegmentCursor),
    /// The segments of a sorted run, in sequence.
    Run(RunCursor),
}

macro_rules! each {
    ($source:expr, $cursor:ident => $call:expr) => {
        match $source {
            MergeSource::Memtable($cursor) => $call,
            MergeSource::Segment($cursor) => $call,
            MergeSource::Run($cursor) => $call,
        }
    };
}

impl MergeSource {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        match self {
            MergeSource::Memtable(cursor) => Ok(cursor.advance()),
            MergeSource::Segment(cursor) => cursor.advance(),
            MergeSource::Run(cursor) => cursor.advance(),
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        each!(self, cursor => cursor.key())
    }

    #[inline]
    fn seq(&self) -> Seq {
        each!(self, cursor => cursor.seq())
    }

    #[inline]
    fn kind(&self) -> EntryKind {
        each!(self, cursor => cursor.kind())
    }

    fn value(&self) -> &[u8] {
        each!(self, cursor => cursor.value())
    }

    fn to_value(&self) -> Value {
        each!(self, cursor => cursor.to_value())
    }
}

/// Walks the segments of a sorted run. Opens each segment when the walk reaches it.
pub struct RunCursor {
    /// In the order of the walk.
    segments: std::vec::IntoIter<Arc<SegmentFile>>,
    current: Option<SegmentCursor>,
    direction: Direction,
    access: Access,
}

impl RunCursor {
    /// Walks `segments`, given in the order of the walk, from `start` in the first one.
    pub fn new(
        segments: Vec<Arc<SegmentFile>>,
        direction: Direction,
        start: Bound<&[u8]>,
        access: Access,
    ) -> Result<Self> {
        let mut segments = segments.into_iter();
        let current = match segments.next() {
            Some(first) => Some(first.cursor(direction, start, access)?),
            None => None,
        };
        Ok(RunCursor { segments, current, direction, access })
    }

    #[inline]
    fn advance(&mut self) -> Result<bool> {
        while let Some(cursor) = &mut self.current {
            if cursor.advance()? {
                return Ok(true);
            }
            self.current = match self.segments.next() {
                Some(next) => Some(next.cursor(self.direction, Bound::Unbounded, self.access)?),
                None => None,
            };
        }
        Ok(false)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.current.as_ref().map(SegmentCursor::key).unwrap_or_default()
    }

    #[inline]
    fn seq(&self) -> Seq {
        self.current.as_ref().map_or(0, SegmentCursor::seq)
    }

    #[inline]
    fn kind(&self) -> EntryKind {
        self.current.as_ref().map_or(EntryKind::Tombstone, SegmentCursor::kind)
    }

    fn value(&self) -> &[u8] {
        self.current.as_ref().map(SegmentCursor::value).unwrap_or_default()
    }

    fn to_value(&self) -> Value {
        self.current.as_ref().map(SegmentCursor::to_value).unwrap_or_default()
    }
}

/// Walks the merged entries. Starts before the first one.
pub struct MergeCursor {
    inputs: Vec<MergeInput>,
    /// Indices into `inputs`, smallest first: a binary heap.
    heap: Vec<usize>,
    direction: Direction,
    started: bool,
}

struct MergeInput {
    source: MergeSource,
    /// `prefix8` of the source's key, which decides most comparisons.
    prefix: u64,
}

impl MergeInput {
    fn advance(&mut self) -> Result<bool> {
        let more = self.source.advance()?;
        if more {
            self.prefix = prefix8(self.source.key());
        }
        Ok(more)
    }

    fn same_key(&self, other: &MergeInput) -> bool {
        self.prefix == other.prefix && self.source.key() == other.source.key()
    }
}

impl MergeCursor {
    /// Merges `sources`, all of which walk in `direction`.
    pub fn new(sources: Vec<MergeSource>, direction: Direction) -> Self {
        let inputs = sources.into_iter().map(|source| MergeInput { source, prefix: 0 }).collect();
        MergeCursor { inputs, heap: Vec::new(), direction, started: false }
    }

    /// Moves to the newest entry of the next key, tombstones included; `false` at the end, and from then on.
    pub fn advance(&mut self) -> Result<bool> {
        if !self.started {
            return self.start();
        }
        while let Some(child) = self.smaller_child(0) {
            if !self.input(child).same_key(self.input(0)) {
                break;
            }
            self.advance_at(child)?;
        }
        if !self.heap.is_empty() {
            self.advance_at(0)?;
        }
        Ok(!self.heap.is_empty())
    }

    fn start(&mut self) -> Result<bool> {
        self.started = true;
        for (i, input) in self.inputs.iter_mut().enumerate() {
            if input.advance()? {
                self.heap.push(i);
            }
        }
        (0..self.heap.len()).rev().for_each(|at| self.sift_down(at));
        Ok(!self.heap.is_empty())
    }

    #[inline]
    fn input(&self, at: usize) -> &MergeInput {
        &self.inputs[self.heap[at]]
    }

    /// Advances the source at position `at` of the heap and restores the heap order.
    fn advance_at(&mut self, at: usize) -> Result<()> {
        let index = self.heap[at];
        if !self.inputs[index].advance()? {
            self.heap.swap_remove(at);
        }
        self.sift_down(at);
        Ok(())
    }

    #[inline]
    fn smaller_child(&self, at: usize) -> Option<usize> {
        let (left, right) = (2 * at + 1, 2 * at + 2);
        if right < self.heap.len() {
            Some(if self.precedes(right, left) { right } else { left })
        } else {
            (left < self.heap.len()).then_some(left)
        }
    }

    fn sift_down(&mut self, mut at: usize) {
        while let Some(child) = self.smaller_child(at) {
            if !self.precedes(child, at) {
                break;
            }
            self.heap.swap(child, at);
            at = child;
        }
    }

    #[inline]
    fn precedes(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.input(a), self.input(b));
        let by_key = a.prefix.cmp(&b.prefix).then_with(|| a.source.key().cmp(b.source.key()));
        let by_key = if self.direction == Direction::Reverse { by_key.reverse() } else { by_key };
        by_key.then_with(|| b.source.seq().cmp(&a.source.seq())).is_lt()
    }

    fn top(&self) -> Option<&MergeSource> {
        self.heap.first().map(|&index| &self.inputs[index].source)
    }

    /// The key at the current position; empty at the end.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.top().map(MergeSource::key).unwrap_or_default()
    }

    /// The sequence number at the current position.
    pub fn seq(&self) -> Seq {
        self.top().map_or(0, MergeSource::seq)
    }

    /// Put or tombstone at the current position.
    pub fn kind(&self) -> EntryKind {
        self.top().map_or(EntryKind::Tombstone, MergeSource::kind)
    }

    /// The value at the current position.
    pub fn value(&self) -> &[u8] {
        self.top().map(MergeSource::value).unwrap_or_default()
    }

    /// The value at the current position, shared.
    pub fn to_value(&self) -> Value {
        self.top().map(MergeSource::to_value).unwrap_or_default()
    }
}

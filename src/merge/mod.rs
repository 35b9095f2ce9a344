//! K-way merge of memtables and sorted runs: each key once, its newest entry, in key order or backwards.
//!
//! 1. Every source is at its next entry, or before a segment that it has not opened. Then its position is
//!    that segment's bound.
//! 2. A heap orders sources by (key, unopened first, newest first). Once opened, its top is the current
//!    entry.
//! 3. The *lead* is the number of further entries in the top's block that precede the entries of all other
//!    sources. They follow without comparisons. A search that starts at the next entry and doubles its steps
//!    finds the lead.
//! 4. After the lead, advance every other source at the same key (their entries are older), then the top.
//!
//! Sources may come in any order: sequence numbers decide which entry is newest.

mod damage;
mod doubts;
mod galloping;
mod inputs;
mod range_mask;
mod run_cursor;
mod run_walk;
mod skipped;
mod source;

use crate::direction::Direction;
use crate::error::Result;
use crate::key::{EntryKind, Seq, SplitKey, Value};
use galloping::count_leading;
use inputs::{Input, Inputs};
use std::ops::Bound;

pub use range_mask::RangeMask;
pub use run_cursor::RunCursor;
pub use run_walk::{RunWalk, begins, reaches};
pub use skipped::{Skipped, SkippedKeys};
pub use source::MergeSource;

/// How many entries hidden by the same range tombstones a walk meets before it tries to pass them at once.
/// Further attempts at the same ones become rarer.
const HIDDEN_STREAK: u32 = 16;

/// Walks the merged entries. Starts before the first one.
pub struct MergeCursor {
    inputs: Inputs,
    /// Indices of inputs, smallest first: a binary heap.
    heap: Vec<usize>,
    /// The top of the heap.
    top: usize,
    /// Number of further entries of the top that need no comparison.
    lead: usize,
    started: bool,
}

impl MergeCursor {
    /// Merges `sources`, all of which walk in `direction`, up to `end`. The mask decides which entries are
    /// not [visible](Self::is_visible).
    pub fn new(
        sources: Vec<MergeSource>,
        direction: Direction,
        end: Bound<&[u8]>,
        mask: Option<RangeMask>,
    ) -> Self {
        let all: Vec<_> = sources.into_iter().map(|source| Input { source, front: 0 }).collect();
        let heap = Vec::with_capacity(all.len());
        let inputs = Inputs { all, direction, end: end.map(<[u8]>::to_vec), mask: mask.map(Box::new) };
        MergeCursor { inputs, heap, top: 0, lead: 0, started: false }
    }

    /// The merge with another mask. Only before its first entry.
    pub fn masked_by(mut self, mask: RangeMask) -> Self {
        self.inputs.mask = Some(Box::new(mask));
        self
    }

    /// Starts another walk, from `start` on and without an end, as a new merge of the same sources would. The
    /// sources keep what they have in memory, and read nothing yet.
    pub fn seek(&mut self, direction: Direction, start: Bound<&[u8]>) {
        self.inputs.all.iter_mut().for_each(|input| input.source.seek(direction, start));
        self.heap.clear();
        (self.top, self.lead, self.started) = (usize::MAX, 0, false);
        (self.inputs.direction, self.inputs.end) = (direction, Bound::Unbounded);
    }

    /// Moves to the next row that a reader sees; `false` at the end, and from then on.
    #[inline]
    pub fn advance_visible(&mut self) -> Result<bool> {
        if self.step_put() { Ok(true) } else { self.find_next() }
    }

    /// The rest of [`advance_visible`](Self::advance_visible). Out of line, to keep callers short.
    #[inline(never)]
    fn find_next(&mut self) -> Result<bool> {
        let found = self.advance()?;
        self.find_visible(found)
    }

    /// Moves to the first row that a reader sees at or after `key`, which must not precede the current entry.
    /// Sources that are already there or beyond stay where they are.
    pub fn seek_ahead(&mut self, key: &[u8]) -> Result<bool> {
        while let Some(&top) = self.heap.first() {
            let source = &mut self.inputs.all[top].source;
            if self.inputs.direction.order(source.key().cmp_bytes(key)).is_ge() {
                break;
            }
            source.seek(self.inputs.direction, Bound::Included(key));
            self.advance_at(0)?;
        }
        let found = self.settle()?;
        self.find_visible(found)
    }

    /// Advances from an entry, if one was `found`, until a reader sees it.
    #[inline]
    fn find_visible(&mut self, mut found: bool) -> Result<bool> {
        let (mut hidden, mut span) = (0u32, None);
        while found && !self.is_visible()? {
            let is_hidden = self.kind() == EntryKind::Put; // The mask was checked for this key only then.
            let now = self.inputs.mask.as_ref().map(|mask| mask.spans());
            if span != now {
                (hidden, span) = (0, now); // Each of many ranges is passed after as few entries as the first.
            }
            hidden += u32::from(is_hidden);
            found = if is_hidden && hidden >= HIDDEN_STREAK && hidden.is_power_of_two() {
                self.pass_deleted()?
            } else {
                self.advance()?
            };
        }
        Ok(found)
    }

    /// Moves past the current entry, which is hidden, and past the deleted range as far as the sources allow.
    /// `false` at the end.
    fn pass_deleted(&mut self) -> Result<bool> {
        let Some((edge, deleted)) =
            self.inputs.mask.as_ref().and_then(|mask| mask.edge(self.inputs.direction))
        else {
            return self.advance();
        };
        let here = self.key().to_vec();
        let left = std::mem::take(&mut self.heap);
        // An error ends the walk, as in `advance`.
        let mut heap = Vec::with_capacity(left.len());
        for index in left {
            if self.inputs.pass(index, &here, &edge, deleted)? {
                heap.push(index);
            }
        }
        self.heap = heap;
        self.order_all();
        self.settle()
    }

    /// Whether there was anything to merge.
    pub fn has_sources(&self) -> bool {
        !self.inputs.all.is_empty()
    }

    /// Moves to the newest entry of the next key, tombstones included; `false` at the end, and from then on.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        if self.lead > 0
            && let Some(top) = self.inputs.all.get_mut(self.top)
        {
            self.lead -= 1;
            top.source.step();
            return Ok(true);
        }
        self.advance_top()
    }

    /// Moves to the next entry if it is in the lead, and known to be a visible row without looking at it.
    /// `false` says nothing about the next entry.
    #[inline]
    fn step_put(&mut self) -> bool {
        let Some(top) =
            self.inputs.all.get_mut(self.top).filter(|_| self.lead > 0 && self.inputs.mask.is_none())
        else {
            return false;
        };
        let is_put = top.source.puts_ahead(1) > 0;
        if is_put {
            top.source.step();
            self.lead -= 1;
        }
        is_put
    }

    /// Moves over at most `most` entries of the lead at once, all of them puts. Returns how many; 0 says
    /// nothing about the next entry.
    #[inline]
    pub fn skip_puts(&mut self, most: usize) -> usize {
        let Some(top) = self.inputs.all.get_mut(self.top).filter(|_| self.inputs.mask.is_none()) else {
            return 0;
        };
        let skipped = top.source.puts_ahead(most.min(self.lead));
        if skipped > 0 {
            top.source.step_over(skipped);
            self.lead -= skipped;
        }
        skipped
    }

    #[inline(never)]
    fn advance_top(&mut self) -> Result<bool> {
        if !self.started {
            self.start()?;
        } else if !self.heap.is_empty() {
            while let Some(child) = self.smaller_child(0) {
                let (key, child_key) = (self.input(0).source.key(), self.input(child).source.key());
                if key.front() != self.input(child).front || key != child_key {
                    break;
                }
                self.advance_at(child)?;
            }
            self.advance_at(0)?;
        }
        self.settle()
    }

    /// Opens the next segment, if due, and finds the lead. Returns whether an entry is within the end.
    fn settle(&mut self) -> Result<bool> {
        while !self.heap.is_empty() && !self.input(0).source.is_open() {
            self.advance_at(0)?;
        }
        if !self.heap.is_empty() && !self.inputs.is_within(self.input(0).source.key()) {
            self.heap.clear();
        }
        self.top = self.heap.first().copied().unwrap_or(usize::MAX);
        self.lead = self.find_lead();
        Ok(!self.heap.is_empty())
    }

    fn start(&mut self) -> Result<()> {
        self.started = true;
        for index in 0..self.inputs.all.len() {
            if self.inputs.advance(index)? {
                self.heap.push(index);
            }
        }
        self.order_all();
        Ok(())
    }

    fn order_all(&mut self) {
        (0..self.heap.len()).rev().for_each(|at| self.sift_down(at));
    }

    fn find_lead(&self) -> usize {
        let Some(top) = self.inputs.all.get(self.top).map(|input| &input.source) else { return 0 };
        let next = self.smaller_child(0).map(|child| self.input(child));
        if next.is_none() && self.inputs.end == Bound::Unbounded {
            return top.ahead();
        }
        let leads = |n: usize| {
            let key = top.key_ahead(n);
            let precedes = next.is_none_or(|next| {
                let order = key.front().cmp(&next.front).then_with(|| key.cmp(&next.source.key()));
                self.inputs.direction.order(order).is_lt()
            });
            precedes && self.inputs.is_within(key)
        };
        count_leading(top.ahead(), leads)
    }

    #[inline]
    fn input(&self, at: usize) -> &Input {
        &self.inputs.all[self.heap[at]]
    }

    /// Advances the source at heap position `at` and restores the heap order.
    fn advance_at(&mut self, at: usize) -> Result<()> {
        let index = self.heap[at];
        if !self.inputs.advance(index)? {
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

    fn precedes(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.input(a), self.input(b));
        let by_age = |a: &MergeSource, b: &MergeSource| {
            a.is_open().cmp(&b.is_open()).then_with(|| b.seq().cmp(&a.seq()))
        };
        self.inputs.direction.order(a.cmp_key(b)).then_with(|| by_age(&a.source, &b.source)).is_lt()
    }

    fn top(&self) -> Option<&MergeSource> {
        self.inputs.all.get(self.top).map(|input| &input.source).filter(|_| !self.heap.is_empty())
    }

    /// The key at the current position; empty at the end.
    #[inline]
    pub fn key(&self) -> SplitKey<'_> {
        self.top().map(MergeSource::key).unwrap_or_default()
    }

    /// The sequence number at the current position.
    pub fn seq(&self) -> Seq {
        self.top().map_or(0, MergeSource::seq)
    }

    /// Put or tombstone at the current position.
    #[inline]
    pub fn kind(&self) -> EntryKind {
        self.top().map_or(EntryKind::Tombstone, MergeSource::kind)
    }

    /// Whether readers see the entry at the current position: it is a put, and no range tombstone deletes it.
    ///
    /// # Errors
    /// The errors of reading range tombstones.
    #[inline]
    pub fn is_visible(&mut self) -> Result<bool> {
        match self.kind() {
            EntryKind::Put if self.inputs.mask.is_some() => self.is_unmasked(),
            kind => Ok(kind == EntryKind::Put),
        }
    }

    #[inline(never)]
    fn is_unmasked(&mut self) -> Result<bool> {
        let Some(top) = self.inputs.all.get(self.top) else { return Ok(false) };
        let mask = self.inputs.mask.as_mut().map(|mask| mask.hides(top.source.key(), top.source.seq()));
        Ok(!mask.unwrap_or(Ok(false))?)
    }

    /// The value at the current position.
    pub fn value(&self) -> &[u8] {
        self.top().map(MergeSource::value).unwrap_or_default()
    }

    /// The value at the current position, shared.
    #[inline]
    pub fn to_value(&self) -> Value {
        self.top().map(MergeSource::to_value).unwrap_or_default()
    }
}

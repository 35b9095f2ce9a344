//! K-way merge of memtables and sorted runs: each key once, its newest entry, in key order or backwards.
//!
//! 1. Every source is at its next entry, or before a segment that it has not opened. Then its position is
//!    that segment's bound.
//! 2. A list orders sources by (key, unopened first, newest first). Once opened, its first is the *top*: it
//!    has the current entry.
//! 3. To move on, advance every other source at the same key (their entries are older), then the top, each to
//!    its new place in the list.
//! 4. If the same source is the top again, it may be for long. Its *lead* is the number of further entries in
//!    its block that precede the entries of all other sources. They follow without comparisons. A search that
//!    starts at the next entry and doubles its steps finds the lead.
//!
//! Sources may come in any order: sequence numbers decide which entry is newest.

mod damage;
mod doubts;
mod galloping;
mod inputs;
mod order;
mod pass;
mod pass_rows;
mod range_mask;
mod read_bytes;
mod run_cursor;
mod run_walk;
mod skipped;
mod source;

use crate::direction::Direction;
use crate::error::Result;
use crate::key::{EntryKind, Seq, SplitKey, Time, Value};
use galloping::count_leading;
use inputs::Inputs;
use order::{Place, ordered, sink};
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
    /// The inputs that are not at their end, in order.
    order: Vec<Place>,
    /// The input with the current entry.
    top: usize,
    /// Number of further entries of the top that need no comparison.
    lead: usize,
    /// The current entry was in the lead, so no other input has its key, and the top's place has the front of
    /// an earlier key.
    led: bool,
    started: bool,
    /// The moment of the walk: it shows no value that has expired by then.
    time: Time,
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
        let order = Vec::with_capacity(sources.len());
        let inputs = Inputs::new(sources, direction, end, mask.map(Box::new));
        let time = Time::START;
        MergeCursor { inputs, order, top: usize::MAX, lead: 0, led: false, started: false, time }
    }

    /// The merge at a moment: values that have expired by then are not [visible](Self::is_visible).
    pub fn at(self, time: Time) -> Self {
        MergeCursor { time, ..self }
    }

    /// The merge with another mask. Only before its first entry.
    pub fn masked_by(mut self, mask: RangeMask) -> Self {
        self.inputs.mask = Some(Box::new(mask));
        self
    }

    /// Starts another walk, from `start` on and without an end, as a new merge of the same sources would. The
    /// sources keep what they have in memory, and read nothing yet.
    pub fn seek(&mut self, direction: Direction, start: Bound<&[u8]>) {
        self.inputs.all.iter_mut().for_each(|source| source.seek(direction, start));
        self.order.clear();
        (self.top, self.lead, self.led, self.started) = (usize::MAX, 0, false, false);
        (self.inputs.direction, self.inputs.end) = (direction, Bound::Unbounded);
    }

    /// Moves to the next row that a reader sees; `false` at the end, and from then on.
    #[inline]
    pub fn advance_visible(&mut self) -> Result<bool> {
        // The lead is in the block of a row that was shown.
        if self.step_put() { Ok(true) } else { self.find_next_value() }
    }

    /// The rest of [`advance_visible`](Self::advance_visible). Out of line, to keep callers short.
    #[inline(never)]
    fn find_next_value(&mut self) -> Result<bool> {
        let found = self.find_next()?;
        self.load_value()?;
        Ok(found)
    }

    /// Makes the value of the current row available.
    #[inline]
    fn load_value(&mut self) -> Result<()> {
        self.inputs.all.get_mut(self.top).map_or(Ok(()), MergeSource::load_value)
    }

    /// Moves to the next row that a reader sees, whose value may not be available yet.
    #[inline]
    fn find_next(&mut self) -> Result<bool> {
        let found = self.advance()?;
        self.find_visible(found)
    }

    /// Moves to the first row that a reader sees at or after `key`, which must not precede the current entry.
    /// Sources that are already there or beyond stay where they are.
    pub fn seek_ahead(&mut self, key: &[u8]) -> Result<bool> {
        while let Some(&top) = self.order.first() {
            let source = &mut self.inputs.all[top.input];
            if self.inputs.direction.order(source.key().cmp_bytes(key)).is_ge() {
                break;
            }
            source.seek(self.inputs.direction, Bound::Included(key));
            self.advance_at(0)?;
            self.led = false;
        }
        let found = self.settle()?;
        let found = self.find_visible(found)?;
        self.load_value()?;
        Ok(found)
    }

    /// Advances from an entry, if one was `found`, until a reader sees it.
    #[inline]
    fn find_visible(&mut self, mut found: bool) -> Result<bool> {
        let (mut hidden, mut span) = (0u32, None);
        while found && !self.is_visible()? {
            let is_hidden = self.kind().is_alive(self.time); // The mask was checked for this key only then.
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
        let left = std::mem::take(&mut self.order);
        // An error ends the walk, as in `advance`.
        let mut inputs = Vec::with_capacity(left.len());
        for Place { input, .. } in left {
            if self.inputs.pass(input, &here, &edge, deleted)? {
                inputs.push(input);
            }
        }
        self.order_all(inputs);
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
            self.led = true;
            top.step();
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
        let is_put = top.puts_ahead(1) > 0;
        if is_put {
            top.step();
            self.lead -= 1;
            self.led = true;
        }
        is_put
    }

    /// Moves over at most `most` entries of the lead at once, all of them puts. Returns how many; 0 says
    /// nothing about the next entry.
    #[inline]
    fn skip_puts(&mut self, most: u64) -> u64 {
        let lead = self.lead.min(usize::try_from(most).unwrap_or(usize::MAX));
        let Some(top) = self.inputs.all.get_mut(self.top).filter(|_| lead > 0 && self.inputs.mask.is_none())
        else {
            return 0;
        };
        let skipped = top.puts_ahead(lead);
        if skipped > 0 {
            top.step_over(skipped);
            self.lead -= skipped;
            self.led = true;
        }
        skipped as u64
    }

    #[inline(never)]
    fn advance_top(&mut self) -> Result<bool> {
        if !self.started {
            self.start()?;
            return self.settle();
        }
        let before = self.top;
        if !self.led {
            self.pass_older()?;
        }
        self.advance_at(0)?;
        let found = self.settle()?;
        if self.top == before || self.order.len() == 1 {
            self.lead = self.find_lead();
        }
        Ok(found)
    }

    /// Advances the other inputs at the key of the top.
    #[inline]
    fn pass_older(&mut self) -> Result<()> {
        while self.order.get(1).is_some_and(|next| next.is_older) {
            self.advance_at(1)?;
        }
        Ok(())
    }

    /// Opens the next segment, if due. Returns whether an entry is within the end.
    #[inline]
    fn settle(&mut self) -> Result<bool> {
        (self.lead, self.led) = (0, false);
        while let Some(first) = self.order.first()
            && !self.inputs.all[first.input].is_open()
        {
            self.advance_at(0)?;
        }
        match self.order.first().map(|first| first.input) {
            Some(top) if self.inputs.is_at_entry_within(top) => self.top = top,
            _ => {
                self.order.clear();
                self.top = usize::MAX;
            }
        }
        Ok(!self.order.is_empty())
    }

    fn start(&mut self) -> Result<()> {
        self.started = true;
        // A row whose values are damaged must be passed as its keys are, where damage is skipped.
        let skips_damage = self.inputs.mask.as_ref().is_some_and(|mask| mask.skips_damage());
        let defers = self.inputs.all.len() > 1 && !skips_damage;
        self.inputs.all.iter_mut().for_each(|source| source.defer_values(defers));
        let mut inputs = Vec::with_capacity(self.inputs.all.len());
        for input in 0..self.inputs.all.len() {
            if self.inputs.advance(input)? {
                inputs.push(input);
            }
        }
        self.order_all(inputs);
        Ok(())
    }

    /// Puts these inputs in order.
    fn order_all(&mut self, inputs: Vec<usize>) {
        let (all, direction) = (&self.inputs.all, self.inputs.direction);
        self.order.clear();
        self.order.extend(inputs.into_iter().map(|input| Place::of(all, input, direction)));
        for at in (0..self.order.len()).rev() {
            sink(&mut self.order[at..], all, direction);
        }
    }

    fn find_lead(&self) -> usize {
        let Some(top) = self.inputs.all.get(self.top) else { return 0 };
        let next = self.order.get(1);
        if next.is_none() && self.inputs.end == Bound::Unbounded {
            return top.ahead();
        }
        let next = next.map(|next| (next.front, &self.inputs.all[next.input]));
        let leads = |n: usize| {
            let key = top.key_ahead(n);
            let precedes = next.is_none_or(|(next_front, next)| {
                let front = ordered(key.front(), self.inputs.direction);
                let same_front = || self.inputs.direction.order(key.cmp_same_front(next.key()));
                front.cmp(&next_front).then_with(same_front).is_lt()
            });
            precedes && self.inputs.is_within(key)
        };
        count_leading(top.ahead(), leads)
    }

    /// Advances the input at place `at` and moves it to its new place.
    #[inline]
    fn advance_at(&mut self, at: usize) -> Result<()> {
        let Some(place) = self.order.get_mut(at) else { return Ok(()) };
        let stepped = self.inputs.all.get_mut(place.input).and_then(MergeSource::step_to);
        place.front = match stepped {
            Some(front) => ordered(front, self.inputs.direction),
            None if self.inputs.advance(place.input)? => {
                Place::of(&self.inputs.all, place.input, self.inputs.direction).front
            }
            None => {
                self.order.remove(at);
                return Ok(());
            }
        };
        sink(&mut self.order[at..], &self.inputs.all, self.inputs.direction);
        Ok(())
    }

    fn top(&self) -> Option<&MergeSource> {
        self.inputs.all.get(self.top)
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
        self.top().map_or(EntryKind::TOMBSTONE, MergeSource::kind)
    }

    /// Whether readers see the entry at the current position: it is a put that has not expired, and no range
    /// tombstone deletes it.
    ///
    /// # Errors
    /// The errors of reading range tombstones.
    #[inline]
    pub fn is_visible(&mut self) -> Result<bool> {
        let is_alive = self.kind().is_alive(self.time);
        if is_alive && self.inputs.mask.is_some() { self.is_unmasked() } else { Ok(is_alive) }
    }

    #[inline(never)]
    fn is_unmasked(&mut self) -> Result<bool> {
        let Some(top) = self.inputs.all.get(self.top) else { return Ok(false) };
        let mask = self.inputs.mask.as_mut().map(|mask| mask.hides(top.key(), top.seq()));
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

//! Ordered iteration over one moment of the store, lazily and from both ends.

use super::view::View;
use crate::error::Result;
use crate::key::{EntryKind, Seq, Value};
use crate::merge::MergeCursor;
use crate::segment::Direction;
use std::ops::Bound;
use std::sync::Arc;

/// An iterator over keys and values in key order. `rev()` and `next_back()` iterate from the other end. It holds one block per run in
/// memory, and keeps the segments and memtables that it started with. It ends after an error.
///
/// The block cache keeps the first 256 KiB that a range reads of each run. Beyond, it keeps blocks only while it has room, so a scan of
/// the whole store evicts next to nothing.
pub struct Range {
    view: Arc<View>,
    seq: Seq,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    front: Option<MergeCursor>,
    back: Option<MergeCursor>,
    done: bool,
}

impl Range {
    pub(crate) fn new(view: Arc<View>, seq: Seq, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> Self {
        Range { view, seq, lower, upper, front: None, back: None, done: false }
    }

    /// Iterates over the keys alone, from where this iterator is. Reads no value, so it is faster where values are large.
    pub fn keys(self) -> Keys {
        Keys(self)
    }

    /// Moves the end for `direction` to the next row; `false` if there is none.
    fn step(&mut self, direction: Direction) -> Result<bool> {
        let (mine, other, start, end) = match direction {
            Direction::Forward => (&mut self.front, &self.back, &self.lower, &self.upper),
            Direction::Reverse => (&mut self.back, &self.front, &self.upper, &self.lower),
        };
        let merge = match mine {
            Some(merge) => merge,
            None => {
                let (start, end) = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
                mine.insert(self.view.merge(self.seq, direction, start, end))
            }
        };
        while merge.advance()? {
            // Stop where the other end has already been.
            let met = other.as_ref().is_some_and(|other| match direction {
                Direction::Forward => merge.key() >= other.key(),
                Direction::Reverse => merge.key() <= other.key(),
            });
            if met {
                return Ok(false);
            }
            if merge.kind() == EntryKind::Put {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What `take` makes of the row that is `skipped` rows further on.
    #[inline]
    fn next_with<T>(
        &mut self,
        direction: Direction,
        skipped: usize,
        take: fn(&MergeCursor) -> T,
    ) -> Option<Result<T>> {
        for left in (0..=skipped).rev() {
            let found = if self.done { Ok(false) } else { self.step(direction) };
            if !matches!(found, Ok(true)) {
                self.done = true;
                (self.front, self.back) = (None, None);
                return found.err().map(Err);
            }
            if left == 0 {
                break;
            }
        }
        let merge = match direction {
            Direction::Forward => self.front.as_ref(),
            Direction::Reverse => self.back.as_ref(),
        };
        merge.map(|merge| Ok(take(merge)))
    }
}

#[inline]
fn row(merge: &MergeCursor) -> (Vec<u8>, Value) {
    (merge.key().to_vec(), merge.to_value())
}

/// `nth` and `nth_back` skip rows without copying them. An error among those is returned, not skipped.
impl Iterator for Range {
    type Item = Result<(Vec<u8>, Value)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_with(Direction::Forward, 0, row)
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.next_with(Direction::Forward, n, row)
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_with(Direction::Reverse, 0, row)
    }

    fn nth_back(&mut self, n: usize) -> Option<Self::Item> {
        self.next_with(Direction::Reverse, n, row)
    }
}

impl std::iter::FusedIterator for Range {}

/// An iterator over keys in key order, without their values. Made by [`Range::keys`]; otherwise like [`Range`].
pub struct Keys(Range);

fn key(merge: &MergeCursor) -> Vec<u8> {
    merge.key().to_vec()
}

impl Iterator for Keys {
    type Item = Result<Vec<u8>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_with(Direction::Forward, 0, key)
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.0.next_with(Direction::Forward, n, key)
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_with(Direction::Reverse, 0, key)
    }

    fn nth_back(&mut self, n: usize) -> Option<Self::Item> {
        self.0.next_with(Direction::Reverse, n, key)
    }
}

impl std::iter::FusedIterator for Keys {}

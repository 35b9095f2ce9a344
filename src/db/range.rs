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

    fn step(&mut self, direction: Direction) -> Result<Option<(Vec<u8>, Value)>> {
        let (mine, other, start, end) = match direction {
            Direction::Forward => (&mut self.front, &self.back, &self.lower, &self.upper),
            Direction::Reverse => (&mut self.back, &self.front, &self.upper, &self.lower),
        };
        let merge = match mine {
            Some(merge) => merge,
            None => {
                let (start, end) = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
                mine.insert(self.view.merge(self.seq, direction, start, end)?)
            }
        };
        loop {
            if !merge.advance()? {
                return Ok(None);
            }
            let key = merge.key();
            let beyond = match direction {
                Direction::Forward => match &self.upper {
                    Bound::Included(upper) => key > upper.as_slice(),
                    Bound::Excluded(upper) => key >= upper.as_slice(),
                    Bound::Unbounded => false,
                },
                Direction::Reverse => match &self.lower {
                    Bound::Included(lower) => key < lower.as_slice(),
                    Bound::Excluded(lower) => key <= lower.as_slice(),
                    Bound::Unbounded => false,
                },
            };
            // Stop where the other end has already been.
            let met = other.as_ref().is_some_and(|other| match direction {
                Direction::Forward => key >= other.key(),
                Direction::Reverse => key <= other.key(),
            });
            if beyond || met {
                return Ok(None);
            }
            if merge.kind() == EntryKind::Put {
                return Ok(Some((key.to_vec(), merge.to_value())));
            }
        }
    }

    fn next_towards(&mut self, direction: Direction) -> Option<Result<(Vec<u8>, Value)>> {
        if self.done {
            return None;
        }
        let item = self.step(direction).transpose();
        self.done = !matches!(item, Some(Ok(_)));
        if self.done {
            (self.front, self.back) = (None, None);
        }
        item
    }
}

impl Iterator for Range {
    type Item = Result<(Vec<u8>, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_towards(Direction::Forward)
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_towards(Direction::Reverse)
    }
}

impl std::iter::FusedIterator for Range {}

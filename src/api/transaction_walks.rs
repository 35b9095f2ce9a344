//! Ranges and cursors of a [`Transaction`](crate::Transaction), which remember how far they went.

use super::cursor::Cursor;
use super::range::Range;
use crate::bounds::KeyRange;
use crate::direction::Direction;
use crate::engine::read::Reader;
use crate::engine::read::view::View;
use crate::engine::transaction::Work;
use crate::error::Result;
use crate::key::{AsOf, Space, Value};
use crate::sync::{Mutex, lock};
use std::ops::Bound;
use std::sync::Arc;

/// What a walk has read is known when it is dropped. Until then, it counts as everything.
struct Walk<'t>(&'t Mutex<Work>);

impl<'t> Walk<'t> {
    /// Begins a walk. Returns it with what it reads from.
    fn begin(reader: &Reader, work: &'t Mutex<Work>) -> (Self, Arc<View>, AsOf) {
        let mut state = lock(work);
        state.reads.begin_walk();
        (Walk(work), state.view_with_own(reader), state.as_of())
    }

    fn add(&self, range: KeyRange) {
        let mut work = lock(self.0);
        if work.tracks_reads() {
            work.reads.add_range(range);
        }
    }

    /// Fails if the transaction has become too large.
    fn check_size(&self) -> Result<()> {
        lock(self.0).check_size()
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        lock(self.0).reads.end_walk();
    }
}

/// An iterator over keys and values of a transaction, in key order, from both ends. See
/// [`Transaction::range`](crate::Transaction::range).
pub struct TransactionRange<'t> {
    range: Range,
    /// `None` if it was refused, and reads nothing.
    bounds: Option<KeyRange>,
    walk: Walk<'t>,
    has_begun: bool,
}

impl<'t> TransactionRange<'t> {
    pub(super) fn new(reader: &Reader, work: &'t Mutex<Work>, space: Space, range: KeyRange) -> Self {
        let (walk, view, as_of) = Walk::begin(reader, work);
        // The transaction may have written the first key with a head.
        let bounds = space.stored_range(range);
        let range = Range::new(view, as_of, bounds.clone(), space.heads(true));
        TransactionRange { range, bounds: Some(bounds), walk, has_begun: false }
    }

    /// The next row, borrowed until the next call; `None` at the end. Faster than [`next`](Iterator::next).
    ///
    /// # Errors
    /// The errors of [`Db::get`](crate::Keyspace::get). An error is returned once and ends the range.
    /// [`Error::TransactionTooLarge`](crate::Error::TransactionTooLarge) instead of the first row.
    pub fn next_row(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.begin()?;
        self.range.next_row()
    }

    /// [`next_row`](Self::next_row) from the other end.
    ///
    /// # Errors
    /// The errors of [`next_row`](Self::next_row).
    pub fn next_row_back(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.begin()?;
        self.range.next_row_back()
    }

    /// Counts the remaining rows: [`Range::count`].
    ///
    /// # Errors
    /// The errors of [`next_row`](Self::next_row).
    #[must_use = "`count` of a range returns a `Result<u64>`: use `range.count()?`"]
    pub fn count(mut self) -> Result<u64> {
        self.begin()?;
        self.range.count_rows().1
    }

    /// The last remaining row, read from the other end.
    ///
    /// # Errors
    /// The errors of [`next_row`](Self::next_row).
    pub fn last(mut self) -> Result<Option<(Vec<u8>, Value)>> {
        self.next_back().transpose()
    }

    /// Before the first row: fails, and ends the range, if the transaction has become too large.
    #[inline]
    fn begin(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.walk.check_size().inspect_err(|_| (self.range, self.bounds) = (Range::empty(), None))?;
        }
        Ok(())
    }
}

/// `nth`, `count` and `last` are as those of [`Range`].
impl Iterator for TransactionRange<'_> {
    type Item = Result<(Vec<u8>, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.nth(0)
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        if let Err(error) = self.begin() {
            return Some(Err(error));
        }
        self.range.nth(n)
    }

    fn count(mut self) -> usize {
        if self.begin().is_err() {
            return 0;
        }
        self.range.count_rows().0 as usize
    }

    fn last(mut self) -> Option<Self::Item> {
        self.next_back()
    }
}

impl DoubleEndedIterator for TransactionRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.nth_back(0)
    }

    fn nth_back(&mut self, n: usize) -> Option<Self::Item> {
        if let Err(error) = self.begin() {
            return Some(Err(error));
        }
        self.range.nth_back(n)
    }
}

impl std::iter::FusedIterator for TransactionRange<'_> {}

impl Drop for TransactionRange<'_> {
    fn drop(&mut self) {
        let Some((lower, upper)) = self.bounds.take() else { return };
        match self.range.progress() {
            (_, _, true) => self.walk.add((lower, upper)),
            (front, back, false) => {
                if let Some(key) = front {
                    self.walk.add((lower, Bound::Included(key)));
                }
                if let Some(key) = back {
                    self.walk.add((Bound::Included(key), upper));
                }
            }
        }
    }
}

/// A cursor over the rows of a transaction. Its methods are those of [`Cursor`].
pub struct TransactionCursor<'t> {
    cursor: Cursor,
    space: Space,
    /// The stored keys between which it has moved since the last seek. `None` if that has failed: it is at no
    /// row.
    walked: Option<KeyRange>,
    walk: Walk<'t>,
}

impl<'t> TransactionCursor<'t> {
    pub(super) fn new(reader: &Reader, work: &'t Mutex<Work>, space: Space) -> Self {
        let (walk, view, as_of) = Walk::begin(reader, work);
        let cursor = Cursor::new(&view, as_of, space, space.heads(true), None);
        TransactionCursor { cursor, space, walked: None, walk }
    }

    /// Moves to the first row whose key is `key` or greater.
    ///
    /// # Errors
    /// The errors of [`Cursor::seek`]; [`Error::TransactionTooLarge`](crate::Error::TransactionTooLarge).
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.leave()?;
        let found = self.cursor.seek(key.as_ref())?;
        self.walked = Some((Bound::Included(self.space.stored(key.as_ref())), self.here(Direction::Forward)));
        Ok(found)
    }

    /// Moves to the last row whose key is `key` or less.
    ///
    /// # Errors
    /// The errors of [`seek`](Self::seek).
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.leave()?;
        let found = self.cursor.seek_for_prev(key.as_ref())?;
        self.walked = Some((self.here(Direction::Reverse), Bound::Included(self.space.stored(key.as_ref()))));
        Ok(found)
    }

    /// Moves to the first row.
    ///
    /// # Errors
    /// The errors of [`seek`](Self::seek).
    pub fn seek_to_first(&mut self) -> Result<bool> {
        self.leave()?;
        let found = self.cursor.seek_to_first()?;
        self.walked = Some((self.first(), self.here(Direction::Forward)));
        Ok(found)
    }

    /// Moves to the last row.
    ///
    /// # Errors
    /// The errors of [`seek`](Self::seek).
    pub fn seek_to_last(&mut self) -> Result<bool> {
        self.leave()?;
        let found = self.cursor.seek_to_last()?;
        self.walked = Some((self.here(Direction::Reverse), self.end()));
        Ok(found)
    }

    /// Moves to the next row. A cursor at no row stays there.
    ///
    /// # Errors
    /// The errors of [`seek`](Self::seek).
    #[expect(clippy::should_implement_trait, reason = "as for `Cursor`")]
    pub fn next(&mut self) -> Result<bool> {
        if !self.is_valid() {
            return Ok(false);
        }
        let found = self.cursor.next()?;
        let here = self.here(Direction::Forward);
        if let Some((_, upper)) = &mut self.walked
            && is_beyond(&here, upper, |here, upper| here > upper)
        {
            *upper = here;
        }
        Ok(found)
    }

    /// Moves to the previous row. A cursor at no row stays there.
    ///
    /// # Errors
    /// The errors of [`seek`](Self::seek).
    pub fn prev(&mut self) -> Result<bool> {
        if !self.is_valid() {
            return Ok(false);
        }
        let found = self.cursor.prev()?;
        let here = self.here(Direction::Reverse);
        if let Some((lower, _)) = &mut self.walked
            && is_beyond(&here, lower, |here, lower| here < lower)
        {
            *lower = here;
        }
        Ok(found)
    }

    /// Whether it is at a row.
    pub fn is_valid(&self) -> bool {
        self.walked.is_some() && self.cursor.is_valid()
    }

    /// The key of the current row.
    pub fn key(&self) -> Option<&[u8]> {
        self.walked.as_ref().and_then(|_| self.cursor.key())
    }

    /// The value of the current row.
    pub fn value(&self) -> Option<&[u8]> {
        self.walked.as_ref().and_then(|_| self.cursor.value())
    }

    /// The value of the current row, to keep.
    pub fn to_value(&self) -> Option<Value> {
        self.walked.as_ref().and_then(|_| self.cursor.to_value())
    }

    /// The current row's key as the end of what was walked; without a row, that of the keyspace.
    fn here(&self, direction: Direction) -> Bound<Vec<u8>> {
        match (self.cursor.stored_key(), direction) {
            (Some(key), _) => Bound::Included(key.to_vec()),
            (None, Direction::Forward) => self.end(),
            (None, Direction::Reverse) => self.first(),
        }
    }

    fn first(&self) -> Bound<Vec<u8>> {
        Bound::Included(self.space.bounds().0)
    }

    fn end(&self) -> Bound<Vec<u8>> {
        Bound::Excluded(self.space.bounds().1)
    }

    /// Before a seek: what was walked so far counts.
    fn leave(&mut self) -> Result<()> {
        if let Some(walked) = self.walked.take() {
            self.walk.add(walked);
        }
        self.walk.check_size()
    }
}

/// Whether `here` lies beyond the end of what was walked.
fn is_beyond(here: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>, beyond: fn(&[u8], &[u8]) -> bool) -> bool {
    match (here, end) {
        (_, Bound::Unbounded) | (Bound::Unbounded, _) => false,
        (Bound::Included(here) | Bound::Excluded(here), Bound::Included(end) | Bound::Excluded(end)) => {
            beyond(here, end)
        }
    }
}

impl Drop for TransactionCursor<'_> {
    fn drop(&mut self) {
        if let Some(walked) = self.walked.take() {
            self.walk.add(walked);
        }
    }
}

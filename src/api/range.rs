//! Ordered iteration over one moment of the store, lazily and from both ends.

use crate::bounds::KeyRange;
use crate::direction::Direction;
use crate::engine::read::view::View;
use crate::error::{Error, Result};
use crate::key::{AsOf, Heads, SplitKey, Value};
use crate::merge::{MergeCursor, Skipped};
use crate::segment::Access;
use std::ops::Bound;
use std::sync::Arc;

/// Rows from which on a skip reads keys only, unless damage is skipped. It enters a block of each run then.
const LONG_SKIP: u64 = 64;

/// An iterator over keys and values in key order. `rev()` and `next_back()` iterate from the other end. It
/// holds two blocks per run in memory, and keeps the segments and memtables that it started with. It ends
/// after an error, unless told to [skip damage](Self::skip_damaged).
///
/// The block cache keeps the first 256 KiB that a range reads of each run. Beyond that, it keeps blocks only
/// while it has room, so a scan of the whole store evicts next to nothing.
pub struct Range {
    /// `None` if it has no rows.
    view: Option<Arc<View>>,
    /// What the stored keys have in front.
    heads: Heads,
    /// Returned instead of the first row.
    failure: Option<Box<Error>>,
    as_of: AsOf,
    /// The bounds of the stored keys.
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    front: Option<MergeCursor>,
    back: Option<MergeCursor>,
    done: bool,
    access: Access,
    /// The key lent last.
    key: Vec<u8>,
    /// Collects the damage that it skips.
    skipped: Option<Skipped>,
}

impl Range {
    /// The rows between two bounds of stored keys, which have these heads.
    pub(super) fn new(view: Arc<View>, as_of: AsOf, (lower, upper): KeyRange, heads: Heads) -> Self {
        Range { view: Some(view), as_of, heads, lower, upper, done: false, ..Range::empty() }
    }

    /// A range without rows.
    pub(super) fn empty() -> Self {
        Range {
            view: None,
            heads: Heads::None,
            failure: None,
            as_of: AsOf::seq(0),
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
            front: None,
            back: None,
            done: true,
            access: Access::Range,
            key: Vec::new(),
            skipped: None,
        }
    }

    /// A range that returns an error instead of rows.
    pub(super) fn failed(error: Error) -> Self {
        Range { failure: Some(Box::new(error)), done: false, ..Range::empty() }
    }

    /// The last stored key of each end, if it has started, and whether the range is at its end.
    pub(super) fn progress(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>, bool) {
        let key = |merge: &MergeCursor| merge.key().to_vec();
        (self.front.as_ref().map(key), self.back.as_ref().map(key), self.done)
    }

    /// The next row, borrowed until the next call; `None` at the end. Faster than [`next`](Iterator::next),
    /// which allocates a key and shares the value. Both may be mixed.
    ///
    /// # Errors
    /// The errors of [`Db::get`](crate::Keyspace::get). An error is returned once and ends the range.
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        Ok(self.lend(Direction::Forward)?.map(|(key, merge)| (key, merge.value())))
    }

    /// [`next_row`](Self::next_row) from the other end.
    ///
    /// # Errors
    /// The errors of [`next_row`](Self::next_row).
    #[inline]
    pub fn next_row_back(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        Ok(self.lend(Direction::Reverse)?.map(|(key, merge)| (key, merge.value())))
    }

    /// Counts the remaining rows, without copying any: `let rows: u64 = range.count()?;`. It hides
    /// [`Iterator::count`], which cannot return an error and would count only the rows before one. Hence the
    /// `Result`, and `u64` as for every number of rows.
    ///
    /// # Errors
    /// The errors of [`next_row`](Self::next_row).
    #[must_use = "`count` of a range returns a `Result<u64>`: use `range.count()?`"]
    pub fn count(mut self) -> Result<u64> {
        self.count_rows().1
    }

    /// The last remaining row. It is read from the other end, as fast as a first row.
    ///
    /// # Errors
    /// The errors of [`next_row`](Self::next_row).
    pub fn last(mut self) -> Result<Option<(Vec<u8>, Value)>> {
        self.next_back().transpose()
    }

    /// The same rows, whose values are not read.
    pub(super) fn without_values(mut self) -> Self {
        self.access = Access::Keys;
        self
    }

    /// Continues past what cannot be read, from the current position, and adds it to `skipped`: each time the
    /// file, the offset, and the keys that may be missing. Every adapter works as usual, from both ends. For
    /// salvaging a damaged store; slower than a normal range.
    ///
    /// No row that it shows is wrong, and no row outside the skipped keys is missing. Within them, it shows
    /// rows that are newer than everything in the unreadable blocks. It leaves out older ones from other
    /// segments, because those blocks may overwrite or delete them. Nothing is known about a skipped key that
    /// is not shown, not even whether it has a value. If the range tombstones of a segment or the top of its
    /// index cannot be read, all of its keys are skipped. Damage below skipped or deleted keys may go
    /// unnoticed.
    ///
    /// It ends after any other error, such as a lack of file descriptors.
    ///
    /// ```
    /// # fn main() -> sidebloom::Result<()> {
    /// # let dir = tempfile::tempdir()
    /// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
    /// # let db = sidebloom::Db::open(dir.path().join("songs.db"))?;
    /// let skipped = sidebloom::Skipped::new();
    /// for row in db.prefix("ABBA -").skip_damaged(&skipped).rev() {
    ///     let (title, year) = row?;
    /// }
    /// for lost in skipped.keys() {
    ///     eprintln!("{}", lost.error);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn skip_damaged(mut self, skipped: &Skipped) -> Self {
        // An end that has started starts again after its last row.
        if let Some(merge) = self.front.take() {
            self.lower = Bound::Excluded(merge.key().to_vec());
        }
        if let Some(merge) = self.back.take() {
            self.upper = Bound::Excluded(merge.key().to_vec());
        }
        self.skipped = Some(skipped.clone());
        self
    }

    /// Moves the end for `direction` to the next row; `false` if there is none.
    #[inline]
    fn step(&mut self, direction: Direction) -> Result<bool> {
        match self.alone(direction) {
            Some(merge) => merge.advance_visible(),
            None => self.step_to_meet(direction),
        }
    }

    /// [`step`](Self::step) for the first time, or in the opposite direction.
    #[inline(never)]
    fn step_to_meet(&mut self, direction: Direction) -> Result<bool> {
        self.open(direction)?;
        let (mine, other) = match direction {
            Direction::Forward => (&mut self.front, &self.back),
            Direction::Reverse => (&mut self.back, &self.front),
        };
        let Some(merge) = mine else { return Ok(false) };
        if !merge.advance_visible()? {
            return Ok(false);
        }
        // Stop where the other end has been. It is at a visible row, so nothing beyond it was read.
        Ok(other.as_ref().is_none_or(|other| direction.order(merge.key().cmp(&other.key())).is_lt()))
    }

    /// Starts the end for `direction`, unless it has started. Reads nothing yet.
    fn open(&mut self, direction: Direction) -> Result<()> {
        if let Some(error) = self.failure.take() {
            return Err(*error);
        }
        let (mine, start, end) = match direction {
            Direction::Forward => (&mut self.front, &self.lower, &self.upper),
            Direction::Reverse => (&mut self.back, &self.upper, &self.lower),
        };
        if let (None, Some(view)) = (&mine, &self.view) {
            let (start, end) = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
            let merge = view.merge(self.as_of, direction, start, end, self.access);
            *mine = Some(match &self.skipped {
                Some(skipped) => merge.masked_by(view.mask_with_doubts(self.as_of.seq, direction, skipped)),
                None => merge,
            });
        }
        Ok(())
    }

    /// Moves the end for `direction` over `skipped` rows and then to the next; `false` if there are fewer,
    /// and from then on.
    #[inline]
    fn advance(&mut self, direction: Direction, skipped: usize) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        let found = match skipped {
            0 => self.step(direction),
            _ => self.step_over(direction, skipped),
        };
        if !matches!(found, Ok(true)) {
            self.done = true;
            (self.front, self.back) = (None, None);
        }
        found
    }

    fn step_over(&mut self, direction: Direction, skipped: usize) -> Result<bool> {
        let mut passed = 0;
        self.pass(direction, skipped as u64, &mut passed)?;
        if passed < skipped as u64 { Ok(false) } else { self.step(direction) }
    }

    /// Moves over `most` rows, or to the end, and counts them in `passed`.
    fn pass(&mut self, direction: Direction, most: u64, passed: &mut u64) -> Result<()> {
        self.open(direction)?;
        let keys_only = self.access == Access::Keys;
        let passes_keys = keys_only || most >= LONG_SKIP && self.skipped.is_none();
        if let Some(merge) = self.alone(direction) {
            merge.want_keys(passes_keys)?;
            merge.pass_rows(most, passed)?;
            return merge.want_keys(keys_only);
        }
        while *passed < most && self.step(direction)? {
            *passed += 1;
        }
        Ok(())
    }

    /// The end for `direction`, which has started, if the other one has not: they cannot meet then.
    #[inline]
    fn alone(&mut self, direction: Direction) -> Option<&mut MergeCursor> {
        match (direction, &mut self.front, &mut self.back) {
            (Direction::Forward, Some(merge), None) | (Direction::Reverse, None, Some(merge)) => Some(merge),
            _ => None,
        }
    }

    /// Counts the remaining rows: those before an error, and the outcome.
    pub(super) fn count_rows(&mut self) -> (u64, Result<u64>) {
        let (mut rows, mut counted) = (0, Ok(()));
        if !std::mem::replace(&mut self.done, true) {
            self.access = if self.skipped.is_some() { self.access } else { Access::Keys };
            counted = self.pass(Direction::Forward, u64::MAX, &mut rows);
        }
        (self.front, self.back) = (None, None);
        (rows, counted.map(|()| rows))
    }

    /// Applies `take` to the row after `skipped` others.
    #[inline]
    pub(super) fn next_with<T>(
        &mut self,
        direction: Direction,
        skipped: usize,
        take: fn(SplitKey<'_>, &MergeCursor) -> T,
    ) -> Option<Result<T>> {
        match self.advance(direction, skipped) {
            Ok(true) => match direction {
                Direction::Forward => self.front.as_ref(),
                Direction::Reverse => self.back.as_ref(),
            }
            .map(|merge| Ok(take(self.heads.remove_from(merge.key()), merge))),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// The key of the next row, and the location of its value.
    #[inline]
    pub(super) fn lend(&mut self, direction: Direction) -> Result<Option<(&[u8], &MergeCursor)>> {
        if !self.advance(direction, 0)? {
            return Ok(None);
        }
        let merge = match direction {
            Direction::Forward => self.front.as_ref(),
            Direction::Reverse => self.back.as_ref(),
        };
        Ok(merge.map(|merge| (self.heads.remove_from(merge.key()).lend(&mut self.key), merge)))
    }
}

#[inline]
fn row(key: SplitKey<'_>, merge: &MergeCursor) -> (Vec<u8>, Value) {
    (key.to_vec(), merge.to_value())
}

/// `nth` and `nth_back` skip rows without copying them. An error among those is returned, not skipped. In
/// generic code, `count` is the trait's: it counts the rows before an error, and not the error. Adapters that
/// do not pass `count` on, such as `take`, `rev` and `by_ref`, count an error as one item.
impl Iterator for Range {
    type Item = Result<(Vec<u8>, Value)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_with(Direction::Forward, 0, row)
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.next_with(Direction::Forward, n, row)
    }

    fn count(mut self) -> usize {
        self.count_rows().0 as usize
    }

    fn last(mut self) -> Option<Self::Item> {
        self.next_back()
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

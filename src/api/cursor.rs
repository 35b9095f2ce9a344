//! A position among the rows of one moment that can move to any key, and from there in both directions.

use crate::direction::Direction;
use crate::engine::read::view::View;
use crate::error::{Error, Result};
use crate::key::{AsOf, Heads, Space, Time, Value};
use crate::merge::MergeCursor;
use crate::segment::Access;
use std::ops::Bound;
use std::time::SystemTime;

/// A position among the rows of a snapshot: a seek moves it to any key, and [`next`](Self::next) and
/// [`prev`](Self::prev) continue from there. For many positions in one snapshot, as in a join, it is cheaper
/// than a range for each: a seek keeps the previous seek's blocks, index partitions and buffers, and reads
/// nothing if the row is in one of those blocks.
///
/// It starts at no row. A method that moves it returns whether it is now at a row. If not, or after an error,
/// the next move must be a seek. Reversing direction costs a seek. Like a [`Range`](crate::Range), it holds a
/// block or two per run in memory, and keeps the segments and memtables that it started with.
///
/// ```
/// # fn main() -> sidebloom::Result<()> {
/// # let dir = tempfile::tempdir()
/// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
/// # let db = sidebloom::Db::open(dir.path().join("songs.db"))?;
/// for (title, year) in [("Azul", "1998"), ("Babel", "2012"), ("Carmen", "1875")] {
///     db.put(title, year)?;
/// }
/// let mut cursor = db.cursor();
/// assert!(cursor.seek("B")?); // the first row at or after "B"
/// assert_eq!(cursor.key(), Some(&b"Babel"[..]));
/// assert!(cursor.prev()? && cursor.value() == Some(b"1998"));
/// assert!(!cursor.prev()? && cursor.key().is_none()); // before the first row
/// assert!(cursor.seek_for_prev("Bz")? && cursor.next()?);
/// assert_eq!(cursor.key(), Some(&b"Carmen"[..]));
/// # Ok(()) }
/// ```
pub struct Cursor {
    merge: MergeCursor,
    direction: Direction,
    is_valid: bool,
    /// The stored key of the current row.
    key: Vec<u8>,
    space: Space,
    heads: Heads,
    /// Why it cannot be moved.
    failure: Option<Box<Error>>,
}

impl Cursor {
    /// A cursor over a keyspace, whose stored keys have these heads. With `failure`, every move fails.
    pub(super) fn new(view: &View, as_of: AsOf, space: Space, heads: Heads, failure: Option<Error>) -> Self {
        let direction = Direction::Forward;
        let (lower, upper) = match heads {
            Heads::None => (Bound::Unbounded, Bound::Unbounded),
            _ => space.stored_range((Bound::Unbounded, Bound::Unbounded)),
        };
        let (lower, upper) = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        let merge = view.merge(as_of, direction, lower, upper, Access::Range);
        let failure = failure.map(Box::new);
        Cursor { merge, direction, is_valid: false, key: Vec::new(), space, heads, failure }
    }

    /// The stored key of the current row.
    pub(super) fn stored_key(&self) -> Option<&[u8]> {
        self.is_valid.then_some(&*self.key)
    }

    /// The first stored key of the keyspace, or what follows its last one.
    fn end(&self, direction: Direction) -> Bound<Vec<u8>> {
        match (self.heads, direction) {
            (Heads::None, _) => Bound::Unbounded,
            (_, Direction::Forward) => Bound::Included(self.space.bounds().0),
            (_, Direction::Reverse) => Bound::Excluded(self.space.bounds().1),
        }
    }

    /// Moves to the first row whose key is `key` or greater.
    ///
    /// # Errors
    /// The errors of [`Db::get`](crate::Keyspace::get). The cursor is then at no row; another seek may
    /// succeed.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        let space = self.space;
        space.with_stored(key.as_ref(), |stored| self.seek_towards(Direction::Forward, stored))
    }

    /// Moves to the last row whose key is `key` or less.
    ///
    /// # Errors
    /// The errors of [`seek`](Self::seek).
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        let space = self.space;
        space.with_stored(key.as_ref(), |stored| self.seek_towards(Direction::Reverse, stored))
    }

    /// Moves to the first row.
    ///
    /// # Errors
    /// The errors of [`seek`](Self::seek).
    pub fn seek_to_first(&mut self) -> Result<bool> {
        let first = self.end(Direction::Forward);
        self.start(Direction::Forward, first.as_ref().map(Vec::as_slice))
    }

    /// Moves to the last row.
    ///
    /// # Errors
    /// The errors of [`seek`](Self::seek).
    pub fn seek_to_last(&mut self) -> Result<bool> {
        let last = self.end(Direction::Reverse);
        self.start(Direction::Reverse, last.as_ref().map(Vec::as_slice))
    }

    /// Moves to the next row. A cursor at no row stays there.
    ///
    /// # Errors
    /// The errors of [`seek`](Self::seek).
    #[expect(
        clippy::should_implement_trait,
        reason = "the name that cursors have; it lends instead of returning items"
    )]
    pub fn next(&mut self) -> Result<bool> {
        self.step(Direction::Forward)
    }

    /// Moves to the previous row. A cursor at no row stays there.
    ///
    /// # Errors
    /// The errors of [`seek`](Self::seek).
    pub fn prev(&mut self) -> Result<bool> {
        self.step(Direction::Reverse)
    }

    /// Whether it is at a row.
    pub fn is_valid(&self) -> bool {
        self.is_valid
    }

    /// The key of the current row.
    pub fn key(&self) -> Option<&[u8]> {
        let head = match self.heads {
            Heads::None => 0,
            _ => Space::head_bytes(&self.key),
        };
        self.key.get(head..).filter(|_| self.is_valid)
    }

    /// The value of the current row.
    pub fn value(&self) -> Option<&[u8]> {
        self.is_valid.then(|| self.merge.value())
    }

    /// The value of the current row, to keep: it shares the memory of its block.
    pub fn to_value(&self) -> Option<Value> {
        self.is_valid.then(|| self.merge.to_value())
    }

    /// When the current row expires; `None` if it does not.
    pub fn expires_at(&self) -> Option<SystemTime> {
        let expiry = self.is_valid.then(|| self.merge.kind().expiry())?;
        expiry.map(Time::to_system)
    }

    fn seek_towards(&mut self, direction: Direction, key: &[u8]) -> Result<bool> {
        let precedes = || direction.order(key.cmp(&self.key)).is_lt();
        if !self.is_valid || direction != self.direction || precedes() {
            return self.start(direction, Bound::Included(key));
        }
        self.is_valid = false;
        let found = self.merge.seek_ahead(key)?;
        Ok(self.enter(found))
    }

    fn start(&mut self, direction: Direction, start: Bound<&[u8]>) -> Result<bool> {
        if let Some(error) = &self.failure {
            return Err(Error::clone(error));
        }
        self.direction = direction;
        self.merge.seek(direction, start);
        self.advance()
    }

    fn step(&mut self, direction: Direction) -> Result<bool> {
        if !self.is_valid {
            return Ok(false);
        }
        if direction != self.direction {
            self.direction = direction;
            self.merge.seek(direction, Bound::Excluded(&self.key));
        }
        self.advance()
    }

    fn advance(&mut self) -> Result<bool> {
        self.is_valid = false;
        let found = self.merge.advance_visible()?;
        Ok(self.enter(found))
    }

    /// Takes the merge's row, if it has `found` one of this keyspace.
    fn enter(&mut self, mut found: bool) -> bool {
        if found {
            self.merge.key().copy_into(&mut self.key);
            found = self.heads == Heads::None || self.space.contains(&self.key);
        }
        self.is_valid = found;
        found
    }
}

//! The keys of a range, without values.

use super::range::Range;
use crate::direction::Direction;
use crate::error::Result;
use crate::key::SplitKey;
use crate::merge::MergeCursor;

impl Range {
    /// Iterates over the keys alone, from the current position. Reads no values, so it is faster where they
    /// are large.
    pub fn keys(self) -> Keys {
        Keys(self.without_values())
    }
}

/// An iterator over keys in key order, without values. Made by [`Range::keys`]; otherwise like [`Range`].
pub struct Keys(Range);

impl Keys {
    /// The next key, borrowed until the next call; `None` at the end. Faster than [`next`](Iterator::next),
    /// which allocates it.
    ///
    /// # Errors
    /// The errors of [`Range::next_row`].
    #[inline]
    pub fn next_key(&mut self) -> Result<Option<&[u8]>> {
        Ok(self.0.lend(Direction::Forward)?.map(|(key, _)| key))
    }

    /// [`next_key`](Self::next_key) from the other end.
    ///
    /// # Errors
    /// The errors of [`Range::next_row`].
    #[inline]
    pub fn next_key_back(&mut self) -> Result<Option<&[u8]>> {
        Ok(self.0.lend(Direction::Reverse)?.map(|(key, _)| key))
    }

    /// [`Range::count`].
    ///
    /// # Errors
    /// The errors of [`Range::next_row`].
    #[must_use = "`count` of keys returns a `Result<u64>`: use `keys.count()?`"]
    pub fn count(self) -> Result<u64> {
        self.0.count()
    }

    /// [`Range::last`] without its value.
    ///
    /// # Errors
    /// The errors of [`Range::next_row`].
    pub fn last(mut self) -> Result<Option<Vec<u8>>> {
        self.next_back().transpose()
    }
}

fn key(key: SplitKey<'_>, _: &MergeCursor) -> Vec<u8> {
    key.to_vec()
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

    fn count(self) -> usize {
        Iterator::count(self.0)
    }

    fn last(mut self) -> Option<Self::Item> {
        self.next_back()
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

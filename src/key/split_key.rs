//! A key in two parts.

use super::fronts::{prefix8, prefix16};
use std::cmp::Ordering;

/// A key in two parts, so that the keys of a block can share their prefix. Ordered as the whole key is.
#[derive(Debug, Clone, Copy, Default)]
pub struct SplitKey<'a> {
    head: &'a [u8],
    tail: &'a [u8],
}

impl<'a> SplitKey<'a> {
    /// The key `head` + `tail`.
    #[inline]
    pub fn new(head: &'a [u8], tail: &'a [u8]) -> Self {
        SplitKey { head, tail }
    }

    /// The key without its first `len` bytes.
    #[inline]
    pub fn without(self, len: usize) -> Self {
        match self.head.get(len..) {
            Some(head) => SplitKey { head, tail: self.tail },
            None => {
                let tail = self.tail.get(len.saturating_sub(self.head.len())..).unwrap_or_default();
                SplitKey { head: &[], tail }
            }
        }
    }

    /// Its first byte, if it is not empty.
    #[inline]
    pub fn first(self) -> Option<u8> {
        self.head.first().or(self.tail.first()).copied()
    }

    /// A copy of the whole key.
    #[inline]
    pub fn to_vec(self) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.head.len() + self.tail.len());
        key.extend_from_slice(self.head);
        key.extend_from_slice(self.tail);
        key
    }

    /// Replaces the contents of `key` with the whole key.
    #[inline]
    pub fn copy_into(self, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.head);
        key.extend_from_slice(self.tail);
    }

    /// The whole key in `buffer`, which grows as needed. The buffer's length is stored only when it grows:
    /// slicing a vector right after its length was stored waits for that store, 15 ns a row in a walk.
    #[inline]
    pub fn lend(self, buffer: &mut Vec<u8>) -> &[u8] {
        let len = self.head.len() + self.tail.len();
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        let key = buffer.get_mut(..len).unwrap_or_default();
        if let Some((head, tail)) = key.split_at_mut_checked(self.head.len()) {
            head.copy_from_slice(self.head);
            tail.copy_from_slice(self.tail);
        }
        key
    }

    /// The first 16 bytes of the whole key as a big-endian integer, zero-padded. Orders like the keys
    /// themselves, up to ties.
    #[inline]
    pub fn front(self) -> u128 {
        match self.head.len() {
            0 => prefix16(self.tail),
            len @ 1..16 => prefix16(self.head) | prefix16(self.tail) >> (8 * len),
            _ => prefix16(self.head),
        }
    }

    /// Compares the whole keys, whose [fronts](Self::front) are the same.
    #[inline]
    pub fn cmp_same_front(self, other: Self) -> Ordering {
        match (self.behind_front(), other.behind_front()) {
            (Some(rest), Some(other_rest)) if !rest.is_empty() && !other_rest.is_empty() => {
                let by_word = prefix8(rest).cmp(&prefix8(other_rest));
                let are_words = rest.len() == other_rest.len() && rest.len() <= 8;
                if by_word.is_ne() || are_words { by_word } else { rest.cmp(other_rest) }
            }
            _ if self.len() == other.len() && self.len() <= 16 => Ordering::Equal,
            _ => self.cmp(&other),
        }
    }

    /// What follows the first 16 bytes, if it is in one part.
    #[inline]
    fn behind_front(self) -> Option<&'a [u8]> {
        self.tail.get(16usize.checked_sub(self.head.len())?..)
    }

    /// Length of the whole key.
    #[inline]
    pub fn len(self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Compares the whole key with `other`.
    #[inline]
    pub fn cmp_bytes(self, other: &[u8]) -> Ordering {
        match other.split_at_checked(self.head.len()) {
            Some((head, tail)) => self.head.cmp(head).then_with(|| self.tail.cmp(tail)),
            // A head that starts with all of `other` is greater, and so is the whole key.
            None => self.head.cmp(other),
        }
    }
}

impl<'a> From<&'a [u8]> for SplitKey<'a> {
    fn from(key: &'a [u8]) -> Self {
        SplitKey { head: &[], tail: key }
    }
}

impl Ord for SplitKey<'_> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if self.head.len() > other.head.len() {
            return other.cmp(self).reverse();
        }
        let (head, between) = other.head.split_at(self.head.len());
        self.head.cmp(head).then_with(|| match self.tail.split_at_checked(between.len()) {
            Some((start, rest)) => start.cmp(between).then_with(|| rest.cmp(other.tail)),
            None => self.tail.cmp(between),
        })
    }
}

impl PartialOrd for SplitKey<'_> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SplitKey<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SplitKey<'_> {}

impl PartialEq<[u8]> for SplitKey<'_> {
    fn eq(&self, other: &[u8]) -> bool {
        self.cmp_bytes(other).is_eq()
    }
}

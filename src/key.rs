//! Keys and values: order, sequence numbers, limits, and the shared value that reads return.

use bytes::Bytes;
use std::fmt;
use std::ops::Deref;

/// Largest key, in bytes. Keys are ordered bytewise. The empty key is valid.
pub const MAX_KEY_BYTES: usize = 64 << 10;
/// Largest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 64 << 20;

/// Sequence number. Every operation of a store gets the next one, so the larger of two is the newer. 0 precedes the first.
pub type Seq = u64;

/// Put or tombstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// The key was deleted. Hides all older entries of the key.
    Tombstone,
    /// The key has a value.
    Put,
}

/// The newest entry that a memtable or a segment has for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its sequence number.
    pub seq: Seq,
    /// Put or tombstone.
    pub kind: EntryKind,
    /// Empty for a tombstone.
    pub value: Value,
}

impl Entry {
    /// The value that a reader sees: `None` for a tombstone.
    pub fn visible(self) -> Option<Value> {
        (self.kind == EntryKind::Put).then_some(self.value)
    }
}

/// A value as returned by reads. Dereferences to `[u8]` and clones without copying. It shares the block or log record that it was read
/// from and keeps that in memory for as long as it lives.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Value(Bytes);

impl Value {
    /// Wraps shared bytes.
    pub fn new(bytes: Bytes) -> Self {
        Value(bytes)
    }

    /// The shared bytes.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl Deref for Value {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Vec<u8> {
        value.0.into()
    }
}

impl PartialEq<[u8]> for Value {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<[u8; N]> for Value {
    fn eq(&self, other: &[u8; N]) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<&[u8; N]> for Value {
    fn eq(&self, other: &&[u8; N]) -> bool {
        **self == **other
    }
}

/// The first eight bytes of `key` as a big-endian integer, zero-padded. Orders like the keys themselves, up to ties.
#[inline]
pub fn prefix8(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => short_prefix8(key),
    }
}

/// [`prefix8`] of a key shorter than eight bytes, out of line to keep its callers small.
#[inline(never)]
fn short_prefix8(key: &[u8]) -> u64 {
    key.iter().enumerate().fold(0, |acc, (i, &b)| acc | u64::from(b) << (56 - 8 * i))
}

/// Number of leading bytes that `a` and `b` share.
#[inline]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut n = 0;
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        if x != y {
            break;
        }
        n += 8;
    }
    n + a.iter().zip(b).skip(n).take_while(|(x, y)| x == y).count()
}

/// The smallest key greater than every key that starts with `prefix`, as the end of a range; `None` if there is none, because all bytes
/// are 0xff.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut end = prefix.get(..=last)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    proptest! {
        #[test]
        fn prefix8_never_contradicts_the_order_of_keys(a: Vec<u8>, b: Vec<u8>) {
            if prefix8(&a) < prefix8(&b) {
                prop_assert!(a < b);
            }
        }

        #[test]
        fn common_prefix_is_the_naive_count(a in "[ab]{0,40}", b in "[ab]{0,40}") {
            let naive = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(common_prefix(a.as_bytes(), b.as_bytes()), naive);
        }

        #[test]
        fn prefix_end_bounds_exactly_the_keys_with_the_prefix(
            prefix in vec(select(&[0, 7, 0xfe, 0xff]), 0..4),
            key in vec(select(&[0, 7, 8, 0xfe, 0xff]), 0..6),
        ) {
            let within = key >= prefix && prefix_end(&prefix).is_none_or(|end| key < end);
            prop_assert_eq!(within, key.starts_with(&prefix));
        }
    }
}

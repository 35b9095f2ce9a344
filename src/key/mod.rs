//! Keys and values: order, sequence numbers, limits, and the shared value that reads return.

mod expiry;
mod fronts;
mod keyspace_id;
mod kind;
mod space;
mod split_key;
mod stored_keys;

pub use expiry::Expiry;
pub(crate) use expiry::Moment;
pub use fronts::{LONG_FRONT_BYTES, LongFront, front_of, long_front, prefix8, prefix16};
pub use keyspace_id::{KEYSPACE_NAME_BYTES_MAX, KeyspaceId, NamedKeyspaces};
pub use kind::{EntryKind, Time};
pub use space::{HEADS_START, Heads, MAX_STORED_KEY_BYTES, Space, without_head};
pub use split_key::SplitKey;
pub use stored_keys::StoredKeys;

use crate::error::{Error, Result};
use bytes::Bytes;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Largest key, in bytes. Keys are ordered bytewise. The empty key is valid.
pub const MAX_KEY_BYTES: usize = 64 << 10;
/// Largest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 64 << 20;

/// Sequence number. Every operation of a store gets the next one, so the larger of two is the newer. 0
/// precedes the first.
pub type Seq = u64;
/// The largest number that an operation may have: 290 years at a billion writes per second. Both writers and
/// readers refuse larger ones.
pub const MAX_SEQ: Seq = Seq::MAX >> 1;
/// The largest number after the last operation.
pub const MAX_NEXT_SEQ: Seq = MAX_SEQ + 1;

/// Fails for a number that no operation may have.
///
/// # Errors
/// [`Error::NumbersExhausted`].
pub fn check_seq(seq: Seq) -> Result<()> {
    if seq <= MAX_SEQ { Ok(()) } else { Err(Error::NumbersExhausted { seq, max: MAX_SEQ }) }
}

/// [`check_seq`] for the number after the last operation.
///
/// # Errors
/// [`Error::NumbersExhausted`].
pub fn check_next_seq(next: Seq) -> Result<()> {
    check_seq(next.saturating_sub(1))
}

/// What a read sees: the entries up to a sequence number that have not expired by a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsOf {
    /// The sequence number.
    pub seq: Seq,
    /// The moment.
    pub time: Time,
}

impl AsOf {
    /// All entries up to a number, those that have expired included.
    pub fn seq(seq: Seq) -> Self {
        AsOf { seq, time: Time::START }
    }
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

/// A value as returned by reads. Dereferences to `[u8]` and clones without copying. It shares the block or
/// log record that it was read from, and keeps that in memory as long as it lives.
#[derive(Clone)]
pub struct Value(Shared);

#[derive(Clone)]
enum Shared {
    /// Of a log record.
    Bytes(Bytes),
    /// A range of a block. The block's reference count and its bytes share one allocation and cache line.
    Block(Arc<[u8]>, Range<u32>),
}

impl Value {
    /// Wraps shared bytes.
    pub fn new(bytes: Bytes) -> Self {
        Value(Shared::Bytes(bytes))
    }

    /// A part of a block; empty if out of the block's range.
    #[inline]
    pub(crate) fn of_block(block: Arc<[u8]>, part: Range<usize>) -> Self {
        Value(Shared::Block(block, part.start as u32..part.end as u32))
    }

    /// The shared bytes.
    pub fn into_bytes(self) -> Bytes {
        match self.0 {
            Shared::Bytes(bytes) => bytes,
            Shared::Block(..) => Bytes::from_owner(self),
        }
    }
}

impl Deref for Value {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Shared::Bytes(bytes) => bytes,
            Shared::Block(block, part) => {
                block.get(part.start as usize..part.end as usize).unwrap_or_default()
            }
        }
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Default for Value {
    fn default() -> Self {
        Value::new(Bytes::new())
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Vec<u8> {
        match value.0 {
            Shared::Bytes(bytes) => bytes.into(),
            Shared::Block(..) => value.to_vec(),
        }
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

/// `a == b` for slices of equal length, inlined. `memcmp` on an empty slice's dangling pointer can issue a
/// masked load from an unmapped page, which costs a microcode assist: 400 ns in the fences of empty levels.
#[inline]
pub fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let words = a.iter().zip(b).all(|(x, y)| u64::from_ne_bytes(*x) == u64::from_ne_bytes(*y));
    words && a_rest.iter().zip(b_rest).all(|(x, y)| x == y)
}

/// The smallest key greater than every key that starts with `prefix`, as the end of a range; `None` if there
/// is none, because all bytes are 0xff.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut end = prefix.get(..=last)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

#[cfg(test)]
mod tests;

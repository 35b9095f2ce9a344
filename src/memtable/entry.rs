//! The entries of a memtable, and their order.

use crate::key::{Entry, EntryKind, Seq, Time, Value, prefix16};
use bytes::Bytes;
use std::borrow::Borrow;
use std::cmp::Ordering;

/// Key, sequence number and value. Comparisons mostly end at `prefix`, in the skiplist node itself. It comes
/// last, next to the node's pointers: a search reads both, mostly from one cache line.
#[repr(C)]
pub(super) struct MemKey {
    /// The key, immediately followed by the value, or by expiry and value.
    pub data: Bytes,
    pub seq: Seq,
    pub key_len: u32,
    pub kind: MemKind,
    /// The keys of a store often share their first eight bytes, seldom their first 16.
    pub prefix: u128,
}
const _: () = assert!(size_of::<MemKey>() == 64);

/// The kind of an entry, whose expiry is in its data: so an entry that does not expire pays nothing for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemKind {
    /// The key was deleted.
    Tombstone,
    /// The key has a value.
    Put,
    /// The key has a value until a moment, which stands ahead of it.
    PutUntil,
}

impl MemKind {
    /// The kind, given the data after the key, and how much of that the expiry takes.
    #[inline]
    pub fn split(self, rest: &[u8]) -> (EntryKind, usize) {
        match self {
            MemKind::Put => (EntryKind::PUT, 0),
            MemKind::Tombstone => (EntryKind::TOMBSTONE, 0),
            MemKind::PutUntil => (EntryKind::put_until(Time::decode(rest).unwrap_or_default()), Time::BYTES),
        }
    }
}

impl MemKey {
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.data.get(..self.key_len as usize).unwrap_or_default()
    }

    /// Whether it is an entry of the same key.
    #[inline]
    pub fn has_key_of(&self, other: &MemKey) -> bool {
        self.prefix == other.prefix && self.key() == other.key()
    }

    /// The kind, and where the value starts in the data.
    #[inline]
    pub fn kind(&self) -> (EntryKind, usize) {
        let key_len = self.key_len as usize;
        let (kind, skipped) = self.kind.split(self.data.get(key_len..).unwrap_or_default());
        (kind, key_len + skipped)
    }

    #[inline]
    pub fn entry(&self) -> Entry {
        let (kind, from) = self.kind();
        Entry { seq: self.seq, kind, value: Value::new(self.data.slice(from..)) }
    }
}

/// A position in the order of entries, owned or borrowed, so that searches do not allocate.
pub(super) trait Position {
    /// The first 16 bytes of the key ([`prefix16`]).
    fn prefix(&self) -> u128;
    /// The key and the sequence number, which decide between equal prefixes.
    fn rest(&self) -> (&[u8], Seq);
}

impl Position for MemKey {
    #[inline]
    fn prefix(&self) -> u128 {
        self.prefix
    }

    #[inline]
    fn rest(&self) -> (&[u8], Seq) {
        (self.key(), self.seq)
    }
}

pub(super) struct Search<'a> {
    prefix: u128,
    key: &'a [u8],
    seq: Seq,
}

impl<'a> Search<'a> {
    #[inline]
    pub fn new(key: &'a [u8], seq: Seq) -> Self {
        Search { prefix: prefix16(key), key, seq }
    }
}

impl Position for Search<'_> {
    #[inline]
    fn prefix(&self) -> u128 {
        self.prefix
    }

    #[inline]
    fn rest(&self) -> (&[u8], Seq) {
        (self.key, self.seq)
    }
}

impl<'a> Borrow<dyn Position + 'a> for MemKey {
    #[inline]
    fn borrow(&self) -> &(dyn Position + 'a) {
        self
    }
}

/// Keys ascending, and for the same key the newest entry first.
#[inline]
fn compare<A: Position + ?Sized, B: Position + ?Sized>(a: &A, b: &B) -> Ordering {
    let (left, right) = (a.prefix(), b.prefix());
    if left == right {
        compare_rest(a.rest(), b.rest())
    } else if left < right {
        Ordering::Less
    } else {
        Ordering::Greater
    }
}

/// Out of line, to keep the loop of a search small.
#[inline(never)]
fn compare_rest(a: (&[u8], Seq), b: (&[u8], Seq)) -> Ordering {
    a.0.cmp(b.0).then_with(|| b.1.cmp(&a.1))
}

impl Ord for MemKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self, other)
    }
}
impl PartialOrd for MemKey {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for MemKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for MemKey {}

impl Ord for dyn Position + '_ {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self, other)
    }
}
impl PartialOrd for dyn Position + '_ {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for dyn Position + '_ {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for dyn Position + '_ {}

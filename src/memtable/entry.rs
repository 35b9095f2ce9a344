//! The entries of a memtable, and their order.

use crate::key::{Entry, EntryKind, Seq, Time, Value, prefix16};
use bytes::Bytes;
use std::cmp::Ordering;

/// Key, sequence number and value.
pub(super) struct MemKey {
    /// The keys of a store often share their first eight bytes, seldom their first 16.
    pub prefix: Prefix,
    /// The key, immediately followed by the value, or by expiry and value.
    pub data: Bytes,
    pub seq: Seq,
    pub key_len: u32,
    pub kind: MemKind,
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

    /// A search for it.
    #[inline]
    pub fn search(&self) -> Search<'_> {
        Search { prefix: self.prefix, key: self.key(), seq: self.seq }
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

/// The first 16 bytes of a key, as two integers ([`prefix16`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Prefix {
    pub high: u64,
    pub low: u64,
}

impl Prefix {
    /// That of the empty key.
    pub const LEAST: Prefix = Prefix { high: 0, low: 0 };

    #[inline]
    pub fn of(key: &[u8]) -> Self {
        let prefix = prefix16(key);
        Prefix { high: (prefix >> 64) as u64, low: prefix as u64 }
    }

    /// As one integer.
    #[inline]
    pub fn front(self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.low)
    }
}

/// An entry to search for: keys ascending, and for the same key the newest entry first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Search<'k> {
    pub prefix: Prefix,
    key: &'k [u8],
    seq: Seq,
}

impl<'k> Search<'k> {
    #[inline]
    pub fn new(key: &'k [u8], seq: Seq) -> Self {
        Search { prefix: Prefix::of(key), key, seq }
    }

    /// How an entry compares with it.
    #[inline]
    fn compare(&self, item: &MemKey) -> Ordering {
        match item.prefix.cmp(&self.prefix) {
            Ordering::Equal => self.compare_rest(item),
            unequal => unequal,
        }
    }

    /// Out of line, to keep the loop of a search small.
    #[inline(never)]
    fn compare_rest(&self, item: &MemKey) -> Ordering {
        item.key().cmp(self.key).then_with(|| self.seq.cmp(&item.seq))
    }
}

/// A place in the order of entries.
#[derive(Clone, Copy)]
pub(super) enum Place<'k> {
    /// Just before an entry.
    Before(Search<'k>),
    /// Just after it.
    After(Search<'k>),
    /// After all entries.
    End,
}

impl Place<'_> {
    /// Whether it comes after an entry.
    #[inline]
    pub fn is_after(&self, item: &MemKey) -> bool {
        match self {
            Place::Before(search) => search.compare(item) == Ordering::Less,
            Place::After(search) => search.compare(item) != Ordering::Greater,
            Place::End => true,
        }
    }
}

//! The order of a memtable's entries.

use crate::key::{Entry, EntryKind, Seq, Value, prefix8};
use bytes::Bytes;
use std::borrow::Borrow;
use std::cmp::Ordering;

/// Key, sequence number and value. Comparisons mostly end at `prefix`, in the skiplist node itself.
pub(super) struct MemKey {
    pub prefix: Prefix,
    pub seq: Seq,
    pub kind: EntryKind,
    pub key_len: u32,
    /// The key, immediately followed by the value.
    pub data: Bytes,
}

impl MemKey {
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.data.get(..self.key_len as usize).unwrap_or_default()
    }

    #[inline]
    pub fn value(&self) -> Value {
        Value::new(self.data.slice(self.key_len as usize..))
    }

    #[inline]
    pub fn entry(&self) -> Entry {
        Entry { seq: self.seq, kind: self.kind, value: self.value() }
    }
}

/// A position in the order of entries, owned or borrowed, so that searches do not allocate.
pub(super) trait Position {
    fn parts(&self) -> (Prefix, &[u8], Seq);
}

impl Position for MemKey {
    #[inline]
    fn parts(&self) -> (Prefix, &[u8], Seq) {
        (self.prefix, self.key(), self.seq)
    }
}

pub(super) struct Search<'a> {
    prefix: Prefix,
    key: &'a [u8],
    seq: Seq,
}

impl<'a> Search<'a> {
    #[inline]
    pub fn new(key: &'a [u8], seq: Seq) -> Self {
        Search { prefix: head_of(key), key, seq }
    }
}

impl Position for Search<'_> {
    #[inline]
    fn parts(&self) -> (Prefix, &[u8], Seq) {
        (self.prefix, self.key, self.seq)
    }
}

impl<'a> Borrow<dyn Position + 'a> for MemKey {
    #[inline]
    fn borrow(&self) -> &(dyn Position + 'a) {
        self
    }
}

/// The first 16 bytes of a key, order-preserving. The keys of a store often share their first 8.
pub(super) type Prefix = [u64; 2];

#[inline]
pub(super) fn head_of(key: &[u8]) -> Prefix {
    [prefix8(key), prefix8(key.get(8..).unwrap_or_default())]
}

#[inline]
fn compare(a: (Prefix, &[u8], Seq), b: (Prefix, &[u8], Seq)) -> Ordering {
    a.0.cmp(&b.0).then_with(|| a.1.cmp(b.1)).then_with(|| b.2.cmp(&a.2))
}

impl Ord for MemKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.parts(), other.parts())
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
        compare(self.parts(), other.parts())
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

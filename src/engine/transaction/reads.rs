//! What a transaction has read.

use crate::bounds::KeyRange;
use crate::engine::write::condition::{KeySpan, ReadSet};
use crate::key::{Entry, Seq, Time};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Memory of a key or a range that was read, apart from its bytes.
const OVERHEAD_BYTES: u64 = 64;

/// The keys that a transaction has read, with what it found, and the ranges that it has walked.
#[derive(Default)]
pub(crate) struct TransactionReads {
    /// The sequence number of each key's value; `None` if it had none.
    keys: BTreeMap<Vec<u8>, Option<Seq>>,
    ranges: Vec<KeyRange>,
    /// When the first of the values expires; `None` if none does.
    until: Option<Time>,
    /// Walks that have not said yet how far they went.
    open_walks: usize,
    bytes: u64,
}

impl TransactionReads {
    /// Approximate memory, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty() && self.open_walks == 0
    }

    /// Records what was found for a key. As all reads are of one moment, a later one finds the same.
    pub fn add_key(&mut self, key: &[u8], found: Option<&Entry>) {
        if !self.keys.contains_key(key) {
            self.bytes += key.len() as u64 + OVERHEAD_BYTES;
            self.keys.insert(key.to_vec(), found.map(|entry| entry.seq));
            self.until = self.until.into_iter().chain(found.and_then(|entry| entry.kind.expiry())).min();
        }
    }

    /// Records that everything within a range was read.
    pub fn add_range(&mut self, range: KeyRange) {
        let len = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => key.len() as u64,
            Bound::Unbounded => 0,
        };
        if self.ranges.last() == Some(&range) {
            return;
        }
        self.bytes += len(&range.0) + len(&range.1) + OVERHEAD_BYTES;
        self.ranges.push(range);
    }

    /// A walk has begun.
    pub fn begin_walk(&mut self) {
        self.open_walks += 1;
    }

    /// A walk has ended.
    pub fn end_walk(&mut self) {
        self.open_walks -= 1;
    }

    /// What was found for each key.
    pub fn versions(&self) -> impl Iterator<Item = (&[u8], Option<Seq>)> {
        self.keys.iter().map(|(key, version)| (&**key, *version))
    }

    /// When the first value of a key expires, or never.
    pub fn until(&self) -> Time {
        self.until.unwrap_or(Time::NEVER)
    }

    /// The keys and ranges. A walk that never ended, because it was leaked, has read everything.
    pub fn to_set(&self) -> ReadSet {
        let all = (Bound::Unbounded, Bound::Unbounded);
        let leaked = (self.open_walks > 0).then_some(&all);
        let spans = self.ranges.iter().chain(leaked).filter_map(KeySpan::of).collect();
        ReadSet { keys: self.keys.keys().cloned().collect(), ranges: KeySpan::join(spans) }
    }
}

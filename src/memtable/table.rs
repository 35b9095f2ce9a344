//! The skiplist and its filter.

use super::entry_order::{MemKey, Position, Search, head_of};
use super::filter::MemtableFilter;
use super::ranges::{MemtableRanges, RangeList};
use crate::error::Result;
use crate::key::{Entry, EntryKind, Seq};
use crate::ranges::RangeTombstones;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering as Memory};
use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use std::ops::Bound;
use std::sync::Arc;

/// Memory of an entry apart from its key and value, in bytes: 64 for [`MemKey`], 8 for the node's header, 16
/// for a mean tower (two pointers), and the allocator's header and rounding.
const ENTRY_OVERHEAD_BYTES: usize = 128;
/// Memory of a range tombstone apart from its keys: up to two steps in each of up to 20 sets.
const RANGE_OVERHEAD_BYTES: usize = 2 << 10;

/// The recent writes of one log.
pub struct Memtable {
    pub(super) map: SkipMap<MemKey, ()>,
    filter: Arc<MemtableFilter>,
    ranges: MemtableRanges,
    /// Bytes of the range tombstones, at most, as stored in a segment.
    range_bytes: AtomicUsize,
    tombstones: AtomicUsize,
    last_seq: AtomicU64,
}

impl Drop for Memtable {
    fn drop(&mut self) {
        // Otherwise the memory is about to be freed anyway.
        if Arc::strong_count(&self.filter) > 1 {
            self.filter.retire();
        }
    }
}

impl Memtable {
    /// An empty memtable with a filter sized for `budget_bytes` of entries. More entries work, but give more
    /// false positives.
    pub fn new(budget_bytes: u64) -> Result<Self> {
        let filter = Arc::new(MemtableFilter::new(budget_bytes)?);
        Ok(Memtable {
            map: SkipMap::new(),
            filter,
            ranges: MemtableRanges::new(),
            range_bytes: AtomicUsize::new(0),
            tombstones: AtomicUsize::new(0),
            last_seq: AtomicU64::new(0),
        })
    }

    /// Adds one operation. `data` is the key, immediately followed by the value; `hash` is the key's hash.
    ///
    /// The hash enters the filter before the entry enters the skiplist, and the caller publishes the sequence
    /// number after both. So a reader that may see the entry finds its bits set (I1).
    pub fn insert(&self, hash: u64, seq: Seq, kind: EntryKind, key_len: usize, data: Bytes) {
        let size = data.len() + ENTRY_OVERHEAD_BYTES;
        let prefix = head_of(data.get(..key_len).unwrap_or_default());
        self.filter.insert(hash);
        self.map.insert(MemKey { prefix, seq, kind, key_len: key_len as u32, data }, ());
        self.filter.count(size);
        if kind == EntryKind::Tombstone {
            self.tombstones.fetch_add(1, Memory::Relaxed);
        }
        self.last_seq.fetch_max(seq, Memory::Relaxed);
    }

    /// Adds a range tombstone: it deletes the entries in the range with smaller sequence numbers, here and in
    /// everything older. Without `end`, the range goes up to the last key.
    pub fn delete_range(&self, seq: Seq, start: Bytes, end: Option<Bytes>) {
        let key_bytes = start.len() + end.as_ref().map_or(0, Bytes::len);
        let encoded_bytes = key_bytes + 2 * RangeTombstones::STEP_BYTES;
        self.ranges.add(RangeTombstones::of(start, end, seq), seq);
        self.filter.count(key_bytes + RANGE_OVERHEAD_BYTES);
        self.range_bytes.fetch_add(encoded_bytes, Memory::Release);
        self.tombstones.fetch_add(1, Memory::Relaxed);
        self.last_seq.fetch_max(seq, Memory::Relaxed);
    }

    /// Whether there is a range tombstone.
    #[inline]
    pub fn has_ranges(&self) -> bool {
        self.range_bytes() > 0
    }

    /// Bytes of the range tombstones, at most, as stored in a segment.
    #[inline]
    pub fn range_bytes(&self) -> usize {
        self.range_bytes.load(Memory::Acquire)
    }

    /// Its range tombstones.
    pub fn ranges(&self) -> Arc<RangeList> {
        self.ranges.load()
    }

    /// Adds the hash of a prefix to the filter, before the [`insert`](Self::insert) of a key with it (I1).
    pub fn insert_prefix(&self, hash: u64) {
        self.filter.insert(hash);
    }

    /// The newest entry of `key` with a sequence number of at most `seq`.
    #[inline]
    pub fn get(&self, key: &[u8], hash: u64, seq: Seq) -> Option<Entry> {
        if self.filter.denies(hash) { None } else { self.search(key, seq) }
    }

    /// [`get`](Self::get) without the filter.
    pub fn search(&self, key: &[u8], seq: Seq) -> Option<Entry> {
        let position = Search::new(key, seq);
        let found = self.map.lower_bound(Bound::Included(&position as &dyn Position))?;
        (found.key().key() == key).then(|| found.key().entry())
    }

    /// Its filter.
    pub fn filter(&self) -> &Arc<MemtableFilter> {
        &self.filter
    }

    /// Estimated memory of the entries, in bytes, without the filter.
    pub fn bytes(&self) -> usize {
        self.filter.entry_bytes()
    }

    /// Number of tombstones, of keys and of ranges, counting every version.
    pub fn tombstones(&self) -> usize {
        self.tombstones.load(Memory::Relaxed)
    }

    /// Number of entries, counting every version of a key.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether nothing was ever inserted.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty() && !self.has_ranges()
    }

    /// Skips the sequence numbers up to `seq`: they belong to no entry.
    pub fn skip(&self, seq: Seq) {
        self.last_seq.fetch_max(seq, Memory::Relaxed);
    }

    /// The largest sequence number inserted or skipped; 0 if there is none.
    pub fn last_seq(&self) -> Seq {
        self.last_seq.load(Memory::Relaxed)
    }

    /// Calls `sink(key, seq, kind, value)` for the newest entry of each key, in key order.
    pub fn for_each_newest<E>(
        &self,
        mut sink: impl FnMut(&[u8], Seq, EntryKind, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut previous: Option<crossbeam_skiplist::map::Entry<'_, MemKey, ()>> = None;
        for entry in self.map.iter() {
            let at = entry.key();
            if previous.as_ref().is_none_or(|p| p.key().key() != at.key()) {
                sink(at.key(), at.seq, at.kind, at.data.get(at.key_len as usize..).unwrap_or_default())?;
            }
            previous = Some(entry);
        }
        Ok(())
    }
}

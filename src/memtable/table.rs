//! The entries of a memtable, and its filter.

use super::entry::{MemKey, MemKind, Place, Prefix, Search};
use super::list::EntryList;
use super::ranges::{MemtableRanges, RangeList};
use crate::error::Result;
use crate::filter::{AtomicBloom, Verdict};
use crate::key::{Entry, EntryKind, Seq};
use crate::ranges::RangeTombstones;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering as Memory};
use bytes::Bytes;
use std::sync::Arc;

/// Memory of an entry apart from its key and value, in bytes: 64 for [`MemKey`], 16 for the rest of its node,
/// 29 for its slot in pages of which random keys fill about 69 % (Yao, "On random 2–3 trees", 1978), and the
/// allocator's header and rounding.
const ENTRY_OVERHEAD_BYTES: usize = 128;
/// Memory of a range tombstone apart from its keys: up to two steps in each of up to 20 sets.
pub const RANGE_OVERHEAD_BYTES: usize = 2 << 10;

/// The filter is sized for entries of this many bytes, overhead included, …
const FILTER_BYTES_PER_ENTRY: u64 = 256;
/// … at this many bits each: 0.08 % false positives. Entries half as long get half the bits: still only 1 %.
const FILTER_BITS_PER_KEY: f64 = 16.0;
/// Number of entries beyond which a filter no longer grows (128 MiB of filter).
const FILTER_KEYS_MAX: u64 = 1 << 26;

/// The recent writes of one log.
pub struct Memtable {
    pub(super) entries: EntryList,
    filter: Arc<MemtableFilter>,
    ranges: MemtableRanges,
    /// Bytes of the range tombstones, at most, as stored in a segment.
    range_bytes: AtomicUsize,
    tombstones: AtomicUsize,
    last_seq: AtomicU64,
    /// One more than the number of the memtable that it follows directly.
    number: u64,
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
            entries: EntryList::new(),
            filter,
            ranges: MemtableRanges::new(),
            range_bytes: AtomicUsize::new(0),
            tombstones: AtomicUsize::new(0),
            last_seq: AtomicU64::new(0),
            number: 0,
        })
    }

    /// An empty memtable for the writes that come directly after those of this one.
    pub fn next(&self, budget_bytes: u64) -> Result<Self> {
        let mut next = Memtable::new(budget_bytes)?;
        next.number = self.number + 1;
        Ok(next)
    }

    /// An empty memtable for the writes that come after those of this one, and after others that are in no
    /// memtable.
    pub fn after_others(&self, budget_bytes: u64) -> Result<Self> {
        let mut next = Memtable::new(budget_bytes)?;
        next.number = self.number + 2;
        Ok(next)
    }

    /// Whether its first write came directly after the last one of `other`.
    pub fn follows(&self, other: &Memtable) -> bool {
        self.number == other.number + 1
    }

    /// Adds one operation. `data` is the key, immediately followed by the value, and between them the expiry
    /// of a value that expires ([`Time::encoded`]); `hash` is the key's hash.
    ///
    /// The hash enters the filter before the entry enters the list, and the caller publishes the sequence
    /// number after both. So a reader that may see the entry finds its bits set (I1).
    pub fn insert(&self, hash: u64, seq: Seq, kind: MemKind, key_len: usize, data: Bytes) {
        let size = data.len() + ENTRY_OVERHEAD_BYTES;
        let prefix = Prefix::of(data.get(..key_len).unwrap_or_default());
        self.filter.insert(hash);
        self.entries.insert(MemKey { prefix, seq, kind, key_len: key_len as u32, data });
        self.filter.count(size);
        if kind == MemKind::Tombstone {
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
        let found = self.entries.first_from(Place::Before(Search::new(key, seq)))?;
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
        self.entries.len()
    }

    /// Whether nothing was ever inserted.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.has_ranges()
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
        let mut previous: Option<&MemKey> = None;
        for entry in self.entries.iter() {
            let at = entry.key();
            if previous.is_none_or(|previous| !previous.has_key_of(at)) {
                let (kind, from) = at.kind();
                sink(at.key(), at.seq, kind, at.data.get(from..).unwrap_or_default())?;
            }
            previous = Some(at);
        }
        Ok(())
    }
}

/// The filter of a memtable. Holding only the filter keeps neither the entries in memory nor, once the
/// memtable is gone, the memory of a large filter. The filter then denies all keys: only an answer given
/// while the memtable existed counts (I1).
pub struct MemtableFilter {
    keys: AtomicBloom,
    /// Estimated memory of the entries.
    bytes: AtomicUsize,
}

impl MemtableFilter {
    /// A filter for `budget_bytes` of entries. More entries work, but give more false positives.
    fn new(budget_bytes: u64) -> Result<Self> {
        let keys = (budget_bytes / FILTER_BYTES_PER_ENTRY).clamp(1, FILTER_KEYS_MAX);
        Ok(MemtableFilter { keys: AtomicBloom::new(keys, FILTER_BITS_PER_KEY)?, bytes: AtomicUsize::new(0) })
    }

    /// Adds the hash of a key or of a prefix, before its entry enters the memtable.
    #[inline]
    fn insert(&self, hash: u64) {
        self.keys.insert(hash);
    }

    /// Counts the memory of an added entry.
    #[inline]
    fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Memory::Relaxed);
    }

    /// Estimated memory of the entries, in bytes.
    #[inline]
    fn entry_bytes(&self) -> usize {
        self.bytes.load(Memory::Relaxed)
    }

    /// Whether the memtable has no entry of a key with this hash.
    #[inline]
    pub fn denies(&self, hash: u64) -> bool {
        self.keys.probe(hash) == Verdict::Absent
    }

    /// Whether there is no entry that readers may see. Saves the filter probe of an empty memtable.
    #[inline]
    pub fn is_unused(&self) -> bool {
        self.entry_bytes() == 0 // Set by the first insert, before readers may see the entry.
    }

    /// Gives the memory back after the memtable is gone. Threads that keep the filter may still probe it, but
    /// must not rely on it.
    fn retire(&self) {
        // A reader that finds a bit cleared then finds, after an acquire fence, that the view has changed.
        std::sync::atomic::fence(Memory::Release);
        self.keys.clear();
    }

    /// Prefetches the filter line for this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.keys.prefetch(hash);
    }
}

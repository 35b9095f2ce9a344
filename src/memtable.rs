//! The memtable: recent writes in a lock-free skiplist, behind an updatable filter of their own.
//!
//! Entries are ordered by key and, within a key, newest first. Nothing is ever removed or changed, so a reader with the memtable and a
//! sequence number has a stable snapshot.

use crate::error::Result;
use crate::filter::{AtomicBloom, Verdict};
use crate::key::{Entry, EntryKind, Seq, SplitKey, Value, prefix8};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering as Memory};
use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

/// Memory of an entry besides its key and value, in bytes: 64 for [`MemKey`], 8 for the node's header, 16 for a mean tower (two pointers),
/// and the allocator's header and rounding.
const ENTRY_OVERHEAD_BYTES: usize = 128;
/// The filter is sized for entries of this many bytes, overhead included, …
const FILTER_BYTES_PER_ENTRY: u64 = 256;
/// … at this many bits each: 0.08 % false positives. Entries half as long get half the bits, which is still 1 %.
const FILTER_BITS_PER_KEY: f64 = 16.0;
/// Number of entries beyond which a filter no longer grows (128 MiB of filter).
const FILTER_KEYS_MAX: u64 = 1 << 26;
/// Entries that a cursor copies from the skiplist at a time, so that it holds no borrow and seeks once per chunk. The first chunk is
/// small, so that a short range stays cheap; each further one is twice as large.
const FIRST_CHUNK: usize = 8;
const LAST_CHUNK: usize = 128;

/// The recent writes of one log.
pub struct Memtable {
    map: SkipMap<MemKey, ()>,
    filter: AtomicBloom,
    bytes: AtomicUsize,
    last_seq: AtomicU64,
}

/// Key, sequence number and value. Comparisons mostly end at `prefix`, in the skiplist node itself.
struct MemKey {
    prefix: Prefix,
    seq: Seq,
    kind: EntryKind,
    key_len: u32,
    /// The key, immediately followed by the value.
    data: Bytes,
}

impl MemKey {
    fn key(&self) -> &[u8] {
        self.data.get(..self.key_len as usize).unwrap_or_default()
    }

    fn value(&self) -> Value {
        Value::new(self.data.slice(self.key_len as usize..))
    }

    fn entry(&self) -> Entry {
        Entry { seq: self.seq, kind: self.kind, value: self.value() }
    }
}

/// A position in the order of entries, owned or borrowed, so that searches do not allocate.
trait Position {
    fn parts(&self) -> (Prefix, &[u8], Seq);
}

impl Position for MemKey {
    #[inline]
    fn parts(&self) -> (Prefix, &[u8], Seq) {
        (self.prefix, self.key(), self.seq)
    }
}

struct Search<'a> {
    prefix: Prefix,
    key: &'a [u8],
    seq: Seq,
}

impl<'a> Search<'a> {
    fn new(key: &'a [u8], seq: Seq) -> Self {
        Search { prefix: prefix16(key), key, seq }
    }
}

impl Position for Search<'_> {
    fn parts(&self) -> (Prefix, &[u8], Seq) {
        (self.prefix, self.key, self.seq)
    }
}

impl<'a> Borrow<dyn Position + 'a> for MemKey {
    fn borrow(&self) -> &(dyn Position + 'a) {
        self
    }
}

/// The first 16 bytes of a key, order-preserving. The keys of a store often share their first 8.
type Prefix = [u64; 2];

#[inline]
fn prefix16(key: &[u8]) -> Prefix {
    [prefix8(key), prefix8(key.get(8..).unwrap_or_default())]
}

#[inline]
fn compare(a: (Prefix, &[u8], Seq), b: (Prefix, &[u8], Seq)) -> Ordering {
    a.0.cmp(&b.0).then_with(|| a.1.cmp(b.1)).then_with(|| b.2.cmp(&a.2))
}

impl Ord for MemKey {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.parts(), other.parts())
    }
}
impl PartialOrd for MemKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for MemKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for MemKey {}

impl Ord for dyn Position + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.parts(), other.parts())
    }
}
impl PartialOrd for dyn Position + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for dyn Position + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for dyn Position + '_ {}

impl Memtable {
    /// An empty memtable with a filter sized for `budget_bytes` of entries. More entries work, but give more false positives.
    pub fn new(budget_bytes: u64) -> Result<Self> {
        let keys = (budget_bytes / FILTER_BYTES_PER_ENTRY).clamp(1, FILTER_KEYS_MAX);
        Ok(Memtable {
            map: SkipMap::new(),
            filter: AtomicBloom::new(keys, FILTER_BITS_PER_KEY)?,
            bytes: AtomicUsize::new(0),
            last_seq: AtomicU64::new(0),
        })
    }

    /// Adds one operation. `data` is the key, immediately followed by the value; `hash` is the key's hash.
    ///
    /// The hash enters the filter before the entry enters the skiplist, and the caller publishes the sequence number after both, so that a
    /// reader that may see the entry finds its bits set (I1).
    pub fn insert(&self, hash: u64, seq: Seq, kind: EntryKind, key_len: usize, data: Bytes) {
        let size = data.len() + ENTRY_OVERHEAD_BYTES;
        let prefix = prefix16(data.get(..key_len).unwrap_or_default());
        self.filter.insert(hash);
        self.map.insert(MemKey { prefix, seq, kind, key_len: key_len as u32, data }, ());
        self.bytes.fetch_add(size, Memory::Relaxed);
        self.last_seq.fetch_max(seq, Memory::Relaxed);
    }

    /// The newest entry of `key` with a sequence number of at most `seq`.
    #[inline]
    pub fn get(&self, key: &[u8], hash: u64, seq: Seq) -> Option<Entry> {
        // Set by the first insert, before readers may see the entry. Spares an empty memtable the filter probe.
        if self.bytes() == 0 {
            return None;
        }
        match self.filter.probe(hash) {
            Verdict::Absent => None,
            Verdict::Maybe => self.search(key, seq),
        }
    }

    /// [`get`](Self::get) without the filter.
    pub fn search(&self, key: &[u8], seq: Seq) -> Option<Entry> {
        let position = Search::new(key, seq);
        let found = self.map.lower_bound(Bound::Included(&position as &dyn Position))?;
        (found.key().key() == key).then(|| found.key().entry())
    }

    /// Prefetches the filter line for this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.filter.prefetch(hash);
    }

    /// Estimated memory of the entries, in bytes, without the filter.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Memory::Relaxed)
    }

    /// Number of entries, counting every version of a key.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether nothing was ever inserted.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Leaves out the sequence numbers up to `seq`: they belong to no entry.
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

/// Walks the newest visible entry of each key, in either direction, without borrowing the memtable.
pub struct MemtableCursor {
    table: Arc<Memtable>,
    seq: Seq,
    reverse: bool,
    /// Entries ahead, the next one last.
    ahead: Vec<MemItem>,
    current: Option<MemItem>,
    /// Where the next chunk starts: after this key, or at the cursor's start.
    resume: Bound<Vec<u8>>,
    chunk: usize,
    exhausted: bool,
}

#[derive(Clone)]
struct MemItem {
    key_len: u32,
    seq: Seq,
    kind: EntryKind,
    data: Bytes,
}

impl MemItem {
    fn key(&self) -> &[u8] {
        self.data.get(..self.key_len as usize).unwrap_or_default()
    }
}

impl MemtableCursor {
    /// Forwards from the first key within `start`.
    pub fn forward(table: Arc<Memtable>, seq: Seq, start: Bound<&[u8]>) -> Self {
        Self::new(table, seq, false, start)
    }

    /// Backwards from the last key within `start`.
    pub fn reverse(table: Arc<Memtable>, seq: Seq, start: Bound<&[u8]>) -> Self {
        Self::new(table, seq, true, start)
    }

    fn new(table: Arc<Memtable>, seq: Seq, reverse: bool, start: Bound<&[u8]>) -> Self {
        let resume = start.map(<[u8]>::to_vec);
        let (ahead, chunk) = (Vec::new(), FIRST_CHUNK);
        MemtableCursor { table, seq, reverse, ahead, current: None, resume, chunk, exhausted: false }
    }

    /// Moves to the next key; `false` at the end.
    pub fn advance(&mut self) -> bool {
        if self.ahead.is_empty() && !self.exhausted {
            self.refill();
        }
        self.step();
        self.current.is_some()
    }

    /// Number of keys that [`step`](Self::step) can reach: the rest of the chunk.
    pub fn ahead(&self) -> usize {
        self.ahead.len()
    }

    /// The key `n` keys ahead of the current one, from 1 to [`ahead`](Self::ahead).
    pub fn key_ahead(&self, n: usize) -> SplitKey<'_> {
        self.ahead.iter().nth_back(n.wrapping_sub(1)).map(|item| item.key().into()).unwrap_or_default()
    }

    /// Moves to the next key of the chunk. Only while keys are [`ahead`](Self::ahead).
    #[inline]
    pub fn step(&mut self) {
        self.current = self.ahead.pop();
    }

    /// The key under the cursor; empty before the first `advance`.
    pub fn key(&self) -> SplitKey<'_> {
        self.current.as_ref().map(|item| item.key().into()).unwrap_or_default()
    }

    /// The sequence number under the cursor.
    pub fn seq(&self) -> Seq {
        self.current.as_ref().map_or(0, |item| item.seq)
    }

    /// The kind under the cursor.
    pub fn kind(&self) -> EntryKind {
        self.current.as_ref().map_or(EntryKind::Tombstone, |item| item.kind)
    }

    /// The value under the cursor.
    pub fn value(&self) -> &[u8] {
        self.current.as_ref().and_then(|item| item.data.get(item.key_len as usize..)).unwrap_or_default()
    }

    /// The value under the cursor, shared.
    pub fn to_value(&self) -> Value {
        let item = self.current.as_ref();
        item.map(|item| Value::new(item.data.slice(item.key_len as usize..))).unwrap_or_default()
    }

    /// Copies the next chunk. A chunk ends between two keys, never between two versions of one.
    fn refill(&mut self) {
        let table = Arc::clone(&self.table);
        let next = if self.reverse { self.collect_reverse(&table) } else { self.collect_forward(&table) };
        self.exhausted = next.is_none();
        if let Some(key) = next {
            self.resume = Bound::Excluded(key);
        }
        self.ahead.reverse();
        self.chunk = (2 * self.chunk).min(LAST_CHUNK);
    }

    fn collect_forward(&mut self, table: &Memtable) -> Option<Vec<u8>> {
        // The newest version of a key comes first: Seq::MAX precedes all versions, 0 follows them.
        let position = match &self.resume {
            Bound::Included(key) => Bound::Included(Search::new(key, Seq::MAX)),
            Bound::Excluded(key) => Bound::Excluded(Search::new(key, 0)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let mut at = match &position {
            Bound::Unbounded => table.map.front(),
            bound => table.map.lower_bound(bound.as_ref().map(|search| search as &dyn Position)),
        };
        while let Some(entry) = at {
            let item = entry.key();
            if item.seq <= self.seq && self.ahead.last().is_none_or(|last| last.key() != item.key()) {
                if let Some(last) = self.ahead.last().filter(|_| self.ahead.len() == self.chunk) {
                    return Some(last.key().to_vec());
                }
                self.ahead.push(copy(item));
            }
            at = entry.next();
        }
        None
    }

    fn collect_reverse(&mut self, table: &Memtable) -> Option<Vec<u8>> {
        let position = match &self.resume {
            Bound::Included(key) => Bound::Included(Search::new(key, 0)),
            Bound::Excluded(key) => Bound::Excluded(Search::new(key, Seq::MAX)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let mut at = match &position {
            Bound::Unbounded => table.map.back(),
            bound => table.map.upper_bound(bound.as_ref().map(|search| search as &dyn Position)),
        };
        while let Some(entry) = at {
            let item = entry.key();
            if item.seq <= self.seq {
                let full = self.ahead.len() == self.chunk;
                // Backwards, the versions of a key come oldest first: a newer one replaces the last.
                match self.ahead.last_mut() {
                    Some(last) if last.key() == item.key() => *last = copy(item),
                    Some(last) if full => return Some(last.key().to_vec()),
                    _ => self.ahead.push(copy(item)),
                }
            }
            at = entry.prev();
        }
        None
    }
}

fn copy(item: &MemKey) -> MemItem {
    MemItem { key_len: item.key_len, seq: item.seq, kind: item.kind, data: item.data.clone() }
}

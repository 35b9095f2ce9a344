//! Walking a memtable.

use super::entry::{MemKey, MemKind, Place, Search};
use super::table::Memtable;
use crate::bounds::copy_bound;
use crate::direction::Direction;
use crate::key::{EntryKind, LongFront, Seq, SplitKey, Value, long_front};
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;

/// Entries that a cursor copies from the list at a time, so that it holds no borrow and seeks once per
/// chunk. The first chunk is small, so that a short range stays cheap; each further one is twice as large.
const FIRST_CHUNK: usize = 8;
/// The first one after a seek, which may need only one.
const SEEK_CHUNK: usize = 2;
const LAST_CHUNK: usize = 128;
/// The number before that of the first entry of a chunk.
const NOWHERE: usize = usize::MAX;

/// Walks the newest visible entry of each key, in either direction, without borrowing the memtable.
pub struct MemtableCursor {
    table: Arc<Memtable>,
    seq: Seq,
    direction: Direction,
    /// A chunk of entries in the order of the walk.
    items: Vec<MemItem>,
    /// The current one; [`NOWHERE`] before the first one and after the end.
    at: usize,
    /// Where the next chunk starts: after this key, or at the cursor's start.
    resume: Bound<Vec<u8>>,
    chunk: usize,
    exhausted: bool,
}

#[derive(Clone)]
struct MemItem {
    /// The first 16 bytes of the key as an integer.
    front: u128,
    key_len: u32,
    seq: Seq,
    kind: MemKind,
    data: Bytes,
}

impl MemItem {
    fn key(&self) -> &[u8] {
        self.data.get(..self.key_len as usize).unwrap_or_default()
    }

    /// The kind, and where the value starts in the data.
    fn kind(&self) -> (EntryKind, usize) {
        let key_len = self.key_len as usize;
        let (kind, skipped) = self.kind.split(self.data.get(key_len..).unwrap_or_default());
        (kind, key_len + skipped)
    }
}

impl MemtableCursor {
    /// Walks from the first key within `start`, or backwards from the last one.
    pub fn new(table: Arc<Memtable>, seq: Seq, direction: Direction, start: Bound<&[u8]>) -> Self {
        let resume = start.map(<[u8]>::to_vec);
        let (items, at, chunk) = (Vec::new(), NOWHERE, FIRST_CHUNK);
        MemtableCursor { table, seq, direction, items, at, resume, chunk, exhausted: false }
    }

    /// Starts another walk, from the first key within `start`, or backwards from the last one.
    pub fn seek(&mut self, direction: Direction, start: Bound<&[u8]>) {
        copy_bound(start, &mut self.resume);
        self.items.clear();
        (self.direction, self.at, self.chunk, self.exhausted) = (direction, NOWHERE, SEEK_CHUNK, false);
    }

    /// Moves to the next key; `false` at the end.
    pub fn advance(&mut self) -> bool {
        if self.ahead() == 0 && !self.exhausted {
            self.refill();
        }
        if self.ahead() == 0 {
            self.items.clear();
            self.at = NOWHERE;
            return false;
        }
        self.step();
        true
    }

    /// Number of keys that [`step`](Self::step) can reach: the rest of the chunk.
    #[inline]
    pub fn ahead(&self) -> usize {
        self.items.len().saturating_sub(self.at.wrapping_add(1))
    }

    /// The key `n` keys ahead of the current one, from 1 to [`ahead`](Self::ahead).
    pub fn key_ahead(&self, n: usize) -> SplitKey<'_> {
        self.items.get(self.at.wrapping_add(n)).map(|item| item.key().into()).unwrap_or_default()
    }

    /// Moves to the next key of the chunk. Only while keys are [`ahead`](Self::ahead).
    #[inline]
    pub fn step(&mut self) {
        self.at = self.at.wrapping_add(1);
    }

    /// How many of the next `most` keys of the chunk come before the first tombstone or value that expires.
    pub fn puts_ahead(&self, most: usize) -> usize {
        let ahead = self.items.get(self.at.wrapping_add(1)..).unwrap_or_default();
        ahead.iter().take(most).take_while(|item| item.kind == MemKind::Put).count()
    }

    /// Moves `n` keys further in the chunk, from 1 to [`ahead`](Self::ahead).
    #[inline]
    pub fn step_over(&mut self, n: usize) {
        self.at = self.at.wrapping_add(n);
    }

    #[inline]
    fn current(&self) -> Option<&MemItem> {
        self.items.get(self.at)
    }

    /// The key under the cursor; empty before the first `advance`.
    pub fn key(&self) -> SplitKey<'_> {
        self.current().map(|item| item.key().into()).unwrap_or_default()
    }

    /// The [front](SplitKey::front) of the key under the cursor.
    #[inline]
    pub fn front(&self) -> u128 {
        self.current().map_or(0, |item| item.front)
    }

    /// Appends the fronts of the current entry and the rest of the chunk. Returns the length of their keys,
    /// if they have one length and are puts that do not expire.
    pub fn list_fronts(&self, out: &mut Vec<LongFront>) -> Option<usize> {
        let items = self.items.get(self.at..).unwrap_or_default();
        out.extend(items.iter().map(|item| long_front(item.key())));
        let len = items.first()?.key_len;
        let are_plain = items.iter().all(|item| item.key_len == len && item.kind == MemKind::Put);
        are_plain.then_some(len as usize)
    }

    /// The sequence number under the cursor.
    pub fn seq(&self) -> Seq {
        self.current().map_or(0, |item| item.seq)
    }

    /// The kind under the cursor.
    pub fn kind(&self) -> EntryKind {
        self.current().map_or(EntryKind::TOMBSTONE, |item| item.kind().0)
    }

    /// The value under the cursor.
    pub fn value(&self) -> &[u8] {
        self.current().and_then(|item| item.data.get(item.kind().1..)).unwrap_or_default()
    }

    /// The value under the cursor, shared.
    pub fn to_value(&self) -> Value {
        let item = self.current();
        item.map(|item| Value::new(item.data.slice(item.kind().1..))).unwrap_or_default()
    }

    /// Copies the next chunk. A chunk ends between two keys, never between two versions of one.
    fn refill(&mut self) {
        let table = Arc::clone(&self.table);
        self.items.clear();
        self.at = NOWHERE;
        let is_full = match self.direction {
            Direction::Forward => self.collect_forward(&table),
            Direction::Reverse => self.collect_reverse(&table),
        };
        self.exhausted = !is_full;
        if let Some(last) = self.items.last().filter(|_| is_full) {
            copy_bound(Bound::Excluded(last.key()), &mut self.resume);
        }
        self.chunk = (2 * self.chunk).min(LAST_CHUNK);
    }

    /// Whether the chunk is full, so that more keys may follow.
    fn collect_forward(&mut self, table: &Memtable) -> bool {
        // The newest version of a key comes first: Seq::MAX precedes all versions, 0 follows them.
        let mut at = match &self.resume {
            Bound::Included(key) => table.entries.first_from(Place::Before(Search::new(key, Seq::MAX))),
            Bound::Excluded(key) => table.entries.first_from(Place::After(Search::new(key, 0))),
            Bound::Unbounded => table.entries.front(),
        };
        while let Some(entry) = at {
            let item = entry.key();
            if item.seq <= self.seq && self.items.last().is_none_or(|last| last.key() != item.key()) {
                if self.items.len() == self.chunk {
                    return true;
                }
                self.items.push(copy(item));
            }
            at = entry.next();
        }
        false
    }

    fn collect_reverse(&mut self, table: &Memtable) -> bool {
        let mut at = table.entries.last_before(match &self.resume {
            Bound::Included(key) => Place::After(Search::new(key, 0)),
            Bound::Excluded(key) => Place::Before(Search::new(key, Seq::MAX)),
            Bound::Unbounded => Place::End,
        });
        while let Some(entry) = at {
            let item = entry.key();
            if item.seq <= self.seq {
                let full = self.items.len() == self.chunk;
                // Backwards, the versions of a key come oldest first: a newer one replaces the last.
                match self.items.last_mut() {
                    Some(last) if last.key() == item.key() => *last = copy(item),
                    Some(_) if full => return true,
                    _ => self.items.push(copy(item)),
                }
            }
            at = entry.prev();
        }
        false
    }
}

fn copy(item: &MemKey) -> MemItem {
    MemItem {
        front: item.prefix.front(),
        key_len: item.key_len,
        seq: item.seq,
        kind: item.kind,
        data: item.data.clone(),
    }
}

//! One generation of a guard: a store of key hashes, and how counts, totals, exceptions and the note stand in it.

use super::format::{EXCEPTION, HashWidth, NOTE, Settings, TOTALS};
use super::hashed::{HashBytes, Hashed};
use super::options::GuardOptions;
use super::sort::Sorter;
use crate::codec::{Decoder, Encode};
use crate::db::{Db, Durability};
use crate::error::{Error, Result};
use crate::filter::Verdict;
use crate::wal::Batch;
use crossbeam_skiplist::SkipSet;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Locks and totals are kept for this many parts of the hashes.
pub(super) const STRIPES: usize = 64;

/// A change of one key's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Insert,
    /// Unless the key is there.
    InsertNew,
    Remove,
}

pub(super) struct Generation {
    pub db: Db,
    pub number: u64,
    path: PathBuf,
    width: HashWidth,
    /// Removals of rows that were deleted before this moment may be counted in it already; see `transaction.rs`.
    pub since: u64,
    totals: [Totals; STRIPES],
    /// Known false positives. Changed under the lock of the hash's stripe.
    exceptions: SkipSet<Hashed>,
    exceptions_len: AtomicUsize,
    exceptions_max: usize,
}

/// Rows, and distinct keys among them. Changed under the stripe's lock.
#[derive(Default)]
struct Totals {
    rows: AtomicU64,
    keys: AtomicU64,
}

impl Generation {
    /// Opens what is there, or creates it empty.
    pub fn open(dir: &Path, settings: &Settings, options: &GuardOptions) -> Result<Self> {
        let path = settings.store(dir);
        let db = options.store.clone().filter_policy(settings.policy).open(&path)?;
        db.warm()?;
        let mut generation = Generation {
            db,
            number: settings.generation,
            path,
            width: settings.width,
            since: 0,
            totals: std::array::from_fn(|_| Totals::default()),
            exceptions: SkipSet::new(),
            exceptions_len: AtomicUsize::new(0),
            exceptions_max: options.exceptions,
        };
        generation.load()?;
        Ok(generation)
    }

    fn load(&mut self) -> Result<()> {
        for (stripe, totals) in self.totals.iter().enumerate() {
            let Some(value) = self.db.get(self.meta_key(TOTALS, &[stripe as u8]))? else { continue };
            let mut fields = Decoder::new(&value);
            let (Some(rows), Some(keys)) = (fields.varint(), fields.varint()) else {
                return Err(self.damaged("a total does not read as two numbers"));
            };
            totals.rows.store(rows, Relaxed);
            totals.keys.store(keys, Relaxed);
        }
        let prefix = self.meta_key(EXCEPTION, &[]);
        for entry in self.db.prefix(&prefix) {
            let (key, _) = entry?;
            let hash = key.get(prefix.len()..).and_then(|bytes| Hashed::from_bytes(bytes, self.width));
            self.remember(hash.ok_or_else(|| self.damaged("an exception is not a hash"))?);
        }
        Ok(())
    }

    fn damaged(&self, what: &str) -> Error {
        Error::corruption(&self.path, 0, format!("{what}; refresh the guard from its database"))
    }

    fn bytes_of(&self, hash: Hashed) -> HashBytes {
        hash.to_bytes(self.width)
    }

    fn meta_key(&self, tag: u8, rest: &[u8]) -> Vec<u8> {
        let mut key = vec![0; self.width.bytes()];
        key.push(tag);
        key.extend_from_slice(rest);
        key
    }

    /// From memory alone.
    #[inline]
    pub fn may_contain(&self, hash: Hashed) -> Verdict {
        match self.db.may_contain(self.bytes_of(hash)) {
            Verdict::Maybe if self.is_exception(hash) => Verdict::Absent,
            verdict => verdict,
        }
    }

    pub fn may_contain_many(&self, hashes: &[Hashed]) -> Vec<Verdict> {
        let bytes: Vec<HashBytes> = hashes.iter().map(|hash| self.bytes_of(*hash)).collect();
        let mut verdicts = self.db.may_contain_many(&bytes);
        for (verdict, hash) in verdicts.iter_mut().zip(hashes) {
            if *verdict == Verdict::Maybe && self.is_exception(*hash) {
                *verdict = Verdict::Absent;
            }
        }
        verdicts
    }

    /// How many rows have this hash; may read the disk.
    pub fn count(&self, hash: Hashed) -> Result<u64> {
        match self.db.get(self.bytes_of(hash))? {
            None => Ok(0),
            Some(value) if value.is_empty() => Ok(1),
            Some(value) => Decoder::new(&value).varint().ok_or_else(|| self.damaged("a count is no number")),
        }
    }

    /// Applies changes in order, all or nothing. Returns for each whether it changed a count: not so when it removes a key that is not
    /// there, or inserts one that should be new and is not. The caller holds the locks of all their stripes.
    pub fn apply(
        &self,
        changes: &[(Hashed, Op)],
        note: Option<&[u8]>,
        durability: Durability,
    ) -> Result<Vec<bool>> {
        let mut counts = BTreeMap::new();
        let mut done = Vec::with_capacity(changes.len());
        for &(hash, op) in changes {
            let count = match counts.entry(hash) {
                std::collections::btree_map::Entry::Occupied(seen) => seen.into_mut(),
                std::collections::btree_map::Entry::Vacant(first) => {
                    let before = self.count(hash)?;
                    first.insert((before, before))
                }
            };
            let applies = match op {
                Op::Insert => true,
                Op::InsertNew => count.1 == 0,
                Op::Remove => count.1 > 0,
            };
            match op {
                _ if !applies => {}
                Op::Insert | Op::InsertNew => count.1 += 1,
                Op::Remove => count.1 -= 1,
            }
            done.push(applies);
        }
        counts.retain(|_, (before, now)| before != now);
        let mut batch = Batch::new();
        let mut totals: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        for (&hash, &(before, now)) in &counts {
            self.put_count(&mut batch, hash, now);
            if self.is_exception(hash) {
                batch.delete(self.meta_key(EXCEPTION, self.bytes_of(hash).as_ref()));
            }
            let stripe = hash.stripe(STRIPES);
            let (rows, keys) = totals.entry(stripe).or_insert_with(|| self.totals_of(stripe));
            *rows = (*rows + now).saturating_sub(before);
            *keys = (*keys + u64::from(now > 0)).saturating_sub(u64::from(before > 0));
        }
        totals.iter().for_each(|(stripe, totals)| self.put_totals(&mut batch, *stripe, *totals));
        if let Some(note) = note {
            batch.put(self.meta_key(NOTE, &[]), note);
        }
        self.db.write_with(batch, durability)?;
        counts.keys().for_each(|hash| self.forget(*hash));
        for (stripe, (rows, keys)) in totals {
            if let Some(of) = self.totals.get(stripe) {
                of.rows.store(rows, Relaxed);
                of.keys.store(keys, Relaxed);
            }
        }
        Ok(done)
    }

    /// Fills an empty generation with sorted hashes, durably.
    pub fn fill(&self, sorter: Sorter, note: Option<&[u8]>) -> Result<()> {
        let mut totals = [(0, 0); STRIPES];
        let rows = sorter.finish()?.map(|counted| {
            counted.map(|(hash, count)| {
                if let Some((rows, keys)) = totals.get_mut(hash.stripe(STRIPES)) {
                    *rows += count;
                    *keys += 1;
                }
                (self.bytes_of(hash), count_value(count))
            })
        });
        self.db.ingest(rows)?;
        let mut batch = Batch::new();
        for (stripe, (of, now)) in self.totals.iter().zip(totals).enumerate() {
            of.rows.store(now.0, Relaxed);
            of.keys.store(now.1, Relaxed);
            self.put_totals(&mut batch, stripe, now);
        }
        if let Some(note) = note {
            batch.put(self.meta_key(NOTE, &[]), note);
        }
        self.db.write_with(batch, Durability::Sync)
    }

    fn put_count(&self, batch: &mut Batch, hash: Hashed, count: u64) {
        match count {
            0 => batch.delete(self.bytes_of(hash)),
            _ => batch.put(self.bytes_of(hash), count_value(count)),
        }
    }

    fn put_totals(&self, batch: &mut Batch, stripe: usize, (rows, keys): (u64, u64)) {
        let mut value = Vec::new();
        value.put_varint(rows);
        value.put_varint(keys);
        batch.put(self.meta_key(TOTALS, &[stripe as u8]), value);
    }

    fn totals_of(&self, stripe: usize) -> (u64, u64) {
        self.totals.get(stripe).map_or((0, 0), |of| (of.rows.load(Relaxed), of.keys.load(Relaxed)))
    }

    /// Rows, and distinct keys among them.
    pub fn totals(&self) -> (u64, u64) {
        (0..STRIPES).map(|stripe| self.totals_of(stripe)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// The note that was written last.
    pub fn note(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.db.get(self.meta_key(NOTE, &[]))?.map(|value| value.to_vec()))
    }

    #[inline]
    fn is_exception(&self, hash: Hashed) -> bool {
        self.exceptions_len.load(Relaxed) > 0 && self.exceptions.contains(&hash)
    }

    fn remember(&self, hash: Hashed) {
        self.exceptions.insert(hash);
        self.exceptions_len.store(self.exceptions.len(), Relaxed);
    }

    fn forget(&self, hash: Hashed) {
        if self.exceptions.remove(&hash).is_some() {
            self.exceptions_len.store(self.exceptions.len(), Relaxed);
        }
    }

    /// Remembers that the database does not have a key, unless the guard itself knows of a row. The caller holds the stripe's lock.
    pub fn except(&self, hash: Hashed) -> Result<bool> {
        if self.exceptions_len.load(Relaxed) >= self.exceptions_max || self.count(hash)? > 0 {
            return Ok(false);
        }
        // Losing it in a crash costs one question: no sync.
        let key = self.meta_key(EXCEPTION, self.bytes_of(hash).as_ref());
        let mut batch = Batch::new();
        batch.put(key, []);
        self.db.write_with(batch, Durability::Os)?;
        self.remember(hash);
        Ok(true)
    }

    pub fn exceptions(&self) -> usize {
        self.exceptions_len.load(Relaxed)
    }

    /// All hashes with their counts, ascending.
    pub fn rows(&self) -> impl Iterator<Item = Result<(Hashed, u64)>> + '_ {
        self.db.iter().filter_map(|entry| {
            let (key, value) = match entry {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error)),
            };
            let hash = Hashed::from_bytes(&key, self.width)?;
            let count = match value.is_empty() {
                true => Some(1),
                false => Decoder::new(&value).varint(),
            };
            Some(count.map(|count| (hash, count)).ok_or_else(|| self.damaged("a count is no number")))
        })
    }
}

fn count_value(count: u64) -> Vec<u8> {
    let mut value = Vec::new();
    if count != 1 {
        value.put_varint(count);
    }
    value
}

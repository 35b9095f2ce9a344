//! One generation of a guard: a store of key hashes with their counts, the totals, the keys known to be
//! absent, and the note.

use super::changes::{ChangeKind, Effect};
use super::expiring::ExpiringKeys;
use super::format::{HashWidth, KNOWN_ABSENT, NOTE, Settings, TOTALS, meta_key};
use super::hash_sorter::HashSorter;
use super::options::GuardOptions;
use super::stored_hash::{HashBytes, StoredHash};
use crate::codec::{Decoder, Encode};
use crate::error::{Error, Result};
use crate::filter::Verdict;
use crate::key::{Expiry, Time};
use crate::wal::Batch;
use crate::{Db, Durability};
use crossbeam_skiplist::SkipSet;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The hashes are divided into this many stripes, each with its own lock and totals.
pub(super) const STRIPES: usize = 64;

pub(super) struct Generation {
    pub db: Db,
    pub number: u64,
    path: PathBuf,
    width: HashWidth,
    pub expiring: ExpiringKeys,
    /// This generation may already lack rows deleted by transactions from before this epoch; see
    /// `refresh.rs`.
    pub since: u64,
    totals: [Totals; STRIPES],
    /// Known false positives. Changed under the lock of the hash's stripe.
    known_absent: SkipSet<StoredHash>,
    known_absent_len: AtomicUsize,
    known_absent_max: usize,
}

/// Rows and distinct keys of a stripe. Changed under its lock.
#[derive(Default)]
struct Totals {
    rows: AtomicU64,
    keys: AtomicU64,
}

/// What a generation has of a key.
#[derive(Clone, Copy, PartialEq)]
struct KeyState {
    rows: u64,
    /// When it expires, if it does.
    until: Option<Time>,
}

impl Generation {
    /// Opens the generation, or creates it empty.
    pub fn open(dir: &Path, settings: &Settings, options: &GuardOptions) -> Result<Self> {
        let path = settings.store(dir);
        let db = options.store.clone().filter_policy(settings.policy).open(&path)?;
        db.warm()?;
        let mut generation = Generation {
            expiring: ExpiringKeys::of(&db, settings.width),
            db,
            number: settings.generation,
            path,
            width: settings.width,
            since: 0,
            totals: std::array::from_fn(|_| Totals::default()),
            known_absent: SkipSet::new(),
            known_absent_len: AtomicUsize::new(0),
            known_absent_max: options.known_absent,
        };
        if options.store.has_segments {
            generation.load()?;
        }
        Ok(generation)
    }

    fn load(&mut self) -> Result<()> {
        for (stripe, totals) in self.totals.iter().enumerate() {
            let Some(value) = self.db.get(self.meta_key(TOTALS, &[stripe as u8]))? else { continue };
            let mut fields = Decoder::new(&value);
            let (Some(rows), Some(keys)) = (fields.varint(), fields.varint()) else {
                return Err(self.damaged("invalid totals"));
            };
            totals.rows.store(rows, Relaxed);
            totals.keys.store(keys, Relaxed);
        }
        let prefix = self.meta_key(KNOWN_ABSENT, &[]);
        for entry in self.db.prefix(&prefix) {
            let (key, _) = entry?;
            let hash = key.get(prefix.len()..).and_then(|bytes| StoredHash::from_bytes(bytes, self.width));
            self.remember(hash.ok_or_else(|| self.damaged("invalid hash of a known absent key"))?);
        }
        Ok(())
    }

    fn damaged(&self, what: &str) -> Error {
        Error::corruption(&self.path, 0, format!("{what}; refresh the guard from its database"))
    }

    fn bytes_of(&self, hash: StoredHash) -> HashBytes {
        hash.to_bytes(self.width)
    }

    fn meta_key(&self, tag: u8, rest: &[u8]) -> Vec<u8> {
        meta_key(self.width, tag, rest)
    }

    /// From memory alone.
    #[inline]
    pub fn may_contain(&self, hash: StoredHash) -> Verdict {
        match self.db.may_contain(self.bytes_of(hash)) {
            Verdict::Maybe if self.is_known_absent(hash) => Verdict::Absent,
            Verdict::Absent if self.expiring.is_used() => {
                let mut verdict = [Verdict::Absent];
                self.expiring.correct(&self.db, &[hash], &mut verdict);
                let [verdict] = verdict;
                verdict
            }
            verdict => verdict,
        }
    }

    pub fn may_contain_many(&self, hashes: &[StoredHash]) -> Vec<Verdict> {
        let bytes: Vec<HashBytes> = hashes.iter().map(|hash| self.bytes_of(*hash)).collect();
        let mut verdicts = self.db.may_contain_many(&bytes);
        for (verdict, hash) in verdicts.iter_mut().zip(hashes) {
            if *verdict == Verdict::Maybe && self.is_known_absent(*hash) {
                *verdict = Verdict::Absent;
            }
        }
        if self.expiring.is_used() {
            self.expiring.correct(&self.db, hashes, &mut verdicts);
        }
        verdicts
    }

    /// How many rows have this hash, and one more for a key that expires; may read the disk.
    pub fn count(&self, hash: StoredHash) -> Result<u64> {
        let expiring = u64::from(self.until(hash)?.is_some());
        Ok(self.rows_of(hash)?.saturating_add(expiring))
    }

    fn until(&self, hash: StoredHash) -> Result<Option<Time>> {
        self.expiring.until(&self.db, hash)?.map_err(|what| self.damaged(what))
    }

    /// When a key expires that is inserted now; `None` for never.
    pub fn moment_of(&self, expiry: Expiry) -> Result<Option<Time>> {
        self.db.reader().storage().clock.moment_of(expiry)
    }

    fn rows_of(&self, hash: StoredHash) -> Result<u64> {
        match self.db.get(self.bytes_of(hash))? {
            None => Ok(0),
            Some(value) if value.is_empty() => Ok(1),
            Some(value) => Decoder::new(&value).varint().ok_or_else(|| self.damaged("invalid row count")),
        }
    }

    /// Applies changes in order, all or none. Returns what each did: nothing for the removal of a missing key
    /// and for [`InsertNew`](ChangeKind::InsertNew) of an existing one. The caller holds the locks of all
    /// their stripes.
    pub fn apply(
        &self,
        changes: &[(StoredHash, ChangeKind)],
        note: Option<&[u8]>,
        durability: Durability,
    ) -> Result<Vec<Effect>> {
        let mut states = BTreeMap::new();
        let mut done = Vec::with_capacity(changes.len());
        for &(hash, kind) in changes {
            let (_, now) = match states.entry(hash) {
                std::collections::btree_map::Entry::Occupied(seen) => seen.into_mut(),
                std::collections::btree_map::Entry::Vacant(first) => {
                    let before = KeyState { rows: self.rows_of(hash)?, until: self.until(hash)? };
                    first.insert((before, before))
                }
            };
            done.push(self.change(now, kind)?);
        }
        states.retain(|_, (before, now)| before != now);
        let mut batch = Batch::new();
        let mut totals: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        let mut expires = false;
        for (&hash, (before, now)) in &states {
            if before.until != now.until {
                expires |= self.expiring.put(&mut batch, hash, now.until);
            }
            if self.is_known_absent(hash) {
                batch.delete(self.meta_key(KNOWN_ABSENT, self.bytes_of(hash).as_ref()));
            }
            if before.rows == now.rows {
                continue;
            }
            self.put_count(&mut batch, hash, now.rows);
            let stripe = hash.stripe(STRIPES);
            let (rows, keys) = totals.entry(stripe).or_insert_with(|| self.totals_of(stripe));
            *rows = rows.saturating_add(now.rows).saturating_sub(before.rows);
            *keys = keys.saturating_add(u64::from(now.rows > 0)).saturating_sub(u64::from(before.rows > 0));
        }
        totals.iter().for_each(|(stripe, totals)| self.put_totals(&mut batch, *stripe, *totals));
        if let Some(note) = note {
            batch.put(self.meta_key(NOTE, &[]), note);
        }
        self.db.write_with(batch, durability)?;
        if expires {
            self.expiring.note_used();
        }
        states.keys().for_each(|hash| self.forget(*hash));
        for (stripe, (rows, keys)) in totals {
            if let Some(of) = self.totals.get(stripe) {
                of.rows.store(rows, Relaxed);
                of.keys.store(keys, Relaxed);
            }
        }
        Ok(done)
    }

    /// Applies a change to a key.
    fn change(&self, now: &mut KeyState, kind: ChangeKind) -> Result<Effect> {
        let is_new = now.rows == 0 && now.until.is_none();
        Ok(match kind {
            ChangeKind::Insert => {
                now.rows = now.rows.saturating_add(1);
                Effect::Row
            }
            // Also a key that would expire: it was added, so it stays.
            ChangeKind::InsertNew => {
                now.rows = now.rows.max(1);
                if is_new { Effect::Row } else { Effect::Nothing }
            }
            ChangeKind::InsertExpiring(_) if !is_new => Effect::Nothing,
            ChangeKind::InsertExpiring(expiry) | ChangeKind::KeepExpiring(expiry) => {
                match self.moment_of(expiry)? {
                    None => now.rows = now.rows.max(1),
                    Some(until) if until <= self.db.reader().storage().clock.now() => {}
                    until => now.until = now.until.max(until),
                }
                Effect::Expiring
            }
            ChangeKind::Remove | ChangeKind::RemoveRow if now.rows > 0 => {
                now.rows -= 1;
                Effect::Row
            }
            ChangeKind::Remove | ChangeKind::RemoveExpiring if now.until.take().is_some() => Effect::Expiring,
            ChangeKind::Remove | ChangeKind::RemoveRow | ChangeKind::RemoveExpiring => Effect::Nothing,
        })
    }

    /// Takes over the keys that expire, at the end of a refresh.
    pub fn keep_expiring(&self, live: &Generation) -> Result<()> {
        const AT_ONCE: usize = 4096;
        let mut rows = live.expiring.all(&live.db).peekable();
        while rows.peek().is_some() {
            let kept = rows.by_ref().take(AT_ONCE).map(|row| {
                let (hash, until) = row?.map_err(|what| live.damaged(what))?;
                Ok((hash, ChangeKind::KeepExpiring(Expiry::at(until.to_system()))))
            });
            self.apply(&kept.collect::<Result<Vec<_>>>()?, None, Durability::Os)?;
        }
        Ok(())
    }

    /// Durably fills an empty generation.
    pub fn fill(&self, mut sorter: HashSorter, note: Option<&[u8]>) -> Result<()> {
        let mut totals = [(0, 0); STRIPES];
        let rows = sorter.counted()?.map(|counted| {
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

    fn put_count(&self, batch: &mut Batch, hash: StoredHash, count: u64) {
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

    /// Rows and distinct keys.
    pub fn totals(&self) -> (u64, u64) {
        (0..STRIPES)
            .map(|stripe| self.totals_of(stripe))
            .fold((0u64, 0u64), |a, b| (a.0.saturating_add(b.0), a.1.saturating_add(b.1)))
    }

    /// The last note written.
    pub fn note(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.db.get(self.meta_key(NOTE, &[]))?.map(|value| value.to_vec()))
    }

    #[inline]
    fn is_known_absent(&self, hash: StoredHash) -> bool {
        self.known_absent_len.load(Relaxed) > 0 && self.known_absent.contains(&hash)
    }

    fn remember(&self, hash: StoredHash) {
        self.known_absent.insert(hash);
        self.known_absent_len.store(self.known_absent.len(), Relaxed);
    }

    fn forget(&self, hash: StoredHash) {
        if self.known_absent.remove(&hash).is_some() {
            self.known_absent_len.store(self.known_absent.len(), Relaxed);
        }
    }

    /// Remembers that the database does not have a key, unless the guard itself knows a row with it. The
    /// caller holds the stripe's lock.
    pub fn add_known_absent(&self, hash: StoredHash) -> Result<bool> {
        if self.known_absent_len.load(Relaxed) >= self.known_absent_max || self.count(hash)? > 0 {
            return Ok(false);
        }
        // Losing it in a crash costs one database call: no sync.
        let key = self.meta_key(KNOWN_ABSENT, self.bytes_of(hash).as_ref());
        let mut batch = Batch::new();
        batch.put(key, []);
        self.db.write_with(batch, Durability::Os)?;
        self.remember(hash);
        Ok(true)
    }

    pub fn known_absent(&self) -> usize {
        self.known_absent_len.load(Relaxed)
    }

    /// All hashes with their counts, ascending.
    pub fn rows(&self) -> impl Iterator<Item = Result<(StoredHash, u64)>> + '_ {
        self.db.iter().filter_map(|entry| {
            let (key, value) = match entry {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error)),
            };
            let hash = StoredHash::from_bytes(&key, self.width)?;
            let count = if value.is_empty() { Some(1) } else { Decoder::new(&value).varint() };
            Some(count.map(|count| (hash, count)).ok_or_else(|| self.damaged("invalid row count")))
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

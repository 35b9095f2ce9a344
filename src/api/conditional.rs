//! Writes that depend on what the store has: [`Keyspace::insert_new`], [`Keyspace::compare_and_set`] and
//! [`Keyspace::update`].
//!
//! Each reads first, without a lock. The write is then committed only if nothing that was read may have
//! changed since; otherwise it starts again. So of writers that race for a key, one always succeeds.

use super::keyspace::Keyspace;
use crate::engine::transaction::commit_if_unchanged;
use crate::engine::transaction::reads::TransactionReads;
use crate::engine::write::condition::{Outcome, Reads};
use crate::engine::write::log::EncodedBatch;
use crate::error::{Error, Result};
use crate::key::{AsOf, Entry, Expiry, StoredKeys, Time, Value};
use crate::wal::{Batch, check_lengths};
use std::collections::HashSet;

/// What [`Keyspace::compare_and_set`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the key may have had another value"]
pub enum CompareAndSet {
    /// The key had the expected value and has the new one.
    Set,
    /// The key has this value instead (`None`: it is absent). Nothing was written.
    Differs(Option<Value>),
}

impl CompareAndSet {
    /// Whether the key has the new value.
    pub fn is_set(&self) -> bool {
        *self == CompareAndSet::Set
    }
}

impl Keyspace {
    /// Puts `key` if it is absent. Returns whether it was: of any number of calls at the same time with the
    /// same key, in any threads, one returns true. A new key costs one filter line for each run, and a put,
    /// reading nothing from disk unless a filter errs.
    ///
    /// `false` says that the key is visible. It is as durable as its own write has asked for.
    ///
    /// ```
    /// # fn main() -> sidebloom::Result<()> {
    /// # let dir = tempfile::tempdir()
    /// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
    /// let seen = sidebloom::Db::open(dir.path().join("seen.db"))?;
    /// assert!(seen.insert_new("https://example.org/", "")?);
    /// assert!(!seen.insert_new("https://example.org/", "")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The errors of [`put`](Self::put), and those of [`get`](Self::get) if a block must be read. On error,
    /// nothing is visible.
    pub fn insert_new(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.insert(key.as_ref(), value.as_ref(), None)
    }

    /// [`insert_new`](Self::insert_new) of a row that expires.
    ///
    /// ```
    /// # fn main() -> sidebloom::Result<()> {
    /// # let dir = tempfile::tempdir()
    /// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
    /// # let nonces = sidebloom::Db::open(dir.path().join("nonces.db"))?;
    /// let five_minutes = sidebloom::Expiry::after(std::time::Duration::from_secs(300));
    /// assert!(nonces.insert_new_with("8d2f", "", five_minutes)?);
    /// assert!(!nonces.insert_new_with("8d2f", "", five_minutes)?); // seen within five minutes
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The errors of [`put_with`](Self::put_with) and [`insert_new`](Self::insert_new).
    pub fn insert_new_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Expiry,
    ) -> Result<bool> {
        self.insert(key.as_ref(), value.as_ref(), Some(expiry))
    }

    fn insert(&self, key: &[u8], value: &[u8], expiry: Option<Expiry>) -> Result<bool> {
        let engine = self.engine();
        engine.shared.check_writable()?;
        self.check()?;
        check_lengths(key.len(), value.len())?;
        loop {
            let seen = engine.shared.seen();
            if self.get(key)?.is_some() {
                return Ok(false);
            }
            let mut batch = Batch::new();
            self.put_into(&mut batch, key, value, expiry);
            batch.validate()?;
            let batch = self.encoded(batch)?.only_if(seen, Reads::OwnKeys, 0);
            if engine.writer.submit(batch)? == Outcome::Committed {
                return Ok(true);
            }
        }
    }

    /// [`insert_new`](Self::insert_new) for several rows. Returns for each whether its key was absent; of
    /// rows with the same key, the first counts. All new rows are one batch, so all of them are written or
    /// none. Filters are asked for many keys at once: this is faster than single calls, best with 100 rows
    /// or more.
    ///
    /// # Errors
    /// The errors of [`insert_new`](Self::insert_new);
    /// [`Error::BatchTooLarge`](crate::Error::BatchTooLarge). On error, nothing is visible.
    pub fn insert_new_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, rows: &[(K, V)]) -> Result<Vec<bool>> {
        self.insert_many(rows, None)
    }

    /// [`insert_new_many`](Self::insert_new_many) of rows that expire.
    ///
    /// # Errors
    /// The errors of [`insert_new_with`](Self::insert_new_with) and
    /// [`insert_new_many`](Self::insert_new_many).
    pub fn insert_new_many_with<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: &[(K, V)],
        expiry: Expiry,
    ) -> Result<Vec<bool>> {
        self.insert_many(rows, Some(expiry))
    }

    fn insert_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: &[(K, V)],
        expiry: Option<Expiry>,
    ) -> Result<Vec<bool>> {
        let engine = self.engine();
        engine.shared.check_writable()?;
        rows.iter().try_for_each(|(key, value)| check_lengths(key.as_ref().len(), value.as_ref().len()))?;
        self.check()?;
        let keys: Vec<&[u8]> = rows.iter().map(|(key, _)| key.as_ref()).collect();
        let stored = StoredKeys::new(self.space, &keys);
        let keys = stored.as_ref().map_or(keys, StoredKeys::keys);
        let seen = engine.shared.seen();
        let found: Vec<bool> = self.reader().multi_get(&keys)?.iter().map(Option::is_some).collect();
        let Some((batch, are_new)) = self.batch_of_new(rows, &found, expiry)? else {
            return Ok(vec![false; rows.len()]);
        };
        if engine.writer.submit(batch.only_if(seen, Reads::OwnKeys, 0))? == Outcome::Committed {
            return Ok(are_new);
        }
        self.insert_beside_others(rows, &keys, expiry)
    }

    /// [`insert_many`](Self::insert_many) once its keys may have changed. If that happens again, it
    /// looks only at what is newer.
    #[cold]
    fn insert_beside_others<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: &[(K, V)],
        keys: &[&[u8]],
        expiry: Option<Expiry>,
    ) -> Result<Vec<bool>> {
        loop {
            let (moment, time) = (self.reader().exact_snapshot(), self.reader().storage().clock.moment());
            let mut found = Vec::with_capacity(keys.len());
            let (view, as_of) = (&moment.0, AsOf { seq: moment.1.seq, time });
            self.reader().find_each(view, as_of, keys, |entry| entry.seq, |seq| found.push(seq.is_some()))?;
            let Some((batch, are_new)) = self.batch_of_new(rows, &found, expiry)? else {
                return Ok(vec![false; rows.len()]);
            };
            let mut reads = TransactionReads::default();
            keys.iter()
                .zip(&are_new)
                .filter(|(_, is_new)| **is_new)
                .for_each(|(key, _)| reads.add_key(key, None));
            match commit_if_unchanged(self.reader(), &self.engine().writer, &batch, moment, time, &reads) {
                Ok(()) => return Ok(are_new),
                Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A batch of the rows whose keys were not found, of equal keys the first, and for each row whether it is
    /// in it. `None` if there are none.
    fn batch_of_new<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: &[(K, V)],
        found: &[bool],
        expiry: Option<Expiry>,
    ) -> Result<Option<(EncodedBatch, Vec<bool>)>> {
        let (mut batch, mut first) = (Batch::new(), HashSet::with_capacity(rows.len()));
        let mut are_new = Vec::with_capacity(rows.len());
        for ((key, value), found) in rows.iter().zip(found) {
            let is_new = !found && first.insert(key.as_ref());
            are_new.push(is_new);
            if is_new {
                self.put_into(&mut batch, key.as_ref(), value.as_ref(), expiry);
            }
        }
        batch.validate()?;
        if batch.is_empty() { Ok(None) } else { Ok(Some((self.encoded(batch)?, are_new))) }
    }

    /// Sets `key` to `new` (`None` deletes it) if it has the value `expected` (`None`: if it is absent).
    /// Otherwise it returns the current value and writes nothing.
    ///
    /// ```
    /// # use sidebloom::CompareAndSet;
    /// # fn main() -> sidebloom::Result<()> {
    /// # let dir = tempfile::tempdir()
    /// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
    /// # let db = sidebloom::Db::open(dir.path().join("leases.db"))?;
    /// assert!(db.compare_and_set("lease", None, Some(b"ann"))?.is_set());
    /// match db.compare_and_set("lease", None, Some(b"bob"))? {
    ///     CompareAndSet::Set => println!("bob has it"),
    ///     CompareAndSet::Differs(holder) => assert!(holder.is_some_and(|holder| holder == b"ann")),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The errors of [`insert_new`](Self::insert_new).
    pub fn compare_and_set(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<CompareAndSet> {
        let key = key.as_ref();
        let mut differs = None;
        self.replace(key, new.map_or(0, <[u8]>::len), None, |current| {
            let is_expected = current.as_deref() == expected;
            differs = (!is_expected).then(|| CompareAndSet::Differs(current));
            is_expected.then_some(new)
        })?;
        Ok(differs.unwrap_or(CompareAndSet::Set))
    }

    /// Sets `key` to what `next` makes of its value (`None`: absent), and returns that. `None` deletes the
    /// key. If its value changes in between, `next` is called again, with the value that it has then.
    ///
    /// ```
    /// # fn main() -> sidebloom::Result<()> {
    /// # let dir = tempfile::tempdir()
    /// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
    /// # let db = sidebloom::Db::open(dir.path().join("counts.db"))?;
    /// let add_one = |count: Option<&[u8]>| {
    ///     let count = count.and_then(|count| count.try_into().ok()).map_or(0, u64::from_le_bytes);
    ///     Some((count + 1).to_le_bytes())
    /// };
    /// db.update("visits", add_one)?;
    /// assert_eq!(db.update("visits", add_one)?, Some(2u64.to_le_bytes()));
    /// # Ok(()) }
    /// ```
    ///
    /// `next` may use the store. If it panics, nothing is written, and the store goes on.
    ///
    /// # Errors
    /// The errors of [`insert_new`](Self::insert_new).
    pub fn update<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        mut next: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<Option<V>> {
        let mut result = None;
        self.replace(key.as_ref(), 0, None, |current| {
            result = next(current.as_deref());
            Some(result.as_ref().map(V::as_ref).map(<[u8]>::to_vec))
        })?;
        Ok(result)
    }

    /// Replaces the value of `key` with what `next` returns for the current one, until nothing has come in
    /// between. `next` returns `None` to write nothing, and `Some(None)` to delete the key. The new row
    /// expires as `expiry` says, or else as those of the keyspace do.
    pub(super) fn replace<V: AsRef<[u8]>>(
        &self,
        key: &[u8],
        value_len: usize,
        expiry: Option<Expiry>,
        mut next: impl FnMut(Option<Value>) -> Option<Option<V>>,
    ) -> Result<()> {
        let engine = self.engine();
        engine.shared.check_writable()?;
        self.check()?;
        check_lengths(key.len(), value_len)?;
        let mut seen = engine.shared.seen();
        let (mut current, mut until) = self.get_with_expiry(key)?;
        loop {
            let mut batch = Batch::new();
            match next(current.clone()) {
                None => return Ok(()),
                Some(None) if current.is_none() => return Ok(()),
                Some(None) => self.in_batch(&mut batch).delete(key),
                Some(Some(value)) => self.put_into(&mut batch, key, value.as_ref(), expiry),
            }
            batch.validate()?;
            let batch = self.encoded(batch)?;
            // The same batch, as long as the value is the same: a flush in between is no reason for another.
            loop {
                let batch = batch.clone().only_if(seen, Reads::OwnKeys, 0).only_before(until);
                if engine.writer.submit(batch)? == Outcome::Committed {
                    return Ok(());
                }
                seen = engine.shared.seen();
                let now;
                (now, until) = self.get_with_expiry(key)?;
                if now.as_deref() != current.as_deref() {
                    current = now;
                    break;
                }
            }
        }
    }

    /// The newest entry of a key that has a value now, and the moment of that.
    pub(super) fn entry(&self, key: &[u8]) -> Result<(Option<Entry>, Time)> {
        self.check()?;
        let (view, as_of) = self.reader().snapshot();
        let find = |stored: &[u8]| self.reader().entry_in(&view, as_of, stored);
        Ok((self.space.with_stored(key, find)?, as_of.time))
    }

    /// The value of `key`, and when it expires, or never.
    fn get_with_expiry(&self, key: &[u8]) -> Result<(Option<Value>, Time)> {
        if !self.reader().storage().clock.is_needed() {
            return Ok((self.get(key)?, Time::NEVER));
        }
        let entry = self.entry(key)?.0;
        let until = entry.as_ref().and_then(|entry| entry.kind.expiry()).unwrap_or(Time::NEVER);
        Ok((entry.map(|entry| entry.value), until))
    }

    /// The form of a batch that the log takes. It has passed [`Batch::validate`].
    #[inline(always)]
    fn encoded(&self, batch: Batch) -> Result<EncodedBatch> {
        let storage = &self.engine().shared.storage;
        EncodedBatch::new(batch, storage.in_force.durability(), &storage.clock)
    }
}

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
use crate::key::{StoredKeys, Value};
use crate::options::Durability;
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
        let (key, value) = (key.as_ref(), value.as_ref());
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
            self.in_batch(&mut batch).put(key, value);
            batch.validate()?;
            let batch = EncodedBatch::new(batch, self.durability()).only_if(seen, Reads::OwnKeys, 0);
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
        let engine = self.engine();
        engine.shared.check_writable()?;
        rows.iter().try_for_each(|(key, value)| check_lengths(key.as_ref().len(), value.as_ref().len()))?;
        self.check()?;
        let keys: Vec<&[u8]> = rows.iter().map(|(key, _)| key.as_ref()).collect();
        let stored = StoredKeys::new(self.space, &keys);
        let keys = stored.as_ref().map_or(keys, StoredKeys::keys);
        let seen = engine.shared.seen();
        let found: Vec<bool> = self.reader().multi_get(&keys)?.iter().map(Option::is_some).collect();
        let Some((batch, are_new)) = self.batch_of_new(rows, &found)? else {
            return Ok(vec![false; rows.len()]);
        };
        if engine.writer.submit(batch.only_if(seen, Reads::OwnKeys, 0))? == Outcome::Committed {
            return Ok(are_new);
        }
        self.insert_new_beside_others(rows, &keys)
    }

    /// [`insert_new_many`](Self::insert_new_many) once its keys may have changed. If that happens again, it
    /// looks only at what is newer.
    #[cold]
    fn insert_new_beside_others<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: &[(K, V)],
        keys: &[&[u8]],
    ) -> Result<Vec<bool>> {
        loop {
            let moment = self.reader().exact_snapshot();
            let mut found = Vec::with_capacity(keys.len());
            let (view, seq) = (&moment.0, moment.1.seq);
            self.reader().find_each(view, seq, keys, |entry| entry.seq, |seq| found.push(seq.is_some()))?;
            let Some((batch, are_new)) = self.batch_of_new(rows, &found)? else {
                return Ok(vec![false; rows.len()]);
            };
            let mut reads = TransactionReads::default();
            keys.iter()
                .zip(&are_new)
                .filter(|(_, is_new)| **is_new)
                .for_each(|(key, _)| reads.add_key(key, None));
            match commit_if_unchanged(self.reader(), &self.engine().writer, &batch, moment, &reads) {
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
    ) -> Result<Option<(EncodedBatch, Vec<bool>)>> {
        let (mut batch, mut first) = (Batch::new(), HashSet::with_capacity(rows.len()));
        let mut are_new = Vec::with_capacity(rows.len());
        for ((key, value), found) in rows.iter().zip(found) {
            let is_new = !found && first.insert(key.as_ref());
            are_new.push(is_new);
            if is_new {
                self.in_batch(&mut batch).put(key, value);
            }
        }
        batch.validate()?;
        Ok((!batch.is_empty()).then(|| (EncodedBatch::new(batch, self.durability()), are_new)))
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
        self.replace(key, new.map_or(0, <[u8]>::len), |current| {
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
        self.replace(key.as_ref(), 0, |current| {
            result = next(current.as_deref());
            Some(result.as_ref().map(V::as_ref).map(<[u8]>::to_vec))
        })?;
        Ok(result)
    }

    /// Replaces the value of `key` with what `next` returns for the current one, until nothing has come in
    /// between. `next` returns `None` to write nothing, and `Some(None)` to delete the key.
    fn replace<V: AsRef<[u8]>>(
        &self,
        key: &[u8],
        value_len: usize,
        mut next: impl FnMut(Option<Value>) -> Option<Option<V>>,
    ) -> Result<()> {
        let engine = self.engine();
        engine.shared.check_writable()?;
        self.check()?;
        check_lengths(key.len(), value_len)?;
        let mut seen = engine.shared.seen();
        let mut current = self.get(key)?;
        loop {
            let mut batch = Batch::new();
            match next(current.clone()) {
                None => return Ok(()),
                Some(None) if current.is_none() => return Ok(()),
                Some(None) => self.in_batch(&mut batch).delete(key),
                Some(Some(value)) => self.in_batch(&mut batch).put(key, value),
            }
            batch.validate()?;
            let batch = EncodedBatch::new(batch, self.durability());
            // The same batch, as long as the value is the same: a flush in between is no reason for another.
            loop {
                let batch = batch.clone().only_if(seen, Reads::OwnKeys, 0);
                if engine.writer.submit(batch)? == Outcome::Committed {
                    return Ok(());
                }
                seen = engine.shared.seen();
                let now = self.get(key)?;
                if now.as_deref() != current.as_deref() {
                    current = now;
                    break;
                }
            }
        }
    }

    /// When writes are acknowledged, unless a call says otherwise.
    fn durability(&self) -> Durability {
        self.engine().shared.storage.options.durability
    }
}

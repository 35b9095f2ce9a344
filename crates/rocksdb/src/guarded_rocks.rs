//! The database and its guard, kept in step.

use crate::source::{RocksSource, database_error};
use rocksdb::{DB, WriteBatch, WriteOptions};
use sidebloom::filter::Verdict;
use sidebloom::guard::{Canonical, Guard, GuardOptions};
use sidebloom::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

const STRIPES: usize = 64;

/// A RocksDB and a guard that knows its keys. All writes must go through this type: the guard sees no others.
///
/// A key counts once in the guard, however often it is put. Writers of the same key take turns, which keeps
/// the guard's order for each key: an insertion reaches the guard before RocksDB, and a deletion reaches
/// RocksDB before the guard.
pub struct GuardedRocks {
    db: DB,
    guard: Guard,
    stripes: [Mutex<()>; STRIPES],
}

/// Changes that RocksDB applies together. The last change to a key wins.
#[derive(Debug, Default)]
pub struct GuardedBatch(BTreeMap<Vec<u8>, Option<Vec<u8>>>);

impl GuardedBatch {
    /// Sets a key.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.0.insert(key.to_vec(), Some(value.to_vec()));
    }

    /// Deletes a key.
    pub fn delete(&mut self, key: &[u8]) {
        self.0.insert(key.to_vec(), None);
    }
}

impl GuardedRocks {
    /// Opens the guard at `path`, or builds it there from a snapshot of the database's keys.
    ///
    /// # Errors
    /// [`Error::NotAGuard`] for a guard that treats different keys as equal, [`Error::Database`] when RocksDB
    /// cannot be read, and the errors of [`GuardOptions::open`] and [`GuardOptions::build_from`].
    pub fn new(db: DB, path: &Path, options: GuardOptions) -> Result<Self> {
        let guard = if path.join("GUARD").exists() {
            options.open(path)?
        } else {
            options.build_from(path, &mut RocksSource(&db))?
        };
        match guard.canonical() {
            Canonical::EXACT => {}
            other => {
                let what = format!(
                    "RocksDB distinguishes all keys, but this guard's keys are \"{other}\"; delete it and build it with exact keys"
                );
                return Err(Error::NotAGuard { path: path.to_owned(), what });
            }
        }
        Ok(GuardedRocks { db, guard, stripes: std::array::from_fn(|_| Mutex::new(())) })
    }

    /// The value of a key. Calls RocksDB only if the guard answers "maybe".
    ///
    /// # Errors
    /// [`Error::Database`] when RocksDB fails, and the errors of [`Guard::confirm_absent`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.guard.may_contain(key) == Verdict::Absent {
            return Ok(None);
        }
        let found = self.db.get(key).map_err(|error| database_error(&self.db, error))?;
        if found.is_none() {
            self.guard.confirm_absent(key)?;
        }
        Ok(found)
    }

    /// Sets a key.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut batch = GuardedBatch::default();
        batch.put(key, value);
        self.write(batch)
    }

    /// Deletes a key, and syncs the deletion.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        let mut batch = GuardedBatch::default();
        batch.delete(key);
        self.write(batch)
    }

    /// Applies a batch. A batch with deletions is synced.
    ///
    /// # Errors
    /// [`Error::Database`] when RocksDB fails, and the errors of
    /// [`Transaction::commit`](sidebloom::guard::Transaction::commit).
    pub fn write(&self, batch: GuardedBatch) -> Result<()> {
        let _stripes = self.lock(batch.0.keys());
        let mut transaction = self.guard.transaction();
        let mut writes = WriteBatch::default();
        for (key, value) in &batch.0 {
            match value {
                Some(value) => {
                    writes.put(key, value);
                    // Even if the guard already has the key: it may be a leftover, which a running refresh
                    // drops unless told.
                    transaction.insert_new(key)?;
                }
                None => {
                    writes.delete(key);
                    if self.guard.contains(key)? {
                        transaction.remove(key)?;
                    }
                }
            }
        }
        // If a power failure undid the deletion, the guard would lack a key that exists.
        let mut durable = WriteOptions::default();
        durable.set_sync(batch.0.values().any(Option::is_none));
        transaction
            .commit(|| self.db.write_opt(writes, &durable).map_err(|error| database_error(&self.db, error)))
    }

    /// Excludes other writers of these keys.
    fn lock<'k>(&self, keys: impl Iterator<Item = &'k Vec<u8>>) -> Vec<MutexGuard<'_, ()>> {
        let add = |sum: usize, byte: &u8| sum.wrapping_mul(31).wrapping_add(usize::from(*byte));
        let stripe = |key: &Vec<u8>| key.iter().fold(0, add) % STRIPES;
        let touched: BTreeSet<usize> = keys.map(stripe).collect();
        let stripes = touched.into_iter().map(|stripe| &self.stripes[stripe]);
        stripes.map(|stripe| stripe.lock().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// Rebuilds the guard's filter from the keys of the database, while reads and writes continue.
    ///
    /// # Errors
    /// [`Error::Database`] when RocksDB cannot be read, and the errors of [`Guard::refresh`].
    pub fn refresh(&self) -> Result<()> {
        self.guard.refresh(&mut RocksSource(&self.db))?;
        Ok(())
    }

    /// The guard.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The database. Don't write to it directly.
    pub fn db(&self) -> &DB {
        &self.db
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use sidebloom::guard::{Change, Source};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn open(dir: &Path) -> GuardedRocks {
        let options = GuardOptions::new().durability(sidebloom::Durability::Os).known_absent(100);
        GuardedRocks::new(DB::open_default(dir.join("rocks")).unwrap(), &dir.join("guard"), options).unwrap()
    }

    fn key(n: u64) -> Vec<u8> {
        format!("key {n:04}").into_bytes()
    }

    #[test]
    fn answers_match_a_map_through_refreshes_and_reopenings() {
        let dir = tempfile::tempdir().unwrap();
        let db = DB::open_default(dir.path().join("rocks")).unwrap();
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = (0..500).map(|n| (key(n), vec![1])).collect();
        model.iter().for_each(|(key, value)| db.put(key, value).unwrap());
        drop(db);
        let mut rng = Rng::with_seed(1);
        let mut guarded = open(dir.path());
        for step in 0..30_000u64 {
            let n = key(rng.u64(..2000));
            match rng.u64(..10) {
                0..3 => {
                    guarded.put(&n, &step.to_le_bytes()).unwrap();
                    model.insert(n, step.to_le_bytes().to_vec());
                }
                3..5 => {
                    guarded.delete(&n).unwrap();
                    model.remove(&n);
                }
                5 => {
                    let mut batch = GuardedBatch::default();
                    for _ in 0..5 {
                        let n = key(rng.u64(..2000));
                        if rng.u64(..2) == 0 {
                            batch.put(&n, b"batch");
                            model.insert(n, b"batch".to_vec());
                        } else {
                            batch.delete(&n);
                            model.remove(&n);
                        }
                    }
                    guarded.write(batch).unwrap();
                }
                _ => assert_eq!(guarded.get(&n).unwrap(), model.get(&n).cloned()),
            }
            if step % 7_000 == 6_000 {
                guarded.refresh().unwrap();
            }
            if step % 10_000 == 9_000 {
                drop(guarded);
                guarded = open(dir.path());
            }
        }
        let stats = guarded.guard().stats();
        assert_eq!((stats.rows, stats.keys), (model.len() as u64, model.len() as u64), "each key once");
        assert!((0..2000).all(|n| guarded.get(&key(n)).unwrap() == model.get(&key(n)).cloned()));
    }

    #[test]
    fn keys_of_any_length_are_written_and_found() {
        let dir = tempfile::tempdir().unwrap();
        let guarded = open(dir.path());
        let keys: Vec<Vec<u8>> = (1..100).map(|len| vec![0xff; len]).collect();
        keys.iter().for_each(|key| guarded.put(key, b"value").unwrap());
        assert!(keys.iter().all(|key| guarded.get(key).unwrap().is_some()));
    }

    #[test]
    fn a_guard_that_folds_keys_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let db = DB::open_default(dir.path().join("rocks")).unwrap();
        let options = GuardOptions::new().canonical(Canonical::EXACT.trim_padding());
        let error = GuardedRocks::new(db, &dir.path().join("guard"), options).map(drop).unwrap_err();
        assert!(error.to_string().contains("build it with exact keys"), "{error}");
    }

    #[test]
    fn no_key_is_denied_while_threads_write_the_same_keys_during_refreshes() {
        let dir = tempfile::tempdir().unwrap();
        let guarded = open(dir.path());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (guarded, stop) = (&guarded, &stop);
                scope.spawn(move || {
                    let mut rng = Rng::with_seed(thread);
                    while !stop.load(Ordering::Relaxed) {
                        let n = key(rng.u64(..200));
                        match rng.u64(..2) {
                            0 => guarded.put(&n, b"v").unwrap(),
                            _ => guarded.delete(&n).unwrap(),
                        }
                    }
                });
            }
            for _ in 0..40 {
                guarded.refresh().unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let mut there = 0;
        for n in 0..200 {
            if guarded.db().get(key(n)).unwrap().is_some() {
                there += 1;
                assert_eq!(guarded.guard().may_contain(key(n)), Verdict::Maybe, "key {n}");
            }
        }
        assert!(there > 10);
    }

    /// Puts a key right after the old rows have been read.
    struct PutMeanwhile<'a>(&'a GuardedRocks, Vec<u8>);

    impl Source for PutMeanwhile<'_> {
        fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
            RocksSource(self.0.db()).stream(visit)?;
            self.0.put(&self.1, b"v").unwrap();
            Ok(())
        }

        fn count(&mut self, key: &[u8]) -> Result<u64> {
            RocksSource(self.0.db()).count(key)
        }

        fn apply(&mut self, changes: &[Change<'_>]) -> Result<()> {
            RocksSource(self.0.db()).apply(changes)
        }
    }

    #[test]
    fn a_leftover_key_that_is_put_during_a_refresh_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let guarded = open(dir.path());
        guarded.put(&key(1), b"v").unwrap();
        guarded.guard().insert(key(2)).unwrap(); // As after a crash before RocksDB's write.
        guarded.guard().refresh(&mut PutMeanwhile(&guarded, key(2))).unwrap();
        assert_eq!(guarded.get(&key(2)).unwrap(), Some(b"v".to_vec()));
    }
}

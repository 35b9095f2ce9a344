//! A RocksDB behind a guard: the same calls, and a missing key is answered from memory.

use rocksdb::{DB, IteratorMode, WriteBatch, WriteOptions};
use sidebloom::filter::Verdict;
use sidebloom::guard::{Canonical, Change, Guard, GuardOptions, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An error of RocksDB or of the guard.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

const STRIPES: usize = 64;

/// A RocksDB with a guard that knows its keys. All its writes must go through this, or the guard would not know of them.
///
/// A key stands in the guard once, however often it is put. Writers of one key come one after the other, so that the guard's order
/// (the key in the guard, then in RocksDB; out of RocksDB, then out of the guard) holds for each key.
pub struct GuardedRocks {
    db: DB,
    guard: Guard,
    stripes: [Mutex<()>; STRIPES],
}

/// Changes that RocksDB applies together; of one key the last counts.
#[derive(Default)]
pub struct Batch(BTreeMap<Vec<u8>, Option<Vec<u8>>>);

impl Batch {
    /// Sets a key.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.0.insert(key.to_vec(), Some(value.to_vec()));
    }

    /// Removes a key.
    pub fn delete(&mut self, key: &[u8]) {
        self.0.insert(key.to_vec(), None);
    }
}

impl GuardedRocks {
    /// Opens the guard at `path`, or builds it from the keys of the database under one snapshot.
    pub fn new(db: DB, path: &Path, options: GuardOptions) -> Result<Self> {
        let guard = match path.join("GUARD").exists() {
            true => options.open(path)?,
            false => options.build_from(path, &mut Rocks(&db))?,
        };
        match guard.canonical() {
            Canonical::EXACT => {}
            other => {
                let path = path.display();
                return Err(format!("{path}: RocksDB tells all keys apart, and this guard's keys are \"{other}\": delete it and build it with exact keys").into());
            }
        }
        Ok(GuardedRocks { db, guard, stripes: std::array::from_fn(|_| Mutex::new(())) })
    }

    /// A value; RocksDB is asked only when the guard says "maybe".
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.guard.may_contain(key) == Verdict::Absent {
            return Ok(None);
        }
        let found = self.db.get(key)?;
        if found.is_none() {
            self.guard.confirm_absent(key)?;
        }
        Ok(found)
    }

    /// Sets a key.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut batch = Batch::default();
        batch.put(key, value);
        self.write(batch)
    }

    /// Removes a key.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        let mut batch = Batch::default();
        batch.delete(key);
        self.write(batch)
    }

    /// Applies a batch; one with deletions is synced.
    pub fn write(&self, batch: Batch) -> Result<()> {
        let _stripes = self.lock(batch.0.keys());
        let mut transaction = self.guard.transaction();
        let mut writes = WriteBatch::default();
        for (key, value) in &batch.0 {
            match value {
                Some(value) => {
                    writes.put(key, value);
                    // Also if the guard knows the key: that may be a needless "maybe", of which a refresh knows nothing.
                    transaction.insert_new(key)?;
                }
                None => {
                    writes.delete(key);
                    if self.guard.exact(key)? {
                        transaction.remove(key)?;
                    }
                }
            }
        }
        // A deletion that a power cut undid would leave a key that the guard has removed.
        let mut durable = WriteOptions::default();
        durable.set_sync(batch.0.values().any(Option::is_none));
        transaction.commit(|| Ok(self.db.write_opt(writes, &durable)?))
    }

    /// Keeps other writers of these keys out.
    fn lock<'k>(&self, keys: impl Iterator<Item = &'k Vec<u8>>) -> Vec<MutexGuard<'_, ()>> {
        let stripe =
            |key: &Vec<u8>| key.iter().fold(0usize, |sum, byte| sum * 31 + usize::from(*byte)) % STRIPES;
        let touched: BTreeSet<usize> = keys.map(stripe).collect();
        let stripes = touched.into_iter().map(|stripe| &self.stripes[stripe]);
        stripes.map(|stripe| stripe.lock().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// Counts the keys of the database anew, while reads and writes go on.
    pub fn refresh(&self) -> Result<()> {
        self.guard.refresh(&mut Rocks(&self.db))?;
        Ok(())
    }

    /// The guard.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The database.
    pub fn db(&self) -> &DB {
        &self.db
    }
}

/// A RocksDB as the source of a guard's keys.
struct Rocks<'a>(&'a DB);

impl Rocks<'_> {
    fn error(&self, error: rocksdb::Error) -> sidebloom::Error {
        let name = format!("RocksDB {}", self.0.path().display());
        sidebloom::Error::Database { name, what: error.into_string() }
    }
}

impl Source for Rocks<'_> {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> sidebloom::Result<()>) -> sidebloom::Result<()> {
        let snapshot = self.0.snapshot();
        for row in snapshot.iterator(IteratorMode::Start) {
            visit(&row.map_err(|e| self.error(e))?.0)?;
        }
        Ok(())
    }

    fn count(&mut self, key: &[u8]) -> sidebloom::Result<u64> {
        let found = self.0.get_pinned(key).map_err(|e| self.error(e))?;
        Ok(u64::from(found.is_some()))
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> sidebloom::Result<()> {
        let mut batch = WriteBatch::default();
        for change in changes {
            match change {
                Change::Insert(key) => batch.put(key, []),
                Change::Remove(key) => batch.delete(key),
            }
        }
        self.0.write(batch).map_err(|e| self.error(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Rng(u64);

    impl Rng {
        /// Splitmix64.
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (x ^ (x >> 31)) % n
        }
    }

    fn open(dir: &Path) -> GuardedRocks {
        let options = GuardOptions::new().durability(sidebloom::Durability::Os).exceptions(100);
        GuardedRocks::new(DB::open_default(dir.join("rocks")).unwrap(), &dir.join("guard"), options).unwrap()
    }

    fn key(n: u64) -> Vec<u8> {
        format!("key {n:04}").into_bytes()
    }

    #[test]
    fn it_answers_as_a_map_does_through_refreshes_and_reopenings() {
        let dir = tempfile::tempdir().unwrap();
        let db = DB::open_default(dir.path().join("rocks")).unwrap();
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = (0..500).map(|n| (key(n), vec![1])).collect();
        model.iter().for_each(|(key, value)| db.put(key, value).unwrap());
        drop(db);
        let mut rng = Rng(1);
        let mut guarded = open(dir.path());
        for step in 0..30_000u64 {
            let n = key(rng.below(2000));
            match rng.below(10) {
                0..3 => {
                    guarded.put(&n, &step.to_le_bytes()).unwrap();
                    model.insert(n, step.to_le_bytes().to_vec());
                }
                3..5 => {
                    guarded.delete(&n).unwrap();
                    model.remove(&n);
                }
                5 => {
                    let mut batch = Batch::default();
                    for _ in 0..5 {
                        let n = key(rng.below(2000));
                        if rng.below(2) == 0 {
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
    fn a_guard_that_takes_two_of_rocksdbs_keys_for_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let db = DB::open_default(dir.path().join("rocks")).unwrap();
        let options = GuardOptions::new().canonical(Canonical::EXACT.fold_case());
        let error = GuardedRocks::new(db, &dir.path().join("guard"), options).map(drop).unwrap_err();
        assert!(error.to_string().contains("build it with exact keys"), "{error}");
    }

    #[test]
    fn no_key_is_denied_while_threads_write_the_same_keys_and_refreshes_go_on() {
        let dir = tempfile::tempdir().unwrap();
        let guarded = open(dir.path());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (guarded, stop) = (&guarded, &stop);
                scope.spawn(move || {
                    let mut rng = Rng(thread);
                    while !stop.load(Ordering::Relaxed) {
                        let n = key(rng.below(200));
                        match rng.below(2) {
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

    /// Puts a key when the rows of before have been read.
    struct PutMeanwhile<'a>(&'a GuardedRocks, Vec<u8>);

    impl Source for PutMeanwhile<'_> {
        fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> sidebloom::Result<()>) -> sidebloom::Result<()> {
            Rocks(self.0.db()).stream(visit)?;
            self.0.put(&self.1, b"v").unwrap();
            Ok(())
        }

        fn count(&mut self, key: &[u8]) -> sidebloom::Result<u64> {
            Rocks(self.0.db()).count(key)
        }

        fn apply(&mut self, changes: &[Change<'_>]) -> sidebloom::Result<()> {
            Rocks(self.0.db()).apply(changes)
        }
    }

    #[test]
    fn a_key_that_the_guard_knew_needlessly_and_that_is_put_during_a_refresh_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let guarded = open(dir.path());
        guarded.put(&key(1), b"v").unwrap();
        guarded.guard().insert(key(2)).unwrap(); // As a crash before RocksDB's write leaves it.
        guarded.guard().refresh(&mut PutMeanwhile(&guarded, key(2))).unwrap();
        assert_eq!(guarded.get(&key(2)).unwrap(), Some(b"v".to_vec()));
    }
}

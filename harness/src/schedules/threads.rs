//! The threads that use the store of a schedule.

use super::model::{Writer, key};
use super::transactions::Histories;
use crate::config;
use crate::support::{Contents, Rng, STORE, SimFs, contents};
use shuttle::sync::atomic::{AtomicBool, Ordering::SeqCst};
use sidebloom::{Db, Durability, Error, Options, Snapshot};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the threads share.
pub struct Shared {
    pub fs: SimFs,
    pub base: Contents,
    pub writers: Vec<Writer>,
    pub histories: Histories,
    /// Whether an I/O fault is planned.
    pub may_fail: bool,
}

impl Shared {
    #[track_caller]
    pub fn allow(&self, error: &Error, what: &str) {
        let strikes = self.fs.strikes();
        let is_fault = match error {
            Error::Io { path, .. } => strikes.iter().any(|strike| strike.path == *path),
            // A truncated file makes a read end early.
            Error::Corruption { file, .. } => {
                strikes.iter().any(|strike| strike.short && strike.path == *file)
            }
            Error::Poisoned { .. } => !strikes.is_empty(),
            _ => false,
        };
        assert!(is_fault, "{what}: {error}, after {strikes:?}");
    }

    /// Checks that the store holds a prefix of each writer's batches, at least `least`. Returns how many.
    #[track_caller]
    pub fn check(&self, found: &Contents, least: &[u64], what: &str) -> Vec<u64> {
        let counts = self.writers.iter().map(|writer| writer.count_in(found, &self.base, what));
        let counts: Vec<u64> = counts.collect();
        for ((writer, count), least) in self.writers.iter().zip(&counts).zip(least) {
            let known = writer.known();
            assert!(
                (*least..=known.handed_over).contains(count),
                "{what}: {count} batches of writer {}, but at least {least} of {known:?}",
                writer.number
            );
            // If a batch exists, so do all those acknowledged before it was submitted.
            let seen = writer.seen.lock().unwrap();
            if let Some(before) = count.checked_sub(1).map(|last| &seen[last as usize]) {
                let holds = before.iter().zip(&counts).all(|(before, count)| before <= count);
                assert!(
                    holds,
                    "{what}: {counts:?} is not a prefix: batch {count} of {} came after {before:?}",
                    writer.number
                );
            }
        }
        counts
    }

    pub fn acknowledged(&self) -> Vec<u64> {
        self.writers.iter().map(|writer| writer.acknowledged.load(SeqCst)).collect()
    }

    fn synced(&self, counts: &[u64]) {
        for (writer, count) in self.writers.iter().zip(counts) {
            writer.synced.fetch_max(*count, SeqCst);
        }
    }
}

/// Writes the batches of one writer; ends early once the store takes no more.
pub fn write(shared: &Shared, db: &Db, number: usize, mut rng: Rng) {
    let writer = &shared.writers[number];
    for n in 1..=writer.len() {
        writer.seen.lock().unwrap().push(shared.acknowledged());
        writer.handed_over.store(n, SeqCst);
        let mut durability = *rng.pick(&[Durability::Os, Durability::Os, Durability::Sync]);
        // Writers ingest concurrently. A failed ingest may show later, without failed ones before it.
        let rows = writer.rows(n).filter(|_| !shared.may_fail && rng.percent(20));
        let written = match rows {
            Some(rows) => {
                durability = Durability::Sync; // What is ingested is durable.
                db.ingest(rows.into_iter().map(Ok))
            }
            None => db.write_with(writer.batch(n), durability),
        };
        match written {
            Ok(()) => writer.acknowledged.store(n, SeqCst),
            Err(error) => return shared.allow(&error, "write"),
        }
        if durability == Durability::Sync {
            writer.synced.fetch_max(n, SeqCst);
        }
        if rng.percent(30) {
            let expected = writer.after(&shared.base, n);
            let key = key(rng.below(100) * shared.writers.len() as u64 + number as u64);
            match db.get(&key) {
                Ok(found) => {
                    let found = found.as_deref();
                    assert_eq!(
                        found,
                        expected.get(&key).map(Vec::as_slice),
                        "own write {n}, {}",
                        key.escape_ascii()
                    );
                }
                Err(error) => shared.allow(&error, "get"),
            }
        }
    }
}

/// Repeatedly reads the counts of all writers together: none decreases, and in the writers' own store none is
/// behind what was acknowledged. Returns the last ones.
fn read_counts(shared: &Shared, db: &Db, mut least: Vec<u64>, follows: bool) -> Vec<u64> {
    let keys: Vec<_> = shared.writers.iter().map(Writer::count_key).collect();
    for _ in 0..12 {
        if !follows {
            least = later(&least, &shared.acknowledged());
        }
        match db.multi_get(&keys) {
            Ok(found) => {
                let counts: Vec<u64> = found.iter().map(|n| Writer::parse_count(n.as_deref())).collect();
                assert!(
                    counts.iter().zip(&least).all(|(n, least)| n >= least),
                    "{counts:?}, after {least:?}"
                );
                least = counts;
            }
            Err(error) => shared.allow(&error, "multi_get"),
        }
    }
    least
}

/// The later count of each writer.
fn later(a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| *a.max(b)).collect()
}

/// Checks a snapshot: it is a prefix of every writer's batches, at least `least` of them, and does not
/// change. Returns how many; `None` if it cannot be read.
fn look(shared: &Shared, snapshot: &Snapshot, least: &[u64], what: &str, rng: &mut Rng) -> Option<Vec<u64>> {
    let walk = || -> Result<Contents, Error> {
        snapshot.iter().map(|kv| kv.map(|(key, value)| (key, value.to_vec()))).collect()
    };
    let found = walk().inspect_err(|error| shared.allow(error, what)).ok()?;
    let counts = shared.check(&found, least, what);
    for _ in 0..8 {
        let key = key(rng.below(super::model::KEYS + 20));
        match snapshot.get(&key) {
            Ok(value) => {
                assert_eq!(value.as_deref(), found.get(&key).map(Vec::as_slice), "get of {what}");
            }
            Err(error) => shared.allow(&error, what),
        }
    }
    match walk() {
        Ok(again) => assert!(again == found, "{what} has changed"),
        Err(error) => shared.allow(&error, what),
    }
    Some(counts)
}

/// Checks snapshots; later ones hold no less.
pub fn read(shared: &Shared, db: &Db, mut rng: Rng) {
    let mut least = vec![0; shared.writers.len()];
    read_counts(shared, db, least.clone(), false);
    for _ in 0..2 {
        let acknowledged = shared.acknowledged();
        let snapshot = db.snapshot();
        least = later(&least, &acknowledged);
        least = look(shared, &snapshot, &least, "a snapshot", &mut rng).unwrap_or(least);
    }
}

/// Follows the store as another process would: after catching up, it has everything acknowledged before.
pub fn follow(shared: &Shared, options: &Options, mut rng: Rng) {
    let mut least = shared.acknowledged();
    let db = match options.clone().follow(true).open(STORE) {
        Ok(db) => db,
        Err(error) => return shared.allow(&error, "follow"),
    };
    for _ in 0..2 + rng.below(5) {
        // What a writer failed to write may have been read, and then disappears.
        if !shared.may_fail {
            least = read_counts(shared, &db, least, true);
        }
        let counts = look(shared, &db.snapshot(), &least, "a follower's snapshot", &mut rng);
        least = counts.filter(|_| !shared.may_fail).unwrap_or(least);
        let acknowledged = shared.acknowledged();
        match db.catch_up() {
            Ok(()) => least = later(&least, &acknowledged),
            Err(error) => shared.allow(&error, "catch up"),
        }
    }
}

/// Operations concurrent with the writers.
pub fn operate(shared: &Shared, db: &Db, mut rng: Rng) {
    for _ in 0..1 + rng.below(3) {
        let acknowledged = shared.acknowledged();
        let done = match rng.below(12) {
            0..3 => db.flush().map(|()| shared.synced(&acknowledged)),
            3..5 => db.sync().map(|()| shared.synced(&acknowledged)),
            5 | 6 => db.compact(),
            7 => {
                let from = rng.below(super::model::KEYS);
                db.compact_range(key(from)..key(from + rng.below(60)))
            }
            8 => match db.rebuild_filters(config::policy(&mut rng)) {
                Err(Error::InvalidArgument(_)) => Ok(()), // Filters off.
                rebuilt => rebuilt.map(|_| ()),
            },
            9 => db.wait_for_compaction(),
            10 => match db.verify() {
                Ok(report) if !shared.may_fail => {
                    assert!(report.is_ok(), "{report:?}");
                    Ok(())
                }
                verified => verified.map(|_| ()),
            },
            _ => db.checkpoint(format!("disk/copy{}", rng.next())),
        };
        if let Err(error) = done {
            shared.allow(&error, "an operation");
        }
    }
}

/// Writes other keys until a concurrent compaction has ended.
pub fn press(db: &Db, compacted: &AtomicBool) {
    for n in 0u64.. {
        if compacted.load(SeqCst) || db.put(key(n * 37 % 200 + 1000), vec![n as u8; 1500]).is_err() {
            break;
        }
    }
}

/// Clusters of keys that `fill_gaps` writes, and the keys of each.
const CLUSTERS: u64 = 8;
const CLUSTER_KEYS: u64 = 5;

/// Flushes one cluster of keys after the other, in any order, so that segments lie in the gaps of others
/// (I10). No key is lost.
pub fn fill_gaps(shared: &Shared, db: &Db, mut rng: Rng) {
    let mut written = BTreeMap::new();
    for n in 0..12u8 {
        let first = 1000 + 10 * rng.below(CLUSTERS);
        for key in (first..first + CLUSTER_KEYS).map(key) {
            if let Err(error) = db.put(&key, [n]) {
                return shared.allow(&error, "put");
            }
            written.insert(key, n);
        }
        if let Err(error) = db.flush() {
            return shared.allow(&error, "flush");
        }
        for (key, n) in &written {
            match db.get(key) {
                Ok(found) => assert_eq!(found.as_deref(), Some([*n].as_slice()), "{}", key.escape_ascii()),
                Err(error) => shared.allow(&error, "get"),
            }
        }
    }
}

/// Holds the last handle but one for a while, so that any thread may close the store.
pub fn hold(db: Db, shared: &Arc<Shared>) {
    let least = shared.acknowledged();
    if !shared.may_fail {
        shared.check(&contents(&db), &least, "a late reader");
    }
    drop(db);
}

/// Runs transactions concurrently with everything else.
pub fn transact(shared: &Shared, db: &Db, mut rng: Rng) {
    for _ in 0..2 + rng.below(6) {
        if let Err(error) = shared.histories.attempt(db, &mut rng) {
            return shared.allow(&error, "a transaction");
        }
    }
}

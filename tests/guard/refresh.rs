//! Refreshes during changes, before or after the snapshot in guard and database, in all combinations.

use crate::guard_support::fine;
use crate::support::sized;
use sidebloom::filter::Verdict;
use sidebloom::guard::{Change, Changes, Guard, GuardOptions, Source};
use sidebloom::{Durability, Error, FilterPolicy, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A database in memory: the number of rows of each key.
#[derive(Default)]
struct Database(Mutex<BTreeMap<String, u64>>);

impl Database {
    fn rows(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap()
    }

    fn insert(&self, key: &str) {
        *self.rows().entry(key.to_owned()).or_default() += 1;
    }

    fn remove(&self, key: &str) {
        let mut rows = self.rows();
        let count = rows.get_mut(key).unwrap();
        *count -= 1;
        rows.retain(|_, count| *count > 0);
    }

    fn commit_insert(&self, key: &str) -> Result<()> {
        self.insert(key);
        Ok(())
    }

    fn commit_remove(&self, key: &str) -> Result<()> {
        self.remove(key);
        Ok(())
    }

    fn count(&self, key: &str) -> u64 {
        self.rows().get(key).copied().unwrap_or(0)
    }
}

/// Reads a snapshot of the database, and runs something before and after it.
struct Hooked<'a> {
    database: &'a Database,
    before: Box<dyn FnMut() + 'a>,
    behind: Box<dyn FnMut() + 'a>,
    fails: bool,
}

impl<'a> Hooked<'a> {
    fn new(database: &'a Database) -> Self {
        Hooked { database, before: Box::new(|| ()), behind: Box::new(|| ()), fails: false }
    }
}

impl Source for Hooked<'_> {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        (self.before)();
        let moment = self.database.rows().clone();
        for (i, (key, count)) in moment.iter().enumerate() {
            (0..*count).try_for_each(|_| visit(key.as_bytes()))?;
            if i == 0 {
                (self.behind)();
            }
            if i == 2 && self.fails {
                return Err(Error::Database { name: "test".into(), what: "the connection broke".into() });
            }
        }
        Ok(())
    }

    fn count(&mut self, key: &[u8]) -> Result<u64> {
        Ok(self.database.count(std::str::from_utf8(key).unwrap()))
    }

    fn apply(&mut self, _changes: &[Change<'_>]) -> Result<()> {
        Ok(())
    }
}

fn setting(keys: &[&str]) -> (tempfile::TempDir, Database, Guard) {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::default();
    keys.iter().for_each(|key| database.insert(key));
    let options = fine().durability(Durability::Os).memtable_bytes(64 << 10);
    let guard = options.build(dir.path().join("guard"), keys).unwrap();
    (dir, database, guard)
}

const SOME: [&str; 5] = ["a", "b", "c", "d", "e"];

#[test]
fn an_insertion_whose_row_is_committed_after_the_snapshot_is_kept() {
    let (_dir, database, guard) = setting(&SOME);
    let mut open = guard.transaction();
    open.insert("new").unwrap();
    // Begun before the refresh, committed to the database after its snapshot.
    open.commit(|| {
        let mut source = Hooked::new(&database);
        source.behind = Box::new(|| database.insert("new"));
        guard.refresh(&mut source).map(|_| ())
    })
    .unwrap();
    assert_eq!(guard.count("new").unwrap(), 1);
    assert_eq!(guard.may_contain("new"), Verdict::Maybe);
}

#[test]
fn an_insertion_during_a_refresh_is_kept_wherever_the_snapshot_is() {
    for behind in [false, true] {
        let (_dir, database, guard) = setting(&SOME);
        let insert = || {
            let mut tx = guard.transaction();
            tx.insert("new").unwrap();
            tx.commit(|| database.commit_insert("new")).unwrap();
        };
        let mut source = Hooked::new(&database);
        if behind {
            source.behind = Box::new(insert);
        } else {
            source.before = Box::new(insert);
        }
        guard.refresh(&mut source).unwrap();
        // If it is before the snapshot, it is counted twice, which is safe.
        assert_eq!(guard.count("new").unwrap(), if behind { 1 } else { 2 });
    }
}

#[test]
fn a_surplus_key_that_is_inserted_during_a_refresh_stays_and_counts_once() {
    for behind in [false, true] {
        let (_dir, database, guard) = setting(&SOME);
        guard.insert("needless").unwrap(); // As after a crash before the database's commit.
        let insert = || {
            let mut tx = guard.transaction();
            tx.insert_new("needless").unwrap();
            tx.commit(|| database.commit_insert("needless")).unwrap();
        };
        let mut source = Hooked::new(&database);
        if behind {
            source.behind = Box::new(insert);
        } else {
            source.before = Box::new(insert);
        }
        guard.refresh(&mut source).unwrap();
        assert_eq!(guard.count("needless").unwrap(), 1, "behind: {behind}");
    }
}

#[test]
fn a_new_key_whose_transaction_is_open_when_a_refresh_begins_counts_once() {
    for behind in [false, true] {
        let (_dir, database, guard) = setting(&SOME);
        let mut open = guard.transaction();
        open.insert_new("new").unwrap();
        open.commit(|| {
            let mut source = Hooked::new(&database);
            if behind {
                source.behind = Box::new(|| database.insert("new"));
            } else {
                source.before = Box::new(|| database.insert("new"));
            }
            guard.refresh(&mut source).map(|_| ())
        })
        .unwrap();
        assert_eq!(guard.count("new").unwrap(), 1, "behind: {behind}");
    }
}

#[test]
fn a_removal_that_the_snapshot_has_seen_is_not_counted_twice() {
    // Two rows with one title. One is removed before the snapshot; the guard learns of it after the switch.
    let (_dir, database, guard) = setting(&["a", "b", "twice", "twice"]);
    let mut tx = guard.transaction();
    tx.remove("twice").unwrap();
    tx.commit(|| {
        database.remove("twice");
        guard.refresh(&mut Hooked::new(&database)).map(|_| ())
    })
    .unwrap();
    assert_eq!(guard.count("twice").unwrap(), 1, "one row is left");
    assert_eq!(guard.stats().doubtful_removals, 1);

    // The same during a refresh, by a transaction and by a separate call.
    for plain in [false, true] {
        let (_dir, database, guard) = setting(&["a", "b", "twice", "twice"]);
        let remove = || {
            if plain {
                database.remove("twice");
                guard.remove("twice").unwrap();
            } else {
                let mut tx = guard.transaction();
                tx.remove("twice").unwrap();
                tx.commit(|| database.commit_remove("twice")).unwrap();
            }
        };
        let mut source = Hooked::new(&database);
        source.before = Box::new(remove);
        guard.refresh(&mut source).unwrap();
        assert_eq!(guard.count("twice").unwrap(), 1, "plain: {plain}");
    }
}

#[test]
fn a_removal_that_the_snapshot_has_not_seen_is_applied() {
    let (_dir, database, guard) = setting(&["a", "b", "gone"]);
    let mut source = Hooked::new(&database);
    source.behind = Box::new(|| {
        let mut tx = guard.transaction();
        tx.remove("gone").unwrap();
        tx.commit(|| database.commit_remove("gone")).unwrap();
    });
    guard.refresh(&mut source).unwrap();
    assert_eq!(guard.count("gone").unwrap(), 0);
    assert_eq!(guard.stats().doubtful_removals, 0);
}

#[test]
fn a_refresh_that_fails_leaves_the_guard_as_it_was() {
    let (dir, database, guard) = setting(&SOME);
    let listing = || {
        let names = std::fs::read_dir(dir.path().join("guard")).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let before = listing();
    let mut source = Hooked::new(&database);
    source.fails = true;
    source.behind = Box::new(|| guard.insert("new").unwrap());
    let error = guard.refresh(&mut source).unwrap_err();
    assert_eq!(error.to_string(), "database test: the connection broke");
    drop(source);
    assert_eq!(listing(), before);
    assert_eq!(guard.may_contain("new"), Verdict::Maybe);
    assert_eq!((guard.stats().generation, guard.stats().rows), (1, 6));
    // The next one works, and only what the database has is left.
    let report = guard.reconcile(&mut Hooked::new(&database)).unwrap();
    assert_eq!((report.refresh.rows, report.surplus, report.missing), (5, 1, 0));
    assert_eq!(guard.may_contain("new"), Verdict::Absent);
    assert_eq!(guard.stats().generation, 2);
}

#[test]
fn a_second_refresh_beside_the_first_is_refused() {
    let (_dir, database, guard) = setting(&SOME);
    let refused = AtomicBool::new(false);
    let mut source = Hooked::new(&database);
    source.behind = Box::new(|| {
        let error = guard.refresh(&mut Hooked::new(&database)).unwrap_err();
        refused.store(error.to_string().contains("already running"), Ordering::Relaxed);
    });
    guard.refresh(&mut source).unwrap();
    drop(source);
    assert!(refused.load(Ordering::Relaxed));
}

#[test]
fn a_note_written_alone_while_refreshes_switch_is_kept() {
    let (_dir, database, guard) = setting(&SOME);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in (0u64..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                guard.write(Changes::new().note(n.to_le_bytes())).unwrap();
                assert_eq!(guard.note().unwrap().unwrap(), n.to_le_bytes(), "the note was acknowledged");
            }
        });
        for _ in 0..10 {
            guard.refresh(&mut Hooked::new(&database)).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn reconcile_reports_differences_and_repairs_them() {
    let (_dir, database, guard) = setting(&["kept", "surplus", "twice", "twice"]);
    database.remove("surplus");
    database.insert("missing");
    database.insert("twice");
    assert_eq!(guard.may_contain("missing"), Verdict::Absent, "the guard was not told");
    let report = guard.reconcile(&mut Hooked::new(&database)).unwrap();
    assert_eq!((report.missing, report.surplus, report.miscounted), (1, 1, 1));
    assert_eq!(guard.may_contain("missing"), Verdict::Maybe);
    assert_eq!(guard.may_contain("surplus"), Verdict::Absent);
    assert_eq!(guard.count("twice").unwrap(), 3);
}

#[test]
fn no_wrong_no_while_writers_and_refreshes_go_on() {
    let (_dir, database, guard) = setting(&SOME);
    let stop = AtomicBool::new(false);
    let (asked, refreshes) = (AtomicU64::new(0), AtomicU64::new(0));
    // Only the thread that may delete a key looks it up.
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let (guard, database, stop, asked) = (&guard, &database, &stop, &asked);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                let mut mine: BTreeMap<String, u64> = BTreeMap::new();
                while !stop.load(Ordering::Relaxed) {
                    let key = format!("{thread} {}", random.u32(..300));
                    let count = mine.entry(key.clone()).or_default();
                    let mut tx = guard.transaction();
                    if *count > 0 && random.bool() {
                        tx.remove(&key).unwrap();
                        tx.commit(|| database.commit_remove(&key)).unwrap();
                        *count -= 1;
                    } else {
                        tx.insert(&key).unwrap();
                        tx.commit(|| database.commit_insert(&key)).unwrap();
                        *count += 1;
                    }
                    for (key, count) in mine.iter().filter(|(_, count)| **count > 0).take(20) {
                        asked.fetch_add(1, Ordering::Relaxed);
                        assert_eq!(guard.may_contain(key), Verdict::Maybe, "{key} has {count} rows");
                    }
                }
            });
        }
        let until = Instant::now() + Duration::from_secs(sized(1, 3));
        while Instant::now() < until {
            guard.refresh(&mut Hooked::new(&database)).unwrap();
            refreshes.fetch_add(1, Ordering::Relaxed);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(asked.into_inner() > 1000 && refreshes.into_inner() > sized(1, 3));
    for (key, count) in database.rows().iter() {
        assert!(guard.count(key).unwrap() >= *count, "{key}");
    }
    // Without writers, a refresh gives exactly the database's counts.
    guard.refresh(&mut Hooked::new(&database)).unwrap();
    let rows = database.rows().clone();
    for (key, count) in &rows {
        assert_eq!(guard.count(key).unwrap(), *count, "{key}");
    }
    assert_eq!((guard.stats().rows, guard.stats().keys), (rows.values().sum(), rows.len() as u64));
}

/// Filters keep their policy until another one is given, and a refresh applies it.
#[test]
fn filters_keep_their_policy_until_a_refresh_applies_another_one() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::default();
    (0..20_000).for_each(|i| database.insert(&format!("song {i}")));
    let with = |bits| GuardOptions::new().filter_policy(FilterPolicy::bits_per_key(bits));
    let bits = |guard: &Guard| {
        let stats = guard.stats();
        8.0 * stats.filter_bytes as f64 / stats.keys as f64
    };
    let refreshed = |options: GuardOptions| {
        let guard = options.open(dir.path()).unwrap();
        guard.refresh(&mut Hooked::new(&database)).unwrap();
        bits(&guard)
    };
    let as_asked = |asked: f64, bits: f64| assert!((asked - bits).abs() < 1.0, "asked {asked}, got {bits}");
    as_asked(19.0, bits(&with(19.0).build_from(dir.path(), &mut Hooked::new(&database)).unwrap()));
    as_asked(19.0, refreshed(GuardOptions::new()));
    as_asked(8.0, refreshed(with(8.0)));
    as_asked(8.0, bits(&Guard::open(dir.path()).unwrap()));
    as_asked(8.0, refreshed(GuardOptions::new()));
}

//! A guard that is itself a set of keys: insertions that report whether the key is new.

use sidebloom::guard::{Change, Changes, Guard, GuardOptions, Source};
use sidebloom::{Durability, Error, Result};
use std::sync::Barrier;

fn guard(dir: &tempfile::TempDir, keys: &[&str]) -> Guard {
    GuardOptions::new().durability(Durability::Os).build(dir.path().join("guard"), keys).unwrap()
}

#[test]
fn each_change_reports_whether_it_changed_a_count() {
    let dir = tempfile::tempdir().unwrap();
    let guard = guard(&dir, &["there"]);
    let mut changes = Changes::new();
    changes
        .insert_new("there")
        .insert_new("new")
        .insert_new("new")
        .insert("new")
        .remove("there")
        .remove("there");
    let mut more = Changes::new();
    more.insert_new("there").remove("nowhere").note("two");
    changes.note("one").append(&more);
    let done = guard.write_each(&changes).unwrap();
    assert_eq!(done, [false, true, false, true, true, false, true, false]);
    assert_eq!((guard.count("new").unwrap(), guard.count("there").unwrap()), (2, 1));
    assert_eq!(guard.note().unwrap().unwrap(), b"two");
    let stats = guard.stats();
    assert_eq!((stats.rows, stats.keys, stats.unknown_removals), (3, 2, 2));
    assert_eq!((guard.insert_new("new").unwrap(), guard.insert_new("newer").unwrap()), (false, true));
}

#[test]
fn when_threads_insert_the_same_new_key_exactly_one_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let guard = guard(&dir, &[]);
    let start = Barrier::new(4);
    let insert = || {
        start.wait();
        (0..2000u32).map(|n| u64::from(guard.insert_new(n.to_le_bytes()).unwrap())).collect::<Vec<_>>()
    };
    let told = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(insert)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for n in 0..2000u32 {
        assert_eq!(told.iter().map(|told| told[n as usize]).sum::<u64>(), 1);
        assert_eq!(guard.count(n.to_le_bytes()).unwrap(), 1);
    }
}

/// A database that changes while its rows are read.
struct Slow<'g>(&'g Guard);

impl Source for Slow<'_> {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        visit(b"row")?;
        // After the snapshot of the rows: one key that the guard has but the rows lack, and a new one.
        assert!(!self.0.insert_new("known")?);
        assert!(self.0.insert_new("fresh")?);
        assert!(!self.0.insert_new("row")?);
        Ok(())
    }

    fn count(&mut self, _: &[u8]) -> Result<u64> {
        Ok(0)
    }

    fn apply(&mut self, _: &[Change<'_>]) -> Result<()> {
        Ok(())
    }
}

#[test]
fn an_existing_key_that_is_inserted_again_during_a_refresh_stays() {
    let dir = tempfile::tempdir().unwrap();
    let guard = guard(&dir, &["known", "row"]);
    guard.refresh(&mut Slow(&guard)).unwrap();
    for key in ["known", "fresh", "row"] {
        assert_eq!(guard.count(key).unwrap(), 1, "{key}");
    }
}

#[test]
fn a_transaction_that_the_database_rejects_removes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let guard = guard(&dir, &["old"]);
    let mut changes = guard.transaction();
    changes.insert("new").unwrap().remove("old").unwrap();
    let refused: Result<()> = changes.commit(|| Err(Error::ReadOnly));
    assert!(refused.is_err());
    let counts = (guard.count("old").unwrap(), guard.count("new").unwrap());
    assert_eq!(counts, (1, 1), "it may have committed all the same");
}

#[test]
fn the_last_change_of_a_key_in_a_transaction_decides_whether_it_stays() {
    let dir = tempfile::tempdir().unwrap();
    let guard = guard(&dir, &["replaced", "gone", "flickers"]);
    let mut changes = guard.transaction();
    changes.remove("replaced").unwrap().insert_new("replaced").unwrap();
    changes.insert_new("gone").unwrap().remove("gone").unwrap();
    changes.remove("flickers").unwrap().insert_new("flickers").unwrap().remove("flickers").unwrap();
    changes.commit(|| Ok::<_, Error>(())).unwrap();
    let counts = ["replaced", "gone", "flickers"].map(|key| guard.count(key).unwrap());
    assert_eq!(counts, [1, 0, 0]);
}

#[test]
fn changes_of_many_keys_by_many_threads_count_each_key_correctly() {
    const THREADS: usize = 4;
    let dir = tempfile::tempdir().unwrap();
    let guard = guard(&dir, &[]);
    let start = Barrier::new(THREADS);
    let write = |thread: usize| {
        start.wait();
        let mut inserted = [0u64; 12];
        for n in 0..1500 {
            let mut changes = Changes::new();
            for key in (0..12).filter(|key| (n * 7 + thread * 5 + key * (n + 1)).is_multiple_of(3)) {
                changes.insert([key as u8]);
                inserted[key] += 1;
            }
            guard.write(&changes).unwrap();
        }
        inserted
    };
    let inserted = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let write = &write;
                scope.spawn(move || write(thread))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for key in 0..12 {
        let expected = inserted.iter().map(|inserted| inserted[key]).sum::<u64>();
        assert_eq!(guard.count([key as u8]).unwrap(), expected, "key {key}");
    }
    assert_eq!(guard.stats().keys, 12);
}

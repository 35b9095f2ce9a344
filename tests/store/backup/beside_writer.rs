//! Backups from outside, while another process writes: a follower in this one stands for it.

use super::restored;
use crate::support::{Sequence, contents, fast_dir, sized, tiny};
use sidebloom::backup::Repository;
use sidebloom::{Db, Durability, FilterPolicy};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Operations other than writes, so that the store's files change in every way.
fn do_other_things(db: &Db, i: u64) {
    match i % 41 {
        3 => db.flush().unwrap(),
        9 => db.compact().unwrap(),
        17 => _ = db.rebuild_filters(FilterPolicy::bits_per_key((4 + i % 12) as f64)).unwrap(),
        33 => db.sync().unwrap(),
        _ => {}
    }
}

/// Each backup has at least what was acknowledged before it began, and whole batches only.
#[test]
fn i4_backups_beside_a_writer_are_prefixes_and_not_too_old() {
    let dir = fast_dir();
    let sequence = Sequence(21);
    let store = dir.path().join("store");
    let repository = Repository::in_dir(dir.path().join("backups")).unwrap();
    let (written, mut found) = (AtomicU64::new(0), Vec::new());
    let writer = tiny().open(&store).unwrap();
    let last = sized(1500, 6000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 1..=last {
                let durability = if i % 50 == 0 { Durability::Sync } else { Durability::Os };
                writer.write_with(sequence.batch(i), durability).unwrap();
                written.store(i, SeqCst);
                do_other_things(&writer, i);
            }
        });
        let follower = tiny().follow(true).open(&store).unwrap();
        while written.load(SeqCst) < last {
            let before = written.load(SeqCst);
            let backup = follower.backup(&repository).unwrap();
            found.push((backup.number, before, written.load(SeqCst)));
        }
    });
    assert!(found.len() > 5, "{found:?}");
    assert!(repository.verify(None).unwrap().is_ok());
    for (number, before, after) in &found {
        let target = dir.path().join("copy");
        let copy = restored(&repository, Some(*number), &target);
        let batches = sequence.prefix_of(&copy);
        assert!((*before..=*after + 1).contains(&batches), "backup {number}: {before} {batches} {after}");
        drop(copy);
        std::fs::remove_dir_all(target).unwrap();
    }
}

/// Rows that were ingested while the logs are read come with the writes before them, or not at all.
#[test]
fn i4_a_backup_beside_ingests_has_no_write_without_what_came_before() {
    let dir = fast_dir();
    let store = dir.path().join("store");
    let repository = Repository::in_dir(dir.path().join("backups")).unwrap();
    let writer = tiny().open(&store).unwrap();
    let done = AtomicU64::new(0);
    let mut numbers = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 1..=sized(150, 600) as u32 {
                writer.put("put", i.to_be_bytes()).unwrap();
                writer.ingest([Ok(("ingested", i.to_be_bytes()))]).unwrap();
            }
            done.store(1, SeqCst);
        });
        let follower = tiny().follow(true).open(&store).unwrap();
        while done.load(SeqCst) == 0 {
            numbers.push(follower.backup(&repository).unwrap().number);
        }
    });
    let value = |db: &Db, key: &str| {
        let found = db.get(key).unwrap();
        found.map_or(0, |value| u32::from_be_bytes(value.to_vec().try_into().unwrap()))
    };
    for number in numbers {
        let target = dir.path().join("copy");
        let copy = restored(&repository, Some(number), &target);
        let [put, ingested] = ["put", "ingested"].map(|key| value(&copy, key));
        assert!(put == ingested || put == ingested + 1, "backup {number}: put {put}, ingested {ingested}");
        drop(copy);
        std::fs::remove_dir_all(target).unwrap();
    }
}

/// A backup without a writer leaves the store as it is, unrecovered logs included.
#[test]
fn a_backup_of_a_store_that_nobody_writes_changes_no_file_of_it() {
    let dir = fast_dir();
    let sequence = Sequence(22);
    let (store, crashed) = (dir.path().join("store"), dir.path().join("crashed"));
    let writer = tiny().open(&store).unwrap();
    (1..=100).for_each(|i| writer.write(sequence.batch(i)).unwrap());
    crate::support::copy_store(&store, &crashed); // As after a kill.
    let files = |dir: &std::path::Path| {
        let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = names.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        files.sort();
        files
    };
    let before = files(&crashed);
    let repository = Repository::in_dir(dir.path().join("backups")).unwrap();
    let follower = tiny().follow(true).open(&crashed).unwrap();
    follower.backup(&repository).unwrap();
    follower.checkpoint(dir.path().join("checkpoint")).unwrap();
    drop(follower);
    assert!(files(&crashed) == before);
    let copy = restored(&repository, None, &dir.path().join("copy"));
    assert_eq!(sequence.prefix_of(&copy), 100);
    let checkpoint = tiny().open(dir.path().join("checkpoint")).unwrap();
    assert_eq!(contents(&checkpoint), contents(&copy));
}

/// Checkpoints from a follower, with hard links, are prefixes as well.
#[test]
fn i4_checkpoints_beside_a_writer_are_prefixes_and_not_too_old() {
    let dir = fast_dir();
    let sequence = Sequence(23);
    let store = dir.path().join("store");
    let (written, mut checked) = (AtomicU64::new(0), 0);
    let writer = tiny().open(&store).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 1..=1500 {
                writer.write(sequence.batch(i)).unwrap();
                written.store(i, SeqCst);
                do_other_things(&writer, i);
            }
        });
        let follower = tiny().follow(true).open(&store).unwrap();
        while written.load(SeqCst) < 1500 {
            let (before, target) = (written.load(SeqCst), dir.path().join("copy"));
            follower.checkpoint(&target).unwrap();
            let copy = tiny().open(&target).unwrap();
            assert!(copy.verify().unwrap().is_ok());
            assert!(sequence.prefix_of(&copy) >= before);
            drop(copy);
            std::fs::remove_dir_all(target).unwrap();
            checked += 1;
        }
    });
    assert!(checked > 3, "{checked}");
}

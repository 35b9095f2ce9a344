//! I4, durability of directories: a store, checkpoint or guard in new directories survives a power cut.

use crate::support::{Crash, Errno, Fault, OpKind, SimFs, tiny_on};
use sidebloom::filter::Verdict;
use sidebloom::fs::create_dir_durably;
use sidebloom::guard::GuardOptions;
use sidebloom::{Batch, Durability, Error};
use std::path::Path;
use std::sync::{Arc, Mutex};

const DEEP: &str = "a/b/c/songs.db";
const POWER: [Crash; 2] = [Crash::PowerOrdered, Crash::Power];

/// A store with one synced key at `path`.
fn put_synced(fs: &SimFs, path: &str) -> sidebloom::Result<()> {
    let db = tiny_on(fs).open(path)?;
    let mut batch = Batch::new();
    batch.put(b"k", b"v");
    db.write_with(batch, Durability::Sync)?;
    // The machine crashes while the store is open.
    std::mem::forget(db);
    Ok(())
}

#[track_caller]
fn assert_there(fs: &SimFs, path: &str) {
    let options = tiny_on(fs).create_if_missing(false);
    assert_eq!(options.open(path).unwrap().get(b"k").unwrap().as_deref(), Some(b"v".as_slice()));
}

#[test]
fn i4_a_synced_write_to_a_store_in_new_directories_survives_a_power_cut() {
    for path in [DEEP, "songs.db"] {
        let fs = SimFs::new();
        put_synced(&fs, path).unwrap();
        POWER
            .into_iter()
            .for_each(|crash| (0..40).for_each(|seed| assert_there(&fs.crash(crash, seed), path)));
    }
}

#[test]
fn i4_directories_that_a_killed_process_made_are_synced_by_the_next_one() {
    for stop in 0.. {
        let fs = SimFs::new();
        fs.fail(Fault::stop(stop));
        let was_stopped = put_synced(&fs, DEEP).is_err();
        let fs = fs.crash(Crash::Kill, 0);
        put_synced(&fs, DEEP).unwrap();
        POWER
            .into_iter()
            .for_each(|crash| (0..10).for_each(|seed| assert_there(&fs.crash(crash, seed), DEEP)));
        if !was_stopped {
            break;
        }
    }
}

#[test]
fn i4_a_checkpoint_in_new_directories_survives_a_power_cut() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open("songs.db").unwrap();
    db.put(b"k", b"v").unwrap();
    db.checkpoint("backups/monday/songs.db").unwrap();
    for crash in POWER {
        (0..40).for_each(|seed| assert_there(&fs.crash(crash, seed), "backups/monday/songs.db"));
    }
}

#[test]
fn i4_a_new_store_that_loses_power_opens_read_only_or_is_not_a_store() {
    let fs = SimFs::new();
    let stops = Arc::new(Mutex::new(Vec::new()));
    let images = Arc::clone(&stops);
    fs.watch(move |moment| images.lock().unwrap().push(moment.crash(Crash::Kill, 0)));
    drop(tiny_on(&fs).open("songs.db").unwrap());
    let stops = std::mem::take(&mut *stops.lock().unwrap());
    let mut opened = 0;
    for (i, image) in stops.iter().enumerate() {
        for seed in 0..100 {
            let after = image.crash(POWER[(seed % 2) as usize], seed);
            match tiny_on(&after).read_only(true).open("songs.db") {
                Ok(db) => opened += db.iter().count().unwrap() + 1,
                Err(Error::NotAStore { .. }) => {}
                Err(error) => panic!("operation {i}, seed {seed}: {error}"),
            }
        }
    }
    assert!(opened > 100, "{opened}");
}

#[test]
fn i4_a_checkpoint_that_loses_power_is_complete_or_not_a_store() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open("songs.db").unwrap();
    db.put(b"k", b"v").unwrap();
    let stops = Arc::new(Mutex::new(Vec::new()));
    let images = Arc::clone(&stops);
    fs.watch(move |moment| images.lock().unwrap().push(moment.crash(Crash::Kill, 0)));
    db.checkpoint("copy").unwrap();
    let stops = std::mem::take(&mut *stops.lock().unwrap());
    for (i, image) in stops.iter().enumerate() {
        for seed in 0..100 {
            let after = image.crash(POWER[(seed % 2) as usize], seed);
            match tiny_on(&after).create_if_missing(false).open("copy") {
                Ok(copy) => assert_eq!(copy.get(b"k").unwrap().as_deref(), Some(b"v".as_slice())),
                Err(Error::NotAStore { .. }) => {}
                Err(error) => panic!("operation {i}, seed {seed}: {error}"),
            }
        }
    }
}

#[test]
fn i4_a_guard_in_new_directories_survives_a_power_cut() {
    let fs = SimFs::new();
    let options = GuardOptions::new().filesystem(Arc::new(fs.clone()));
    let guard = options.build("a/b/c/guard", [b"k"]).unwrap();
    for crash in POWER {
        for seed in 0..40 {
            let found = GuardOptions::new().filesystem(Arc::new(fs.crash(crash, seed))).open("a/b/c/guard");
            assert_eq!(found.unwrap().may_contain(b"k"), Verdict::Maybe);
        }
    }
    drop(guard);
}

/// A parent directory that may not be synced is an error only if the directory in it was just created.
#[test]
fn a_parent_that_cannot_be_synced_is_an_error_only_for_a_new_directory() {
    let denied = |after| Fault::once(OpKind::SyncDir, after).with(Errno::Denied);
    let fs = SimFs::new();
    fs.fail(denied(0));
    assert!(create_dir_durably(&fs, Path::new("a/b")).is_err());
    fs.fail(denied(0));
    create_dir_durably(&fs, Path::new("a/b")).unwrap();
    fs.fail(denied(1));
    create_dir_durably(&fs, Path::new("a/b")).unwrap();
    fs.fail(Fault::once(OpKind::SyncDir, 0));
    assert!(create_dir_durably(&fs, Path::new("a/b")).is_err(), "an I/O error is one");
}

//! After a clean close, opening a store writes nothing. Its first write does the work of a recovery, and may
//! fail or crash during it.

use crate::support::{
    Crash, Errno, Fault, OpKind, STORE, Sequence, SimFs, fast_dir, fill_deep, fingerprints, tiny, tiny_on,
};
use sidebloom::{Db, Durability, Error, FilterPolicy, Options};
use std::path::PathBuf;

const BATCHES: u64 = 5;

/// A cleanly closed store, with segments and with batches in its log.
fn closed(sequence: Sequence) -> SimFs {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    (1..BATCHES).for_each(|i| db.write(sequence.batch(i)).unwrap());
    db.flush().unwrap();
    db.write(sequence.batch(BATCHES)).unwrap();
    db.wait_for_compaction().unwrap();
    drop(db);
    fs
}

fn logs(fs: &SimFs) -> Vec<PathBuf> {
    fs.files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "wal")).collect()
}

/// Everything that a caller may do with a store without writing to it.
fn use_without_writing(db: &Db) {
    assert_eq!(db.get("missing").unwrap(), None);
    let snapshot = db.snapshot();
    assert_eq!(snapshot.iter().count().unwrap(), db.iter().count().unwrap());
    db.warm().unwrap();
    db.sync().unwrap();
    assert!(db.verify().unwrap().is_ok());
    db.wait_for_compaction().unwrap();
    assert_eq!(db.stats().filters_unavailable, 0);
}

/// An opening without writes leaves every byte of a closed store as it was.
#[test]
fn an_opening_without_writes_leaves_every_byte_of_a_closed_store() {
    for (rows_in_log, filters) in [(0, true), (1, true), (5, true), (5, false)] {
        let dir = fast_dir();
        let options = || if filters { tiny() } else { tiny().filter_policy(FilterPolicy::OFF) };
        let db = options().open(dir.path()).unwrap();
        fill_deep(&db, 7);
        db.flush().unwrap();
        (0..rows_in_log).for_each(|i: u32| db.put(i.to_be_bytes(), "in the log").unwrap());
        db.wait_for_compaction().unwrap();
        drop(db);
        let before = fingerprints(dir.path(), "");
        for _ in 0..3 {
            let db = options().open(dir.path()).unwrap();
            use_without_writing(&db);
            if rows_in_log == 0 {
                db.flush().unwrap();
            }
            drop(db);
            assert!(fingerprints(dir.path(), "") == before, "{rows_in_log} rows in the log");
        }
    }
}

#[test]
fn an_opening_without_writes_neither_creates_nor_syncs_nor_locks_anew() {
    let fs = closed(Sequence(1));
    let (files, writes) = (fs.files(), fs.writes());
    for _ in 0..3 {
        use_without_writing(&tiny_on(&fs).open(STORE).unwrap());
    }
    assert_eq!((fs.files(), fs.writes()), (files, writes), "{}", fs.log());
}

/// A crash at any operation of the first write loses nothing that was there.
#[test]
fn i4_a_crash_at_any_operation_of_the_first_write_loses_nothing() {
    for seed in 0..6 {
        let sequence = Sequence(seed);
        let before = closed(sequence);
        for stop in 0.. {
            let fs = before.crash(Crash::Kill, 0);
            fs.fail(Fault::stop(stop).short());
            let db = tiny_on(&fs).open(STORE).unwrap();
            let written = db.write_with(sequence.batch(BATCHES + 1), Durability::Sync);
            for (i, crash) in [Crash::Kill, Crash::PowerOrdered, Crash::Power].into_iter().enumerate() {
                let after = fs.crash(crash, stop * 3 + i as u64);
                let reopened = tiny_on(&after).open(STORE).unwrap();
                let found = sequence.prefix_of(&reopened);
                let least = BATCHES + u64::from(written.is_ok());
                assert!((least..=BATCHES + 1).contains(&found), "stop {stop}, {crash:?}:\n{}", fs.log());
                // What a reader has seen persists, even if the next opening writes nothing.
                let again = after.crash(Crash::Power, stop);
                drop(reopened);
                assert_eq!(sequence.prefix_of(&tiny_on(&again).open(STORE).unwrap()), found);
                assert_eq!(sequence.prefix_of(&tiny_on(&after).open(STORE).unwrap()), found);
                assert_eq!(logs(&after).len(), 1, "{:?}", after.files());
            }
            if written.is_ok() {
                assert!(stop > 8, "the first write has more steps than that");
                break;
            }
        }
    }
}

/// A first write that lacks space or descriptors fails alone, and leaves no files.
#[test]
fn i5_a_first_write_without_space_or_descriptors_fails_alone() {
    use OpKind::{Append, Create, Open, Rename, Sync};
    let shortages = [(Create, Errno::NoSpace), (Append, Errno::NoSpace), (Sync, Errno::NoSpace)]
        .into_iter()
        .chain([(Rename, Errno::NoSpace), (Create, Errno::TooManyFiles), (Open, Errno::TooManyFiles)]);
    let mut failures = 0;
    for (kind, errno) in shortages {
        for (after, times) in (0..6).flat_map(|after| [(after, 1), (after, 3)]) {
            let (sequence, what) = (Sequence(after), format!("{kind:?}, {errno:?}, {after}, {times}"));
            let fs = closed(sequence);
            let db = tiny_on(&fs).open(STORE).unwrap();
            let only = (kind == Open).then_some("MANIFEST"); // Reads open the others.
            fs.fail(Fault { times, only, ..Fault::once(kind, after) }.with(errno));
            let write = || db.write_with(sequence.batch(BATCHES + 1), Durability::Sync);
            let mut attempts = 1;
            while let Err(error) = write() {
                assert!(!matches!(error, Error::Poisoned { .. }), "{what}: {error}");
                assert_eq!(sequence.prefix_of(&db), BATCHES, "{what}");
                attempts += 1;
                assert!(attempts < 10, "{what}: {error}");
            }
            failures += attempts - 1;
            assert_eq!(sequence.prefix_of(&db), BATCHES + 1, "{what}");
            assert!(logs(&fs).len() <= 2, "{what}: {:?}", fs.files());
            drop(db);
            let after = fs.crash(Crash::Power, 0);
            assert_eq!(sequence.prefix_of(&tiny_on(&after).open(STORE).unwrap()), BATCHES + 1, "{what}");
            assert_eq!(logs(&after).len(), 1, "{what}: {:?}", after.files());
        }
    }
    assert!(failures > 20, "{failures}");
}

/// The first write of a store with larger options than its log had keeps one log and adds no segment.
#[test]
fn a_first_write_under_larger_options_keeps_one_log_and_adds_no_segment() {
    let fs = closed(Sequence(2));
    let segments =
        || fs.files().iter().filter(|path| path.extension().is_some_and(|e| e == "segment")).count();
    let before = segments();
    for i in 0..20u8 {
        let db = Options::new().filesystem(std::sync::Arc::new(fs.clone())).open(STORE).unwrap();
        db.put([i], [i]).unwrap();
        drop(db);
        assert_eq!((logs(&fs).len(), segments()), (1, before), "opening {i}");
    }
}

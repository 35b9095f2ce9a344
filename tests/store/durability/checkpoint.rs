//! Checkpoints: independent stores that share files with the original.

use crate::support::{
    Crash, Errno, Fault, OpKind, STORE, Sequence, SimFs, assert_holds, contents, fast_dir, fill_deep,
    fingerprints, tiny, tiny_on,
};
use sidebloom::{Db, Error, Options};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

fn filled(dir: &Path, sequence: Sequence) -> Db {
    let db = tiny().open(dir).unwrap();
    (1..=200).for_each(|i| db.write(sequence.batch(i)).unwrap());
    db
}

/// A checkpoint is a separate store that shares the bytes of segments and filters.
#[test]
fn a_checkpoint_is_a_store_that_shares_the_bytes_of_segments_and_filters() {
    let dir = fast_dir();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let db = tiny().open(&from).unwrap();
    let expected = fill_deep(&db, 1); // From here on the background has nothing to do.
    db.checkpoint(&to).unwrap();
    for ending in [".segment", ".filter"] {
        let by_name = |dir| -> Vec<_> {
            let files = fingerprints(dir, ending).into_iter();
            files.map(|(path, file)| (path.file_name().unwrap().to_owned(), file)).collect()
        };
        assert!(by_name(&to).len() > 1);
        assert_eq!(by_name(&from), by_name(&to), "the same inodes");
    }
    // Both stores are open at once, each with its own lock.
    let copy = tiny().open(&to).unwrap();
    assert_holds(&copy, &expected);
    assert!(copy.verify().unwrap().is_ok());
    assert_eq!(copy.stats().filters_unavailable, 0);
}

/// Source and checkpoint do not see each other's later writes, compactions and removal.
#[test]
fn source_and_checkpoint_do_not_see_each_others_later_changes() {
    let dir = fast_dir();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let sequence = Sequence(2);
    let db = filled(&from, sequence);
    db.checkpoint(&to).unwrap();
    let segments = fingerprints(&to, ".segment");
    (201..=400).for_each(|i| db.write(sequence.batch(i)).unwrap());
    db.compact().unwrap();
    db.rebuild_filters(sidebloom::FilterPolicy::bits_per_key(5.0)).unwrap();
    assert_eq!(fingerprints(&to, ".segment"), segments);

    let copy = tiny().open(&to).unwrap();
    assert_holds(&copy, &sequence.after(200));
    copy.put(b"only in the copy", b"").unwrap();
    copy.compact().unwrap();
    assert_holds(&db, &sequence.after(400));
    drop(db);
    fs::remove_dir_all(&from).unwrap();
    assert_eq!(contents(&copy).len(), sequence.after(200).len() + 1);
    assert!(copy.verify().unwrap().is_ok());
}

#[test]
fn checkpoints_taken_while_writers_and_compactions_run_are_prefixes() {
    let dir = fast_dir();
    let sequence = Sequence(3);
    let db = tiny().open(dir.path().join("from")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (1..=600).for_each(|i| db.write(sequence.batch(i)).unwrap()));
        let mut before = 0;
        for n in 0..8 {
            let to = dir.path().join(format!("to{n}"));
            db.checkpoint(&to).unwrap();
            let copy = tiny().open(&to).unwrap();
            let found = sequence.prefix_of(&copy);
            assert!(found >= before && copy.verify().unwrap().is_ok());
            before = found;
        }
    });
}

#[test]
fn an_existing_target_is_refused_and_left_alone() {
    let dir = fast_dir();
    let db = filled(&dir.path().join("from"), Sequence(4));
    let (file, empty) = (dir.path().join("file"), dir.path().join("empty"));
    fs::write(&file, "mine").unwrap();
    fs::create_dir(&empty).unwrap();
    for target in [&file, &empty, &dir.path().join("from")] {
        let error = db.checkpoint(target).unwrap_err();
        assert!(matches!(&error, Error::AlreadyExists { path } if path == target), "{error}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    db.put(b"still", b"writable").unwrap();
}

#[test]
fn a_checkpoint_of_an_empty_store_and_of_a_checkpoint_work() {
    let dir = fast_dir();
    let db = Options::new().open(dir.path().join("a")).unwrap();
    db.checkpoint(dir.path().join("b")).unwrap();
    let b = Options::new().open(dir.path().join("b")).unwrap();
    assert_eq!(b.iter().count().unwrap(), 0);
    b.put(b"k", b"v").unwrap();
    b.checkpoint(dir.path().join("c")).unwrap();
    let c = Options::new().open(dir.path().join("c")).unwrap();
    assert_eq!(c.get(b"k").unwrap().as_deref(), Some(b"v".as_slice()));
    assert_eq!(db.iter().count().unwrap(), 0);
}

/// A checkpoint cut short by a crash is not a store, and a finished one survives.
#[test]
fn a_checkpoint_cut_short_is_no_store_and_a_finished_one_survives() {
    let sequence = Sequence(5);
    for stop in 0.. {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        (1..=20).for_each(|i| db.write(sequence.batch(i)).unwrap());
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
        fs.fail(Fault::stop(stop));
        let outcome = db.checkpoint("disk/copy");
        for (seed, crash) in [Crash::Kill, Crash::PowerOrdered, Crash::Power].into_iter().enumerate() {
            let after = fs.crash(crash, stop ^ seed as u64);
            let copy = tiny_on(&after).create_if_missing(false).open("disk/copy");
            match (&outcome, copy) {
                (_, Ok(copy)) => assert_eq!(sequence.prefix_of(&copy), 20, "stopped after {stop} writes"),
                (Err(_), Err(error)) => {
                    assert!(matches!(error, Error::NotAStore { .. }), "{error}");
                    let repaired = tiny_on(&after).repair("disk/copy");
                    assert!(repaired.is_err(), "a repair makes a store of a part: {repaired:?}");
                }
                (Ok(()), Err(error)) => panic!("a finished checkpoint is gone after {crash:?}: {error}"),
            }
            assert_eq!(sequence.prefix_of(&tiny_on(&after).open(STORE).unwrap()), 20);
        }
        if outcome.is_ok() {
            assert!(stop > 5, "{stop}");
            return;
        }
    }
}

#[test]
fn a_checkpoint_on_another_file_system_is_a_durable_copy() {
    let (fs, sequence) = (SimFs::new(), Sequence(6));
    let db = tiny_on(&fs).open(STORE).unwrap();
    (1..=60).for_each(|i| db.write(sequence.batch(i)).unwrap());
    fs.fail(Fault { forever: true, ..Fault::once(OpKind::Link, 0) }.with(Errno::OtherDevice));
    db.checkpoint("disk/copy").unwrap();
    fs.heal();
    db.compact().unwrap();
    let after = fs.crash(Crash::Power, 1);
    let copy = tiny_on(&after).create_if_missing(false).open("disk/copy").unwrap();
    assert_eq!(sequence.prefix_of(&copy), 60);
    assert!(copy.verify().unwrap().is_ok());
    assert_eq!(copy.stats().filters_unavailable, 0);
}

#[test]
fn a_checkpoint_that_fails_leaves_no_directory_and_can_be_tried_again() {
    // The directories to sync: the store's parent, the store, and the copy.
    for (kind, after, errno) in [
        (OpKind::Link, 0, Errno::Io),
        (OpKind::Append, 0, Errno::NoSpace),
        (OpKind::Sync, 0, Errno::Io),
        (OpKind::SyncDir, 0, Errno::Io),
        (OpKind::SyncDir, 1, Errno::NoSpace),
        (OpKind::SyncDir, 2, Errno::Io),
    ] {
        let (fs, sequence) = (SimFs::new(), Sequence(7));
        let db = tiny_on(&fs).open(STORE).unwrap();
        (1..=60).for_each(|i| db.write(sequence.batch(i)).unwrap());
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
        fs.fail(Fault::once(kind, after).with(errno));
        let error = db.checkpoint("disk/copy").unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        let left = sidebloom::fs::Fs::file_len(&fs, "disk/copy".as_ref()).unwrap();
        assert_eq!(left, None, "{kind:?} {after}: {:?}", fs.files());
        db.checkpoint("disk/copy").unwrap();
        assert_eq!(sequence.prefix_of(&tiny_on(&fs).open("disk/copy").unwrap()), 60);
    }
}

/// Both find no target and create the directory; one claims it first.
#[test]
fn of_two_checkpoints_to_one_target_one_is_whole_and_the_other_is_refused() {
    let (fs, sequences) = (SimFs::new(), [Sequence(8), Sequence(9)]);
    let one = tiny_on(&fs).open(STORE).unwrap();
    let other = tiny_on(&fs).open("disk/other").unwrap();
    for (db, sequence) in [&one, &other].into_iter().zip(sequences) {
        (1..=60).for_each(|i| db.write(sequence.batch(i)).unwrap());
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
    }
    for (round, [first, second]) in [[0, 0], [0, 1], [1, 0]].into_iter().enumerate() {
        let (target, dbs) = (format!("disk/copy{round}"), [&one, &other]);
        let outcomes = std::thread::scope(|scope| {
            let held = fs.hold(OpKind::CreateDir);
            let inspected = fs.ops_of(OpKind::CreateDir);
            let running = [first, second].map(|n| {
                let (db, target) = (dbs[n], &target);
                scope.spawn(move || db.checkpoint(target))
            });
            // By then both wait to create the directory.
            std::thread::sleep(std::time::Duration::from_millis(100));
            assert_eq!(fs.ops_of(OpKind::CreateDir), inspected);
            drop(held);
            running.map(|checkpoint| checkpoint.join().unwrap())
        });
        let winner = outcomes.iter().position(Result::is_ok).expect("one succeeds");
        let refused = outcomes[1 - winner].as_ref().unwrap_err();
        assert!(matches!(refused, Error::AlreadyExists { path } if *path == Path::new(&target)), "{refused}");
        let copy = tiny_on(&fs.crash(Crash::Power, 1)).create_if_missing(false).open(&target).unwrap();
        let sequence = sequences[[first, second][winner]];
        assert_eq!(sequence.prefix_of(&copy), 60);
        assert!(copy.verify().unwrap().is_ok());
    }
}

#[test]
fn nobody_opens_a_store_where_a_checkpoint_is_being_written() {
    for fails in [true, false] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        (1..=60).for_each(|i| db.write(Sequence(8).batch(i)).unwrap());
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
        let is_asked = AtomicBool::new(false);
        fs.before_each(move |fs, kind, _| {
            if kind == OpKind::Link && !is_asked.swap(true, SeqCst) {
                let refused = tiny_on(fs).open("disk/copy").map(drop).unwrap_err();
                assert!(matches!(refused, Error::Locked { .. }), "{refused}");
            }
        });
        if fails {
            fs.fail(Fault::once(OpKind::Link, 1).with(Errno::NoSpace));
            db.checkpoint("disk/copy").unwrap_err();
            assert!(fs.files().iter().all(|path| !path.starts_with("disk/copy")));
        } else {
            db.checkpoint("disk/copy").unwrap();
            assert_holds(&tiny_on(&fs).open("disk/copy").unwrap(), &contents(&db));
        }
    }
}

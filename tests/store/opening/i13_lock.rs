//! I13: a store writes only where it was opened, wherever that is moved, and only while it holds its lock.

use crate::support::{
    Contents, Fault, OpKind, STORE, Sequence, SimFs, assert_holds, contents, fast_dir, tiny, tiny_on,
};
use sidebloom::fs::Fs;
use sidebloom::{Db, Durability, Error, Options};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What a writer tries.
type Attempt = fn(&Db) -> sidebloom::Result<()>;

fn put(db: &Db, key: &str) -> Result<(), Error> {
    let mut batch = sidebloom::Batch::new();
    batch.put(key, "value");
    db.write_with(batch, Durability::Sync)
}

/// Checks that the store has lost its lock and writes nothing more.
#[track_caller]
fn assert_stopped(db: &Db, lost: Result<(), Error>) {
    match lost.unwrap_err() {
        Error::LockLost { path } => assert!(path.ends_with("LOCK")),
        // A background thread found out first.
        Error::Poisoned { cause } => assert!(cause.contains("LOCK was removed or replaced"), "{cause}"),
        other => panic!("{other}"),
    }
    for refused in [put(db, "refused"), db.flush(), db.compact(), db.sync()] {
        let Err(Error::Poisoned { cause }) = refused else { panic!("{refused:?}") };
        assert!(cause.contains("LOCK was removed or replaced"), "{cause}");
    }
}

/// A writer whose lock file is removed stops, and no row of the next writer is lost.
#[test]
fn i13_a_writer_whose_lock_file_is_removed_stops_and_harms_no_row() {
    // What the first writer has done before, and what it tries afterwards.
    let before: [&dyn Fn(&Db); 3] = [&|_| (), &|db| put(db, "first").unwrap(), &|db| {
        put(db, "first").unwrap();
        db.flush().unwrap();
        put(db, "second").unwrap();
    }];
    let after: [Attempt; 2] = [|db| put(db, "late"), |db| db.put("unsynced", "").and_then(|()| db.flush())];
    for before in before {
        for after in after {
            let dir = fast_dir();
            let path = dir.path().join("db");
            put(&Options::new().open(&path).unwrap(), "oldest").unwrap();
            let first = Options::new().open(&path).unwrap();
            before(&first);
            let expected = contents(&first);
            fs::remove_file(path.join("LOCK")).unwrap();
            let second = Options::new().open(&path).unwrap();
            put(&second, "theirs").unwrap();
            assert_stopped(&first, after(&first));
            assert!(expected.iter().all(|(key, _)| first.contains_key(key).unwrap()));
            drop(first);
            put(&second, "theirs, later").unwrap();
            second.flush().unwrap();
            drop(second);
            let again = Options::new().open(&path).unwrap();
            assert!(expected.iter().all(|(key, _)| again.contains_key(key).unwrap()));
            assert!(again.contains_key("theirs").unwrap() && again.contains_key("theirs, later").unwrap());
            assert!(again.verify().unwrap().is_ok());
        }
    }
}

/// Two stores in one directory never both write it, whenever the lock is lost.
#[test]
fn i13_two_stores_in_one_directory_never_both_write_it() {
    for moment in 0..120 {
        let (fs, sequence) = (SimFs::new(), Sequence(moment));
        let first = tiny_on(&fs).durability(Durability::Sync).open(STORE).unwrap();
        let mut written = 0;
        let outcome = (1..=60).try_for_each(|i| {
            if i == 1 + moment / 3 {
                match moment % 3 {
                    0 => fs.remove(&Path::new(STORE).join("LOCK")).unwrap(),
                    1 => fs.write(Path::new(STORE).join("LOCK"), []),
                    _ => fs.rename(&Path::new(STORE).join("LOCK"), &Path::new(STORE).join("lock")).unwrap(),
                }
                let second = tiny_on(&fs).durability(Durability::Sync).open(STORE).unwrap();
                assert_eq!(sequence.prefix_of(&second), written);
                second.put("theirs", "").unwrap();
                second.flush().unwrap();
            }
            first.write(sequence.batch(i)).inspect(|()| written = i)
        });
        assert_stopped(&first, outcome);
        drop(first);
        let second = tiny_on(&fs).open(STORE).unwrap();
        assert!(second.contains_key("theirs").unwrap(), "{moment}");
        second.delete("theirs").unwrap();
        assert_eq!(sequence.prefix_of(&second), written, "{moment}");
    }
}

/// The next writer creates a file between this one's check of the lock and its own attempt.
#[test]
fn i13_a_writer_that_lost_its_lock_to_the_creator_of_its_file_says_so() {
    let (fs, taken) = (SimFs::new(), AtomicBool::new(false));
    let db = tiny_on(&fs).open(STORE).unwrap();
    put(&db, "first").unwrap();
    fs.before_each(move |fs, kind, path| {
        let is_segment = path.extension().is_some_and(|kind| kind == "segment");
        if kind == OpKind::Create && is_segment && !taken.swap(true, Relaxed) {
            fs.remove(&Path::new(STORE).join("LOCK")).unwrap();
            fs.write(path, "theirs");
        }
    });
    assert_stopped(&db, db.flush());
    drop(db);
    assert!(fs.files().iter().any(|path| fs.read(path).is_some_and(|bytes| bytes == b"theirs")));
}

/// A writer continues in its moved directory, although a checkpoint takes its place.
#[test]
fn i13_a_writer_goes_on_where_its_directory_is_moved() {
    let dir = fast_dir();
    let [here, copy, away] = ["db", "copy", "away"].map(|name| dir.path().join(name));
    let sequence = Sequence(1);
    let db = tiny().durability(Durability::Sync).open(&here).unwrap();
    (1..=100).for_each(|i| db.write(sequence.batch(i)).unwrap());
    db.checkpoint(&copy).unwrap();
    fs::rename(&here, &away).unwrap();
    fs::rename(&copy, &here).unwrap();
    (101..=400).for_each(|i| db.write(sequence.batch(i)).unwrap());
    db.checkpoint(dir.path().join("later")).unwrap();
    db.compact().unwrap();
    db.rebuild_filters(sidebloom::FilterPolicy::bits_per_key(5.0)).unwrap();
    assert_holds(&db, &sequence.after(400));
    drop(db);
    for (path, batches) in [(&away, 400), (&here, 100), (&dir.path().join("later"), 400)] {
        let db = tiny().open(path).unwrap();
        assert_holds(&db, &sequence.after(batches));
        assert!(db.verify().unwrap().is_ok());
    }
}

#[test]
fn i13_a_reader_reads_the_files_it_has_opened_wherever_they_are_moved() {
    let dir = fast_dir();
    let (here, away) = (dir.path().join("db"), dir.path().join("away"));
    let expected: Contents = {
        let db = tiny().open(&here).unwrap();
        crate::support::fill_deep(&db, 1)
    };
    for options in [tiny().read_only(true), tiny().follow(true)] {
        let db = options.open(&here).unwrap();
        fs::rename(&here, &away).unwrap();
        assert_holds(&db, &expected);
        db.catch_up().unwrap();
        drop(db);
        fs::rename(&away, &here).unwrap();
    }
}

#[test]
fn i13_a_writer_whose_directory_is_emptied_or_removed_says_so() {
    for whole in [false, true] {
        let dir = fast_dir();
        let path = dir.path().join("db");
        let db = tiny().open(&path).unwrap();
        db.put("before", "").unwrap();
        fs::remove_dir_all(&path).unwrap();
        if !whole {
            fs::create_dir(&path).unwrap();
        }
        db.put("acknowledged by the operating system only", "").unwrap();
        assert_stopped(&db, db.sync());
        drop(db);
        assert_eq!(path.exists(), !whole);
        assert!(whole || fs::read_dir(&path).unwrap().next().is_none());
    }
}

#[test]
fn i13_a_moved_directory_on_a_simulated_disk_takes_its_writer_with_it() {
    let (fs, sequence) = (SimFs::new(), Sequence(3));
    let db = tiny_on(&fs).open(STORE).unwrap();
    (1..=40).for_each(|i| db.write(sequence.batch(i)).unwrap());
    db.checkpoint("disk/copy").unwrap();
    fs.move_dir(STORE, "disk/away");
    fs.move_dir("disk/copy", STORE);
    (41..=80).for_each(|i| db.write(sequence.batch(i)).unwrap());
    db.flush().unwrap();
    drop(db);
    assert_holds(&tiny_on(&fs).open("disk/away").unwrap(), &sequence.after(80));
    assert_holds(&tiny_on(&fs).open(STORE).unwrap(), &sequence.after(40));
}

/// A transient disk fault while a writer checks its lock file.
#[test]
fn i13_one_failed_look_at_the_lock_file_does_not_stop_a_writer() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    put(&db, "first").unwrap();
    fs.fail(Fault { only: Some("LOCK"), ..Fault::once(OpKind::Inspect, 0) });
    put(&db, "second").unwrap();
    assert_eq!(fs.faults_left(), 0, "the fault has not struck");
    assert_eq!(contents(&db).len(), 2);
}

//! I5 on a full disk: no failed write is acknowledged, no failed file is written again, and the store resumes
//! once there is space.

use crate::support::{
    Crash, Errno, Fault, OpKind, STORE, Sequence, SimFs, assert_holds, contents, eventually, promptly, sized,
    tiny_on,
};
use sidebloom::{Db, Durability, Error, Result};

#[track_caller]
fn assert_says_full(error: &Error) {
    let text = error.to_string();
    assert!(matches!(error, Error::Io { .. }) && text.contains("No space left"), "{text}");
    assert!(text.contains(STORE), "{text}");
}

/// Writes batch `i`, with syncs, flushes and compactions in between.
fn write(db: &Db, sequence: Sequence, i: u64) -> Result<()> {
    let durability = if i.is_multiple_of(3) { Durability::Sync } else { Durability::Os };
    db.write_with(sequence.batch(i), durability)
}

fn do_other_things(db: &Db, i: u64) -> Result<()> {
    match i % 23 {
        7 => db.sync(),
        14 => db.flush(),
        20 => db.compact(),
        _ => Ok(()),
    }
}

/// Writes until the disk is full or `last` is written. Returns how many batches were acknowledged.
fn write_until_full(db: &Db, sequence: Sequence, last: u64) -> u64 {
    for i in 1..=last {
        if let Err(error) = write(db, sequence, i) {
            assert_says_full(&error);
            return i - 1;
        }
        if let Err(error) = do_other_things(db, i) {
            assert_says_full(&error);
            return i;
        }
    }
    last
}

/// What an opening after a crash finds: every acknowledged batch, and perhaps the failed one.
#[track_caller]
fn assert_recovers(fs: &SimFs, sequence: Sequence, acknowledged: u64, crash: Crash, synced: u64) {
    let db = tiny_on(&fs.crash(crash, acknowledged)).open(STORE).unwrap();
    let found = sequence.prefix_of(&db);
    let least = if crash == Crash::Kill { acknowledged } else { synced };
    assert!(found >= least && found <= acknowledged + 1, "{found} of {acknowledged}, {crash:?}");
    assert!(db.verify().unwrap().is_ok());
}

fn goes_on(db: &Db, fs: &SimFs, sequence: Sequence, acknowledged: u64) {
    assert_eq!(contents(db), sequence.after(acknowledged), "reads go on");
    for crash in [Crash::Kill, Crash::Power, Crash::PowerOrdered] {
        // Every third batch is synced, if acknowledged.
        assert_recovers(&fs.crash(Crash::Kill, 0), sequence, acknowledged, crash, acknowledged / 3 * 3);
    }
    fs.heal();
    let mut tries = 0;
    eventually("writes are taken again", || {
        tries += 1;
        match db.write_with(sequence.batch(acknowledged + 1), Durability::Sync) {
            Ok(()) => true,
            Err(error) => {
                assert_says_full(&error);
                false
            }
        }
    });
    assert!(tries < 50, "{tries} tries with space");
    for i in acknowledged + 2..acknowledged + 40 {
        write(db, sequence, i).unwrap();
    }
    db.sync().unwrap();
    let all = acknowledged + 39;
    assert_eq!(contents(db), sequence.after(all));
    for crash in [Crash::Kill, Crash::Power, Crash::PowerOrdered] {
        assert_recovers(&fs.crash(Crash::Kill, 0), sequence, all, crash, all);
    }
    db.compact().unwrap();
    db.wait_for_compaction().unwrap();
    assert_holds(db, &sequence.after(all));
}

/// Checks that only complete files of the store remain.
#[track_caller]
fn assert_tidy(fs: &SimFs) {
    let before = fs.files();
    drop(tiny_on(fs).open(STORE).unwrap());
    let kept = |files: &[std::path::PathBuf]| {
        files.iter().filter(|path| path.extension().is_some_and(|e| e == "segment")).count()
    };
    assert!(kept(&before) <= kept(&fs.files()) + 1, "partial files stayed: {before:?}");
}

/// A store on a full disk resumes by itself when there is space, wherever the disk became full.
#[test]
fn i5_a_store_on_a_full_disk_goes_on_by_itself_when_there_is_space() {
    let mut full = 0;
    for space in (0..60_000).step_by(sized(1949, 487)) {
        let (fs, sequence) = (SimFs::new(), Sequence(space));
        let db = tiny_on(&fs).background_threads(2 + space as usize % 3).open(STORE).unwrap();
        fs.limit_space(space);
        let acknowledged = write_until_full(&db, sequence, 150);
        full += u64::from(acknowledged < 150);
        let (store, disk) = (db.clone(), fs.clone());
        promptly("going on", move || goes_on(&store, &disk, sequence, acknowledged));
        assert!(acknowledged == 150 || db.stats().shortages > 0);
        promptly("closing", move || drop(db));
        assert_tidy(&fs);
    }
    assert!(full > sized(15, 60), "{full}");
}

#[test]
fn i5_a_full_disk_at_any_single_append_sync_or_create_loses_nothing() {
    for (kind, short) in [
        (OpKind::Append, false),
        (OpKind::Append, true),
        (OpKind::Sync, false),
        (OpKind::Create, false),
        (OpKind::Rename, false),
    ] {
        for after in (0..240).step_by(sized(23, 3)) {
            let (fs, sequence) = (SimFs::new(), Sequence(after));
            let db = tiny_on(&fs).background_threads(3).open(STORE).unwrap();
            let fault = Fault { forever: true, short, ..Fault::once(kind, after) };
            fs.fail(fault.with(Errno::NoSpace));
            let acknowledged = write_until_full(&db, sequence, 110);
            let (store, disk) = (db.clone(), fs.clone());
            promptly("going on", move || goes_on(&store, &disk, sequence, acknowledged));
            promptly("closing", move || drop(db));
            assert_tidy(&fs);
        }
    }
}

#[test]
fn i5_no_file_whose_write_or_sync_failed_is_written_again() {
    for (kind, after) in [(OpKind::Append, 0..60), (OpKind::Sync, 0..60)]
        .into_iter()
        .flat_map(|(k, r)| r.step_by(sized(3, 1)).map(move |n| (k, n)))
    {
        let (fs, sequence) = (SimFs::new(), Sequence(after));
        let db = tiny_on(&fs).open(STORE).unwrap();
        let before = fs.writes();
        fs.fail(Fault::once(kind, after).with(Errno::NoSpace));
        for i in 1..100 {
            eventually("a write", || write(&db, sequence, i).is_ok());
        }
        db.wait_for_compaction().or_else(|_| db.wait_for_compaction()).unwrap();
        let log = fs.log();
        let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split(' ').collect()).collect();
        let ours = || lines.iter().filter(|line| line[0].parse::<u64>().unwrap() > before);
        let Some(failed) =
            ours().filter(|line| line[1] == kind.op().verb() && line[2] != "directory").nth(after as usize)
        else {
            continue;
        };
        let (number, path) = (failed[0].parse::<u64>().unwrap(), failed[2]);
        let again = ours().find(|line| {
            let later = line[0].parse::<u64>().unwrap() > number;
            later && line[2] == path && ["write", "sync"].contains(&line[1]) && !path.contains("MANIFEST")
        });
        assert_eq!(again, None, "{log}");
        assert_eq!(contents(&db), sequence.after(99));
    }
}

/// On a disk that stays full, everything stays readable, and closing the store loses nothing.
#[test]
fn i5_a_disk_that_stays_full_keeps_everything_readable_and_loses_nothing() {
    for space in (0..40_000).step_by(sized(4900, 1900)) {
        let (fs, sequence) = (SimFs::new(), Sequence(space));
        let db = tiny_on(&fs).open(STORE).unwrap();
        fs.limit_space(space);
        let acknowledged = write_until_full(&db, sequence, 150);
        if acknowledged == 150 {
            continue;
        }
        let store = db.clone();
        promptly("every call", move || {
            let calls: [fn(&Db) -> sidebloom::Result<()>; 4] =
                [|db| db.flush(), |db| db.sync(), Db::compact, Db::wait_for_compaction];
            for call in calls {
                if let Err(error) = call(&store) {
                    assert_says_full(&error);
                }
            }
            (0..5).for_each(|_| {
                _ = store
                    .write_with(sequence.batch(acknowledged + 1), Durability::Os)
                    .map_err(|e| assert_says_full(&e))
            });
        });
        let found = contents(&db);
        assert!(found == sequence.after(acknowledged) || found == sequence.after(acknowledged + 1));
        promptly("closing", move || drop(db));
        let db = tiny_on(&fs.crash(Crash::Kill, 0)).open(STORE).unwrap();
        assert!([0, 1].contains(&(sequence.prefix_of(&db) - acknowledged)));
    }
}

#[test]
fn i5_a_directory_that_cannot_be_synced_still_poisons() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    fs.fail(Fault::once(OpKind::SyncDir, 0).with(Errno::NoSpace));
    db.put("k", "v").unwrap();
    db.flush().unwrap_err();
    assert!(matches!(db.put("k", "w"), Err(Error::Poisoned { .. })));
}

#[test]
fn i5_writes_go_on_only_when_nothing_needs_the_log_that_failed() {
    let (fs, sequence) = (SimFs::new(), Sequence(1));
    let db = tiny_on(&fs).open(STORE).unwrap();
    (1..=3).for_each(|i| db.write(sequence.batch(i)).unwrap());
    fs.fail(Fault::once(OpKind::Sync, 0).with(Errno::NoSpace));
    // All of it is in the log, but none of it was acknowledged.
    assert_says_full(&db.write_with(sequence.batch(4), Durability::Sync).unwrap_err());
    let held = fs.hold(OpKind::Rename); // The flush cannot end.
    let writer = db.clone();
    let write = std::thread::spawn(move || writer.write_with(sequence.batch(4), Durability::Sync));
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(!write.is_finished(), "a crash now would find its sequence numbers twice");
    assert_eq!(contents(&db), sequence.after(3));
    assert_recovers(&fs, sequence, 3, Crash::Kill, 0);
    drop(held);
    promptly("the write", move || write.join().unwrap().unwrap());
    assert_recovers(&fs, sequence, 4, Crash::Power, 4);
    assert_eq!(contents(&db), sequence.after(4));
}

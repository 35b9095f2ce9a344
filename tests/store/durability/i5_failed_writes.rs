//! I5: a failed write or sync is never retried or acknowledged. The store names the file that failed, becomes
//! read-only with that cause, keeps serving reads, and has every acknowledged write after reopening.
//! `full_disk.rs` has the one failure that is temporary.

use crate::support::{
    Crash, Fault, OpKind, STORE, Sequence, SimFs, contents, eventually, promptly, sized, tiny_on,
};
use sidebloom::{Db, Durability, Error, FilterPolicy};

const BATCHES: u64 = 70;

/// Writes until something fails. Returns the failure, if any, and how many batches were acknowledged.
fn write_until_failure(db: &Db, sequence: Sequence) -> Option<(Error, u64)> {
    for i in 1..=BATCHES {
        let durability = if i % 5 == 0 { Durability::Sync } else { Durability::Os };
        if let Err(error) = db.write_with(sequence.batch(i), durability) {
            return Some((error, i - 1));
        }
        let outcome = match i % 23 {
            7 => db.sync(),
            14 => db.flush(),
            20 => db.compact(),
            22 => db.rebuild_filters(FilterPolicy::bits_per_key(9.0)).map(|_| ()),
            _ => Ok(()),
        };
        if let Err(error) = outcome {
            return Some((error, i));
        }
    }
    db.wait_for_compaction().err().map(|error| (error, BATCHES))
}

/// The failure's text: the operation, the file and the disk's error.
#[track_caller]
fn cause_of(error: &Error) -> String {
    match error {
        Error::Io { .. } => error.to_string(),
        Error::Poisoned { cause } => cause.to_string(),
        other => panic!("not the failure of the disk: {other}"),
    }
}

/// Checks that every kind of write is refused with the same cause.
fn assert_poisoned(db: &Db, cause: &str) {
    let refusals = [
        db.put(b"k", b"v"),
        db.delete(b"count"),
        db.write_with(Sequence(1).batch(1), Durability::Sync),
        db.sync(),
        db.flush(),
        db.compact(),
        db.wait_for_compaction(),
        db.rebuild_filters(FilterPolicy::default()).map(|_| ()),
        db.checkpoint("disk/copy"),
    ];
    for (i, refusal) in refusals.into_iter().enumerate() {
        match refusal {
            Err(Error::Poisoned { cause: found }) => assert_eq!(&*found, cause),
            other => panic!("write {i} was not refused as poisoned: {other:?}"),
        }
    }
}

/// The lines of the operation log, as (number, verb, path).
fn log(fs: &SimFs) -> Vec<(u64, String, String)> {
    let parse = |line: &str| {
        let (number, rest) = line.split_once(' ').unwrap();
        let (verb, path) = rest.rsplit_once(' ').unwrap();
        (number.parse().unwrap(), verb.to_owned(), path.to_owned())
    };
    fs.log().lines().map(parse).collect()
}

/// What a fault affected.
enum Struck {
    /// The log, a segment or the manifest.
    Data,
    /// A sidecar, or the renaming of an obsolete segment. It stops no write (I2).
    Derived,
    /// Nothing: the workload ended first.
    Nothing,
}

/// Checks that after a fault in derived data the store still works and has everything, also after reopening.
fn assert_goes_on(fs: &SimFs, db: Db, sequence: Sequence, acknowledged: u64) {
    assert_eq!(contents(&db), sequence.after(acknowledged));
    db.write_with(sequence.batch(acknowledged + 1), Durability::Sync).unwrap();
    db.flush().unwrap();
    db.compact().unwrap();
    assert_eq!(contents(&db), sequence.after(acknowledged + 1));
    promptly("closing", move || drop(db));
    let reopened = tiny_on(&fs.crash(Crash::Power, acknowledged)).open(STORE).unwrap();
    assert_eq!(contents(&reopened), sequence.after(acknowledged + 1));
    assert!(reopened.verify().unwrap().is_ok());
}

/// A single fault, which a retry would not meet again.
fn fail_once(fault: Fault, kind: OpKind, seed: u64) -> Struck {
    let (fs, sequence) = (SimFs::new(), Sequence(seed));
    let db = tiny_on(&fs).open(STORE).unwrap();
    let before = fs.writes();
    fs.fail(fault);
    let failure = write_until_failure(&db, sequence);
    let history = log(&fs);
    let mut struck = history.iter().filter(|(number, verb, _)| *number > before && *verb == kind.op().verb());
    let Some((.., path)) = struck.nth(fault.after as usize) else { return Struck::Nothing };
    let is_obsolete_segment = kind == OpKind::Rename && path.contains(".segment");
    if path.contains(".filter") || is_obsolete_segment {
        assert_goes_on(&fs, db, sequence, failure.map_or(BATCHES, |(_, acknowledged)| acknowledged));
        return Struck::Derived;
    }
    let Some((error, acknowledged)) = failure else { return Struck::Nothing };
    let cause = cause_of(&error);
    assert!(cause.starts_with(&format!("cannot {} {STORE}", kind.op())), "{cause}");
    assert!(cause.contains(&fault.errno.error().to_string()), "{cause}");

    // The first failure is reported, also to later callers.
    let told = fs.writes();
    assert_poisoned(&db, &cause);
    let log = log(&fs);
    let later: Vec<_> = log.iter().filter(|(number, ..)| *number > told).collect();
    let writes_a_log = |(_, verb, path): &&&(u64, String, String)| path.ends_with(".wal") && verb != "remove";
    assert_eq!(later.iter().find(writes_a_log), None, "a refused write reached the log");
    let struck = log.iter().filter(|(number, verb, _)| *number > before && *verb == kind.op().verb());
    let (number, _, path) = struck.clone().nth(fault.after as usize).unwrap();
    assert!(cause.contains(path), "{cause}, not {path}");
    if kind != OpKind::SyncDir {
        let again =
            |entry: &&(u64, String, String)| entry.0 > *number && entry.2 == *path && entry.1 != "remove";
        assert_eq!(log.iter().find(again), None, "retried after: {cause}");
    }

    // Reads still work: they return everything acknowledged and nothing else.
    assert_eq!(contents(&db), sequence.after(acknowledged));
    for (key, value) in sequence.after(acknowledged) {
        assert_eq!(db.get(&key).unwrap().as_deref(), Some(value.as_slice()));
    }
    promptly("closing", move || drop(db));
    let reopened = tiny_on(&fs.crash(Crash::Kill, 0)).open(STORE).unwrap();
    let found = sequence.prefix_of(&reopened);
    assert!(found == acknowledged || found == acknowledged + 1, "{found} of {acknowledged}: {cause}");
    reopened.write_with(sequence.batch(found + 1), Durability::Sync).unwrap();
    assert_eq!(contents(&reopened), sequence.after(found + 1));
    assert!(reopened.verify().unwrap().is_ok());
    Struck::Data
}

/// Fails the first, the second, … operation of a kind after opening, until a workload has no more of them.
/// Returns how many faults affected data, and how many derived data.
fn fail_each(kind: OpKind, step: usize, plan: impl Fn(Fault) -> Fault) -> (u32, u32) {
    let (mut data, mut derived) = (0, 0);
    for after in (0..).step_by(step) {
        let fault = plan(Fault::once(kind, after));
        match std::panic::catch_unwind(|| fail_once(fault, kind, after)) {
            Ok(Struck::Data) => data += 1,
            Ok(Struck::Derived) => derived += 1,
            Ok(Struck::Nothing) => return (data, derived),
            Err(panic) => {
                eprintln!("{kind:?} number {after} after opening failed");
                std::panic::resume_unwind(panic);
            }
        }
    }
    (data, derived)
}

#[test]
fn i5_a_failed_append_poisons_the_store_with_its_file_and_is_not_retried() {
    let (data, _) = fail_each(OpKind::Append, 2, |fault| fault);
    assert!(data >= 5, "the workload has too few");
}

/// A partial append poisons the store, and its batch is gone after reopening.
#[test]
fn i5_a_partial_append_poisons_the_store_and_reopening_drops_its_batch() {
    let (data, _) = fail_each(OpKind::Append, 3, Fault::short);
    assert!(data >= 5, "the workload has too few");
}

#[test]
fn i5_a_failed_sync_poisons_the_store_and_no_later_sync_vouches_for_it() {
    let (data, _) = fail_each(OpKind::Sync, 1, |fault| fault);
    assert!(data >= 5, "the workload has too few");
}

#[test]
fn i5_a_failed_create_poisons_the_store() {
    let (data, _) = fail_each(OpKind::Create, 1, |fault| fault);
    assert!(data >= 5, "the workload has too few");
}

#[test]
fn i2_a_sidecar_that_cannot_be_written_stops_no_write() {
    for kind in [OpKind::Create, OpKind::Append, OpKind::Sync, OpKind::Rename] {
        let (_, derived) = fail_each(kind, sized(3, 1), |fault| fault);
        assert!(derived >= sized(1, 3), "the workload has too few {kind:?}");
    }
}

#[test]
fn i5_a_failed_directory_sync_poisons_the_store() {
    let (data, _) = fail_each(OpKind::SyncDir, 1, |fault| fault);
    assert!(data >= 5, "the workload has too few");
}

/// A failed manifest append is the last one, even while a flush and a compaction race.
#[test]
fn i5_a_failed_manifest_append_is_the_last_one_though_publishers_race() {
    for seed in 0..120 {
        let (fs, sequence) = (SimFs::new(), Sequence(seed));
        let db = tiny_on(&fs).background_threads(4).open(STORE).unwrap();
        fs.fail(Fault::once(OpKind::Append, 60 + seed));
        let failed = write_until_failure(&db, sequence);
        drop(db);
        let Some((error, _)) = failed else { continue };
        let cause = cause_of(&error);
        let log = log(&fs);
        if cause.contains("MANIFEST") {
            let appended =
                log.iter().rev().find(|(_, verb, path)| verb == "write" && path.ends_with("MANIFEST"));
            let synced =
                log.iter().rev().find(|(_, verb, path)| verb == "sync" && path.ends_with("MANIFEST"));
            assert!(appended.unwrap().0 > synced.map_or(0, |s| s.0), "seed {seed}: {cause}");
        }
    }
}

/// An opening that fails names the file, and the next one finds everything.
#[test]
fn i5_a_failed_opening_names_the_file_and_the_next_one_finds_everything() {
    let sequence = Sequence(7);
    let crashed = SimFs::new();
    let db = tiny_on(&crashed).open(STORE).unwrap();
    (1..=30).for_each(|i| db.write(sequence.batch(i)).unwrap());
    let crashed = crashed.crash(Crash::Kill, 0);
    drop(db);
    for kind in [OpKind::Append, OpKind::Sync, OpKind::Create, OpKind::Rename, OpKind::SyncDir] {
        for after in 0.. {
            let fs = crashed.crash(Crash::Kill, 0);
            fs.fail(Fault::once(kind, after));
            let Err(error) = tiny_on(&fs).open(STORE) else { break };
            let text = error.to_string();
            assert!(text.starts_with(&format!("cannot {} {STORE}", kind.op())), "{text}");
            assert_eq!(sequence.prefix_of(&tiny_on(&fs).open(STORE).unwrap()), 30, "{text}");
        }
    }
}

#[test]
fn a_segment_that_was_being_written_when_the_store_failed_leaves_no_files() {
    for compaction in [false, true] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        for round in 0..3 {
            db.put(b"k", [round]).unwrap();
            if round < 2 {
                db.flush().unwrap();
            }
        }
        let published = segments(&fs);
        // Segment and sidecar are written. The sidecar waits for its rename; then only publishing is left.
        let held = fs.hold(OpKind::Rename);
        let working = db.clone();
        let work = std::thread::spawn(move || if compaction { working.compact() } else { working.flush() });
        eventually("the sidecar is written", || {
            log(&fs).pop().is_some_and(|(_, verb, path)| verb == "sync" && path.contains(".filter"))
        });
        fs.fail(Fault::once(OpKind::Append, 0));
        assert!(matches!(db.put(b"l", b"v"), Err(Error::Io { .. })));
        drop(held);
        let outcome = promptly("the work", move || work.join().unwrap());
        assert!(matches!(outcome, Err(Error::Poisoned { .. })), "{outcome:?}");
        // The caller's flush ends as soon as the store has failed, the background thread's shortly after.
        eventually("no files that no manifest names, before the store is closed", || {
            segments(&fs) == published
        });
        assert_eq!(db.get(b"k").unwrap().as_deref(), Some([2].as_slice()));
        drop(db);
        let db = tiny_on(&fs).open(STORE).unwrap();
        assert_eq!(db.get(b"k").unwrap().as_deref(), Some([2].as_slice()));
    }
}

/// The files of segments and sidecars.
fn segments(fs: &SimFs) -> Vec<String> {
    let names = fs.files().into_iter().map(|path| path.display().to_string());
    names
        .filter(|name| [".segment", ".filter", ".obsolete", ".tmp"].iter().any(|end| name.ends_with(end)))
        .collect()
}

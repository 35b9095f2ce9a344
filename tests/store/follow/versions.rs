//! Following: each state that a follower can read has its own version number, so what it reads stays.

use crate::support::{Contents, Crash, Errno, Fault, OpKind, STORE, SimFs, contents, tiny_on};
use sidebloom::{Db, Snapshot};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// A cleanly closed store of several segments, and its contents.
fn closed_store() -> (SimFs, Contents) {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    for round in 0..3u32 {
        (0..20u32).for_each(|i| db.put(i.to_be_bytes(), [round as u8; 20]).unwrap());
        db.flush().unwrap();
    }
    let then = contents(&db);
    drop(db);
    (fs, then)
}

/// Lets a follower open the store just before each writing operation in turn: `work` runs on a new copy of
/// the store for each of them. What the follower sees there, it still sees after the work.
fn with_a_follower_at_each_operation(work: impl Fn(&SimFs)) {
    let (closed, then) = closed_store();
    for at in 0.. {
        let fs = closed.crash(Crash::Kill, 0);
        let (left, is_opening) = (AtomicU64::new(at), AtomicBool::new(false));
        let seen: Arc<Mutex<Option<Snapshot>>> = Arc::default();
        let kept = Arc::clone(&seen);
        fs.before_each(move |fs, kind, _| {
            let is_due = || left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_err();
            if kind.is_write() && !is_opening.load(SeqCst) && is_due() && !is_opening.swap(true, SeqCst) {
                let follower = tiny_on(fs).follow(true).open(STORE).unwrap();
                *kept.lock().unwrap() = Some(follower.snapshot());
            }
        });
        work(&fs);
        let Some(snapshot) = seen.lock().unwrap().take() else { return };
        let rows: Result<Contents, _> = snapshot.iter().map(|kv| kv.map(|(k, v)| (k, v.to_vec()))).collect();
        let rows = rows.unwrap_or_else(|error| panic!("opened before operation {at}: {error}\n{}", fs.log()));
        assert_eq!(rows, then, "opened before operation {at}");
    }
}

fn open(fs: &SimFs) -> Db {
    tiny_on(fs).open(STORE).unwrap()
}

#[test]
fn a_follower_keeps_its_files_when_a_writer_compacts_before_it_writes() {
    with_a_follower_at_each_operation(|fs| open(fs).compact().unwrap());
}

#[test]
fn a_follower_keeps_its_files_when_a_compaction_follows_a_failed_edit() {
    with_a_follower_at_each_operation(|fs| {
        let db = open(fs);
        let fails = Fault { only: Some("MANIFEST"), ..Fault::once(OpKind::Append, 1).with(Errno::NoSpace) };
        fs.fail(fails);
        _ = db.compact(); // Its edit fails, or is retried at once.
        fs.heal();
        db.compact().unwrap();
    });
}

/// In the next process, each version has other segments and a greater number.
#[test]
fn each_version_has_other_segments_and_a_greater_number_after_reopening() {
    let (fs, _) = closed_store();
    let mut sets: Vec<(u64, Vec<u64>)> = Vec::new();
    for round in 0..12u32 {
        let db = open(&fs);
        for step in 0..3 {
            let set = db.file_set().unwrap();
            sets.push((set.version(), set.segments().map(|segment| segment.number()).collect()));
            match step {
                0 if round % 3 == 0 => db.put(round.to_be_bytes(), [9; 20]).unwrap(),
                1 if round % 3 == 1 => db.ingest([Ok((round.to_be_bytes(), [8; 20]))]).unwrap(),
                1 => db.compact().unwrap(),
                _ => {}
            }
            if round % 2 == 0 && step == 1 {
                // Takes a file number that no file keeps.
                fs.fail(Fault {
                    only: Some(".segment"),
                    ..Fault::once(OpKind::Create, 0).with(Errno::NoSpace)
                });
                _ = db.ingest([Ok(("x", "y"))]);
                fs.heal();
            }
        }
    }
    for pair in sets.windows(2) {
        let [(before, old), (after, new)] = pair else { continue };
        assert!(before <= after, "{sets:?}");
        assert!(before < after || old == new, "{sets:?}");
    }
}

//! Races between parts of the store: one acts while another is in the middle of something.

use crate::support::{Fault, OpKind, STORE, SimFs, assert_holds, eventually, fill_deep, tiny_on};
use sidebloom::{Compression, Error, FilterPolicy};
use std::thread;
use std::time::Duration;

/// A compaction that finishes during a checkpoint renames the segments that it replaces.
#[test]
fn a_checkpoint_succeeds_while_a_compaction_replaces_its_segments() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let expected = fill_deep(&db, 1);
    let held = fs.hold(OpKind::Link);
    let copying = {
        let db = db.clone();
        thread::spawn(move || db.checkpoint("disk/copy"))
    };
    let made = || sidebloom::fs::Fs::file_len(&fs, "disk/copy".as_ref()).unwrap().is_some();
    eventually("the checkpoint has begun", made);
    thread::sleep(Duration::from_millis(20));
    db.compact().unwrap();
    drop(held);
    copying.join().unwrap().unwrap();
    let copy = tiny_on(&fs).open("disk/copy").unwrap();
    assert_holds(&copy, &expected);
    assert!(copy.verify().unwrap().is_ok());
}

/// A listing may lack a name that is being replaced.
#[test]
fn a_store_is_known_while_its_writer_replaces_the_manifest() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    db.put(b"key", b"value").unwrap();
    fs.leave_out("MANIFEST");
    for options in [tiny_on(&fs), tiny_on(&fs).read_only(true)] {
        let error = options.open(STORE).map(drop).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
    }
    let error = tiny_on(&fs).repair(STORE).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    let follower = tiny_on(&fs).follow(true).open(STORE).unwrap();
    assert_eq!(follower.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    // A checkpoint is complete once its manifest has its name.
    db.checkpoint("disk/copy").unwrap();
    fs.write("disk/copy/MANIFEST.copy", b"as it was listed");
    let copy = tiny_on(&fs).read_only(true).open("disk/copy").unwrap();
    assert_eq!(copy.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    drop(copy);
    assert!(tiny_on(&fs).repair("disk/copy").unwrap().lost.is_empty());
    // The manifest may be all that a store has.
    fs.write("disk/empty/MANIFEST", fs.read("disk/copy/MANIFEST").unwrap());
    let error = tiny_on(&fs).repair("disk/empty").map(drop).err().map(|error| error.to_string());
    assert!(error.as_ref().is_none_or(|error| !error.contains("no store files")), "{error:?}");
}

/// A thread that failed to read a segment requests its quarantine while a compaction of it is published.
#[test]
fn a_segment_that_goes_while_its_quarantine_waits_does_not_stop_writes() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let expected = fill_deep(&db, 1);
    // The compaction waits while it holds the manifest. Its first step is the first segment of level 1.
    let held = fs.hold(OpKind::SyncDir);
    let compacting = {
        let db = db.clone();
        thread::spawn(move || db.compact())
    };
    let (mut before, mut still) = (0, 0);
    eventually("the compaction waits", || {
        let ops = fs.ops();
        still = if ops == before { still + 1 } else { 0 };
        before = ops;
        still > 50
    });
    fs.fail(Fault::once(OpKind::Read, 0));
    let rebuilding = {
        let db = db.clone();
        thread::spawn(move || db.rebuild_filters(FilterPolicy::bits_per_key(3.0)))
    };
    eventually("a read has failed", || fs.faults_left() == 0);
    thread::sleep(Duration::from_millis(50));
    drop(held);
    let _ = rebuilding.join().unwrap();
    compacting.join().unwrap().unwrap();
    db.put(b"key", b"").unwrap();
    db.delete(b"key").unwrap();
    assert_holds(&db, &expected);
    assert!(db.verify().unwrap().is_ok());
}

/// If the quarantine of a damaged segment cannot be recorded because the disk is full, the segment is not
/// reread without pause.
#[test]
fn a_quarantine_that_cannot_be_recorded_is_tried_again_after_a_pause() {
    let fs = SimFs::new();
    let options = || tiny_on(&fs).compression(Compression::None).filter_policy(FilterPolicy::OFF);
    let open = || options().open(STORE).unwrap();
    let db = open();
    for i in 0..3u64 {
        (0..20).for_each(|k| db.put(format!("key{k:05}"), [i as u8; 60]).unwrap());
        db.flush().unwrap();
    }
    drop(db);
    for path in fs.files().into_iter().filter(|path| path.to_str().unwrap().ends_with(".segment")) {
        let mut bytes = fs.read(&path).unwrap();
        bytes[20] ^= 4; // In the first block.
        fs.write(path, bytes);
    }
    let db = open();
    (0..20).for_each(|k| db.put(format!("key{k:05}"), [9; 60]).unwrap());
    let held = fs.hold(OpKind::Read);
    db.flush().unwrap(); // The fourth of level 0.
    fs.limit_space(0);
    drop(held);
    thread::sleep(Duration::from_millis(100));
    let before = fs.ops();
    thread::sleep(Duration::from_millis(300));
    let ops = fs.ops() - before;
    fs.heal();
    assert!(ops < 300, "{ops} operations");
    db.wait_for_compaction().unwrap();
    assert!(db.stats().segments_quarantined > 0);
    db.put("key", "").unwrap();
}

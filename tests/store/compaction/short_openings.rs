//! A store that is opened, written to and closed many times: level 0 and the cost of a read stay small.

use crate::support::{Crash, Fault, OpKind, STORE, SimFs, fast_dir, files_with, promptly, sized};
use sidebloom::{Db, Options};
use std::sync::Arc;
use std::time::Duration;

/// The numbers of level-0 segments at which writers are slowed down, and at which they stall.
const LEVEL0_SLOWDOWN: usize = 20;
const LEVEL0_STOP: usize = 36;

fn level0(db: &Db) -> usize {
    db.stats().levels.first().map_or(0, |level| level.segments)
}

#[test]
fn a_thousand_short_openings_of_one_put_each_leave_one_log_and_no_segment() {
    let fs = SimFs::new();
    let open =
        || Options::new().memtable_bytes(1 << 20).filesystem(Arc::new(fs.clone())).open(STORE).unwrap();
    for i in 0..1000u32 {
        open().put(i.to_be_bytes(), b"value").unwrap();
    }
    let files = fs.files();
    assert_eq!(files.len(), 3, "a lock, a manifest and a log, but not: {files:?}");
    let db = open();
    let before = fs.ops();
    assert_eq!(db.get(b"missing").unwrap(), None);
    assert_eq!(fs.ops(), before, "a read of recent keys does not touch the disk");
    assert_eq!(db.iter().count().unwrap(), 1000);
    (0..1000u32).for_each(|i| assert!(db.contains_key(i.to_be_bytes()).unwrap(), "{i}"));
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn short_openings_that_each_write_a_segment_stay_below_the_slowdown_limit() {
    let dir = fast_dir();
    let (value, openings) = (vec![7; 1 << 10], sized(30, 60u32));
    for i in 0..openings {
        let db = Db::open(dir.path()).unwrap();
        assert!(level0(&db) < LEVEL0_SLOWDOWN, "{} segments at opening {i}", level0(&db));
        (0..2048u32).for_each(|n| db.put([n.to_be_bytes(), i.to_be_bytes()].concat(), &value).unwrap());
    }
    let db = Db::open(dir.path()).unwrap();
    assert!(level0(&db) < LEVEL0_SLOWDOWN, "{} segments", level0(&db));
    assert!(files_with(dir.path(), ".segment").len() < 2 * LEVEL0_SLOWDOWN);
    assert_eq!(db.iter().count().unwrap(), openings as u64 * 2048);
}

/// Openings killed before any compaction ends leave no more than 36 segments on level 0.
#[test]
fn openings_killed_before_a_compaction_ends_leave_at_most_36_segments() {
    let mut fs = SimFs::new();
    let open = |fs: &SimFs| {
        Options::new()
            .memtable_bytes(4 << 20)
            .block_cache_bytes(0)
            .filesystem(Arc::new(fs.clone()))
            .open(STORE)
    };
    // More than one log carries over to the next opening.
    let write = |db: &Db, i: u32| {
        (0..110u32).for_each(|n| db.put([n.to_be_bytes(), i.to_be_bytes()].concat(), [7; 10_000]).unwrap());
    };
    for i in 0.. {
        let db = open(&fs).unwrap();
        // No compaction can finish, because it cannot write its output.
        let held = fs.hold(OpKind::Create);
        assert!(level0(&db) <= LEVEL0_STOP, "{} segments at opening {i}", level0(&db));
        if level0(&db) < LEVEL0_STOP {
            write(&db, i);
            let killed = fs.crash(Crash::Kill, 0);
            fs.fail(Fault::stop(0));
            drop((held, db));
            fs = killed;
            continue;
        }
        // Reads work; a write waits for the compaction and succeeds after it.
        assert_eq!(db.iter().count().unwrap(), 110 * i as u64);
        let writer = db.clone();
        let waiting = std::thread::spawn(move || write(&writer, i));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished());
        assert_eq!(db.get([0, i].map(u32::to_be_bytes).concat()).unwrap(), None);
        drop(held);
        promptly("the write", move || waiting.join().unwrap());
        assert!(level0(&db) < LEVEL0_STOP && db.stats().stall_micros > 0);
        assert_eq!(db.iter().count().unwrap(), 110 * (i as u64 + 1));
        assert!(i as usize >= LEVEL0_STOP);
        break;
    }
}

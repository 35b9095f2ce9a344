//! The progress of long work: bytes done never fall, and nothing is left at the end.

use crate::support::fast_dir;
use sidebloom::{Db, Options, Progress, repair_with};
use std::ops::ControlFlow;
use std::path::Path;

/// Checks what a callback was told. Returns the last bytes done.
fn checked(told: &[Progress]) -> u64 {
    assert!(told.windows(2).all(|pair| pair[0].bytes_done <= pair[1].bytes_done), "{told:?}");
    let last = told.last().expect("it was told nothing");
    assert_eq!(last.bytes_left, Some(0), "{told:?}");
    last.bytes_done
}

/// A store with several segments in two levels.
fn filled(dir: &Path) -> Db {
    let db = Options::new().segment_bytes(64 << 10).open(dir.join("store")).unwrap();
    db.ingest((0..5000).map(|n| Ok((format!("key{n:05}"), [7; 100])))).unwrap();
    (0..5000).step_by(7).for_each(|n| db.put(format!("key{n:05}"), "new").unwrap());
    db.flush().unwrap();
    db
}

fn data_bytes(db: &Db) -> u64 {
    db.stats().levels.iter().map(|level| level.data_bytes).sum()
}

#[test]
fn a_manual_compaction_tells_of_each_step() {
    let dir = fast_dir();
    let db = filled(dir.path());
    let mut told = Vec::new();
    db.compact_with(|so_far| {
        told.push(*so_far);
        db.put("during", "the call").unwrap(); // No lock is held.
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(checked(&told) > 0);
    let mut again = Vec::new();
    db.compact_range_with(.."key", |so_far| {
        again.push(*so_far);
        ControlFlow::Continue(())
    })
    .unwrap();
    checked(&again);
}

/// What was done stays, and the next call does the rest.
#[test]
fn a_manual_compaction_can_be_stopped_after_a_step() {
    let dir = fast_dir();
    let db = filled(dir.path());
    let mut calls = 0;
    db.compact_with(|so_far| {
        calls += 1;
        assert!(so_far.bytes_done > 0);
        ControlFlow::Break(())
    })
    .unwrap();
    assert_eq!(calls, 1);
    db.compact().unwrap();
    assert_eq!(db.iter().count().unwrap(), 5000);
}

#[test]
fn a_verification_tells_of_each_segment_and_can_be_stopped() {
    let dir = fast_dir();
    let db = filled(dir.path());
    let mut told = Vec::new();
    let report = db
        .verify_with(|so_far| {
            told.push(*so_far);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(checked(&told), report.bytes);
    assert!(told.len() as u64 > report.segments && report.is_ok() && !report.stopped);
    let report = db.verify_with(|_| ControlFlow::Break(())).unwrap();
    assert_eq!((report.segments, report.stopped), (1, true));
    assert!(!report.is_ok(), "the rest may be damaged");
}

#[test]
fn a_repair_tells_of_segments_and_logs() {
    let dir = fast_dir();
    let db = filled(dir.path());
    db.put("in the log", "only").unwrap();
    let bytes = data_bytes(&db);
    db.close().unwrap();
    let path = dir.path().join("store");
    let mut told = Vec::new();
    repair_with(&path, |so_far| told.push(*so_far)).unwrap();
    assert!(checked(&told) >= bytes, "{told:?}, {bytes}");
    std::fs::remove_file(path.join("MANIFEST")).unwrap();
    told.clear();
    let report = repair_with(&path, |so_far| told.push(*so_far)).unwrap();
    assert!(report.rebuilt && checked(&told) >= bytes, "{told:?}, {bytes}");
    assert!(told.len() > 3, "{told:?}");
}

#[test]
fn a_load_tells_of_the_bytes_of_its_rows() {
    const ROWS: u64 = 40_000;
    const ROW_BYTES: u64 = 8 + 100;
    let row = |n: u64| Ok((format!("key{n:05}"), [7; 100]));
    let dir = fast_dir();
    let db = Options::new().memtable_bytes(1 << 20).open(dir.path().join("store")).unwrap();
    let mut told = Vec::new();
    db.ingest_with((0..ROWS).map(row), |so_far| told.push(*so_far)).unwrap();
    assert_eq!(checked(&told), ROWS * ROW_BYTES);
    assert!(told.len() > 3 && told[0].bytes_left.is_none(), "{told:?}");
    told.clear();
    db.ingest_unsorted_with((0..ROWS).rev().map(row), |so_far| told.push(*so_far)).unwrap();
    assert_eq!(checked(&told), 2 * ROWS * ROW_BYTES);
    let known: Vec<u64> = told.iter().filter_map(|so_far| so_far.bytes_left).collect();
    assert!(known.len() > 3 && known.windows(2).all(|pair| pair[0] >= pair[1]), "{told:?}");
    told.clear();
    db.ingest_with(std::iter::empty::<sidebloom::Result<([u8; 0], [u8; 0])>>(), |so_far| told.push(*so_far))
        .unwrap();
    assert_eq!(checked(&told), 0);
}

#[test]
fn a_checkpoint_tells_of_each_segment() {
    let dir = fast_dir();
    let db = filled(dir.path());
    let (mut told, bytes) = (Vec::new(), data_bytes(&db));
    db.checkpoint_with(dir.path().join("copy"), |so_far| told.push(*so_far)).unwrap();
    assert_eq!(checked(&told), bytes);
    assert!(told.len() > 2, "{told:?}");
}

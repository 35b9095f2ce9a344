//! The store's clock never runs backwards (I15).

use super::{Timed, after, options, secs};
use crate::support::{copy_store, fast_dir};
use sidebloom::KeyspaceOptions;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A copy of the store, as a kill would leave it.
fn killed(timed: &Timed) -> (TempDir, PathBuf) {
    let dir = fast_dir();
    let copy = dir.path().join("copy");
    copy_store(&timed.dir.path().join("store"), &copy);
    (dir, copy)
}

#[test]
fn i15_a_clock_that_is_set_back_shows_no_expired_row_again() {
    let mut timed = Timed::new();
    timed.db.put_with("a", "1", after(10)).unwrap();
    timed.clock.advance(secs(10));
    assert_eq!(timed.get("a"), None);
    timed.clock.set_back(secs(86_400));
    assert_eq!(timed.get("a"), None, "in the same process");
    timed = timed.reopened();
    assert_eq!(timed.get("a"), None, "after reopening");
    // The clock stands still until the time of day has caught up.
    timed.db.put_with("b", "1", after(10)).unwrap();
    timed.clock.advance(secs(86_400));
    assert_eq!(timed.get("b"), Some("1".into()));
    timed.clock.advance(secs(10));
    assert_eq!(timed.get("b"), None);
}

#[test]
fn i15_the_log_has_the_time_for_a_store_whose_process_was_killed() {
    let timed = Timed::new();
    timed.db.put_with("a", "1", after(10)).unwrap();
    timed.clock.advance(secs(20));
    assert_eq!(timed.get("a"), None);
    timed.db.put_with("b", "1", after(10)).unwrap();
    let (_dir, copy) = killed(&timed);
    timed.clock.set_back(secs(3600));
    let db = options(&timed.clock).open(&copy).unwrap();
    assert!(db.get("a").unwrap().is_none());
    assert!(db.get("b").unwrap().is_some());
    let read_only = options(&Arc::clone(&timed.clock)).read_only(true);
    db.close().unwrap();
    let db = read_only.open(&copy).unwrap();
    assert!(db.get("a").unwrap().is_none() && db.get("b").unwrap().is_some());
}

#[test]
fn i15_other_writes_tell_the_log_the_time_too() {
    let timed = Timed::new();
    timed.db.put_with("a", "1", after(10)).unwrap();
    timed.clock.advance(secs(20));
    assert_eq!(timed.get("a"), None);
    timed.db.put("b", "1").unwrap();
    let (_dir, copy) = killed(&timed);
    timed.clock.set_back(secs(3600));
    let db = options(&timed.clock).open(&copy).unwrap();
    assert!(db.get("a").unwrap().is_none() && db.get("b").unwrap().is_some());
}

#[test]
fn i15_a_checkpoint_has_the_time_of_its_store() {
    let timed = Timed::new();
    timed.db.put_with("a", "1", after(10)).unwrap();
    timed.db.flush().unwrap();
    timed.clock.advance(secs(20));
    assert_eq!(timed.get("a"), None);
    let copy = timed.dir.path().join("copy");
    timed.db.checkpoint(&copy).unwrap();
    timed.clock.set_back(secs(3600));
    assert!(options(&timed.clock).open(&copy).unwrap().get("a").unwrap().is_none());
}

#[test]
fn i15_a_clock_that_jumps_ahead_and_back_stands_still() {
    let timed = Timed::new();
    timed.db.put_with("a", "1", after(365 * 86_400)).unwrap();
    timed.clock.advance(secs(366 * 86_400));
    assert_eq!(timed.get("a"), None);
    timed.clock.set_back(secs(366 * 86_400));
    timed.db.put_with("b", "1", after(60)).unwrap();
    timed.clock.advance(secs(3600));
    assert_eq!(timed.get("b"), Some("1".into()), "its minute has not begun");
}

#[test]
fn i15_a_repair_without_a_manifest_goes_by_the_clock_of_its_options() {
    let timed = Timed::new();
    timed.clock.set_back(secs(20 * 365 * 86_400)); // Long before the system's time.
    let rows = timed.db.create_keyspace("rows", KeyspaceOptions::new()).unwrap();
    rows.put_with("a", "1", after(3600)).unwrap();
    timed.db.flush().unwrap();
    drop(rows);
    let Timed { dir, clock, db } = timed;
    db.close().unwrap();
    let path = dir.path().join("store");
    std::fs::remove_file(path.join("MANIFEST")).unwrap();
    assert!(options(&clock).repair(&path).unwrap().rebuilt);
    let rows = options(&clock).open(&path).unwrap().keyspace("rows").unwrap();
    assert_eq!(rows.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}

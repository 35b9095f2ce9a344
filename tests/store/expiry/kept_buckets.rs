//! Segments of windowed keyspaces stay in their time buckets, whatever happens to other rows of the store.

use super::{options, secs};
use crate::support::{TestClock, copy_store, fast_dir, files_with};
use sidebloom::{Db, Expiry, Keyspace, KeyspaceOptions, Options, Result};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// Rows in segments of a window, each written in another bucket.
const ROWS: u32 = 3000;

fn key(n: u32) -> [u8; 4] {
    n.wrapping_mul(0x9e37_79b9).to_be_bytes()
}

fn fill(recent: &Keyspace, rows: std::ops::Range<u32>) {
    rows.for_each(|n| recent.put(key(n), [7; 10]).unwrap());
}

struct Windowed {
    dir: TempDir,
    clock: Arc<TestClock>,
    db: Db,
    recent: Keyspace,
}

impl Windowed {
    /// A store with [`ROWS`] rows in six buckets, which nothing but a test flushes.
    fn new() -> Self {
        let (dir, clock) = (fast_dir(), Arc::new(TestClock::new()));
        let db = large(&clock).open(dir.path().join("store")).unwrap();
        let recent = db.create_keyspace("recent", KeyspaceOptions::new().window(secs(1200))).unwrap();
        for round in 0..6 {
            fill(&recent, ROWS / 6 * round..ROWS / 6 * (round + 1));
            db.flush().unwrap();
            clock.advance(secs(100));
        }
        db.compact().unwrap();
        let windowed = Windowed { dir, clock, db, recent };
        windowed.assert_in_buckets(ROWS);
        windowed
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// The same rows after a crash, in a store with these options.
    fn after_a_crash(self, options: impl Fn(&Arc<TestClock>) -> Options) -> Self {
        let Windowed { dir, clock, db, recent } = self;
        let copy = fast_dir();
        copy_store(&dir.path().join("store"), &copy.path().join("store"));
        drop((db, recent));
        let db = options(&clock).open(copy.path().join("store")).unwrap();
        let recent = db.keyspace("recent").unwrap();
        Windowed { dir: copy, clock, db, recent }
    }

    /// Compacts what may be compacted, and checks that all rows are there and none of them has left level 0.
    #[track_caller]
    fn assert_in_buckets(&self, rows: u32) {
        self.db.wait_for_compaction().unwrap();
        self.db.compact().unwrap();
        assert!((0..rows).all(|n| self.recent.get(key(n)).unwrap().is_some()));
        let below: u64 = self.db.stats().levels.iter().skip(1).map(|level| level.keys).sum();
        assert!(below < 30, "{below} rows below level 0"); // Those of other keyspaces are few.
    }
}

fn large(clock: &Arc<TestClock>) -> Options {
    options(clock).memtable_bytes(4 << 20).segment_bytes(64 << 10)
}

#[test]
fn rows_that_a_crash_leaves_in_the_log_get_their_buckets() {
    let windowed = Windowed::new();
    fill(&windowed.recent, ROWS..2 * ROWS);
    // The replay flushes full memtables.
    windowed.after_a_crash(|clock| large(clock).memtable_bytes(32 << 10)).assert_in_buckets(2 * ROWS);
}

/// More than a mebibyte of memtable is flushed at the end of recovery, not carried over into the next log.
#[test]
fn what_recovery_flushes_at_its_end_gets_its_buckets() {
    let mut windowed = Windowed::new();
    for round in 1..=5 {
        fill(&windowed.recent, ROWS + 10_000 * (round - 1)..ROWS + 10_000 * round);
        windowed = windowed.after_a_crash(large);
    }
    windowed.assert_in_buckets(ROWS + 50_000);
}

/// The keyspace itself is only in the log.
#[test]
fn a_window_that_a_crash_leaves_in_the_log_gets_its_buckets() {
    let windowed = Windowed::new();
    let young = windowed.db.create_keyspace("young", KeyspaceOptions::new().window(secs(1200))).unwrap();
    fill(&young, 0..2 * ROWS);
    let windowed = windowed.after_a_crash(|clock| large(clock).memtable_bytes(32 << 10));
    let young = windowed.db.keyspace("young").unwrap();
    windowed.assert_in_buckets(ROWS);
    assert!((0..2 * ROWS).all(|n| young.get(key(n)).unwrap().is_some()));
}

#[test]
fn dropping_another_keyspace_leaves_a_window_alone() {
    let windowed = Windowed::new();
    let other = windowed.db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    other.put("a", "1").unwrap();
    windowed.db.flush().unwrap();
    drop(other);
    windowed.db.put("of the default keyspace", "1").unwrap();
    windowed.db.drop_keyspace("other").unwrap();
    windowed.assert_in_buckets(ROWS);
}

/// Rows of a keyspace before the window, and range tombstones of one after it.
#[test]
fn deleting_a_range_of_another_keyspace_leaves_a_window_alone() {
    let windowed = Windowed::new();
    let other = windowed.db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    for round in 0..6 {
        windowed.db.put(format!("{round}"), [b'v'; 2000]).unwrap();
        windowed.db.delete_range("x".."y").unwrap();
        other.delete_range("a".."b").unwrap();
        windowed.db.flush().unwrap();
    }
    windowed.assert_in_buckets(ROWS);
}

#[test]
fn rows_ingested_into_a_window_get_its_last_bucket() {
    let windowed = Windowed::new();
    windowed.recent.ingest([Result::Ok(([0u8], "1")), Ok(([0xff], "1"))]).unwrap();
    windowed.assert_in_buckets(ROWS);
    windowed.clock.advance(secs(1200));
    windowed.db.wait_for_compaction().unwrap();
    assert_eq!(windowed.recent.stats().unwrap().segments, 0);
}

#[test]
fn rows_salvaged_from_a_damaged_segment_keep_its_bucket() {
    let windowed = Windowed::new();
    let path = windowed.path();
    let Windowed { dir, clock, db, recent } = windowed;
    drop(recent);
    db.close().unwrap();
    let largest = |path: &PathBuf| std::fs::metadata(path).unwrap().len();
    let damaged = files_with(&path, ".segment").into_iter().max_by_key(largest).unwrap();
    let mut bytes = std::fs::read(&damaged).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let report = large(&clock).repair(&path).unwrap();
    assert!(report.rows_salvaged > 100, "{report:?}");
    let db = large(&clock).open(&path).unwrap();
    let recent = db.keyspace("recent").unwrap();
    let windowed = Windowed { dir, clock, db, recent };
    windowed.assert_in_buckets(0);
    assert_eq!(windowed.recent.iter().count().unwrap(), windowed.recent.stats().unwrap().keys);
}

/// A keyspace with a few bytes in a memtable gets one segment, not one for each bucket.
#[test]
fn i12_a_flush_writes_few_segments_for_many_windows_with_few_rows() {
    let (dir, clock) = (fast_dir(), Arc::new(TestClock::new()));
    let db = large(&clock).open(dir.path().join("store")).unwrap();
    let recent = |n: u32| db.create_keyspace(&format!("{n}"), KeyspaceOptions::new().window(secs(120)));
    let windows: Vec<Keyspace> = (0..20).map(|n| recent(n).unwrap()).collect();
    for round in 0..12 {
        windows.iter().for_each(|recent| recent.put(key(round), "1").unwrap());
        clock.advance(secs(9));
    }
    windows[7].put_with("long", "1", Expiry::after(secs(500))).unwrap();
    db.flush().unwrap();
    let segments = db.stats().levels[0].segments;
    assert!((20..=21).contains(&segments), "{segments} segments");
    assert!(windows.iter().all(
        |recent| recent.iter().count().unwrap() == 12 + u64::from(recent.get("long").unwrap().is_some())
    ));
    clock.advance(secs(120));
    db.wait_for_compaction().unwrap();
    assert_eq!(windows[7].iter().count().unwrap(), 1);
    assert!(db.stats().levels[0].segments <= 2);
}

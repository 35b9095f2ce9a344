//! Ranges: what they read, what they open, and what they leave in the block cache.

use crate::support::{STORE, SimFs, fast_dir, tiny_on};
use sidebloom::{Batch, Compression, Db, FilterPolicy, Options, Residency};

const ROWS: u32 = 4000;

fn key(n: u32) -> Vec<u8> {
    format!("key{n:06}").into_bytes()
}

fn fill(db: &Db, rows: std::ops::Range<u32>) {
    let mut batch = Batch::new();
    rows.for_each(|n| batch.put(key(n), n.to_be_bytes().repeat(50)));
    db.write(batch).unwrap();
}

/// Nothing in the background opens segments without filters to verify.
fn quiet() -> Options {
    Options::new().filter_policy(FilterPolicy::OFF).compression(Compression::None)
}

/// A range opens no segment that its bounds exclude, nor one before reaching it.
#[test]
fn a_range_opens_no_segment_outside_its_bounds_nor_one_too_early() {
    let dir = fast_dir();
    // None of the three is tiny: an idle store would merge those.
    let quiet = || quiet().segment_bytes(400 << 10);
    let db = quiet().open(dir.path()).unwrap();
    for part in 0..3 {
        fill(&db, part * 1000..(part + 1) * 1000);
        db.flush().unwrap();
    }
    drop(db);
    let db = quiet().open(dir.path()).unwrap();
    assert_eq!(db.stats().levels.iter().map(|level| level.segments).sum::<usize>(), 3);
    let before = db.stats().segment_opens;
    let opened = || db.stats().segment_opens - before;
    assert_eq!(db.range(key(1100)..key(1200)).count().unwrap(), 100);
    assert_eq!(opened(), 1, "two of three segments are beyond the bounds");
    let mut rows = db.range(key(500)..);
    assert_eq!(rows.next().unwrap().unwrap().0, key(500));
    assert_eq!(opened(), 2, "the last segment is not reached yet");
    assert_eq!(rows.nth(1498).unwrap().unwrap().0, key(1999));
    assert_eq!(opened(), 2);
    assert_eq!(rows.next().unwrap().unwrap().0, key(2000));
    assert_eq!(opened(), 3);
    drop((rows, db));
    let db = quiet().open(dir.path()).unwrap();
    let mut back = db.iter().keys().rev();
    assert_eq!(back.next().unwrap().unwrap(), key(2999));
    assert_eq!(back.nth(998).unwrap().unwrap(), key(2000));
    assert_eq!(db.stats().segment_opens, 1, "backwards alike");
}

#[test]
fn a_short_range_is_cached_and_a_long_one_evicts_nothing() {
    let dir = fast_dir();
    // A cache for an eighth of the rows.
    let options = || quiet().block_cache_bytes(100 << 10);
    let db = options().open(dir.path()).unwrap();
    fill(&db, 0..ROWS);
    db.compact().unwrap();
    drop(db);
    let db = options().open(dir.path()).unwrap();
    let reads = |db: &Db| db.stats().block_reads;
    let short = |db: &Db| db.range(key(100)..).take(50).count();
    assert_eq!(short(&db), 50);
    let first = reads(&db);
    assert!(first > 0);
    (0..3).for_each(|_| assert_eq!(short(&db), 50));
    assert_eq!(reads(&db), first, "the second time, everything is in the cache");
    // The walk is long before it gets near the cached rows: it begins after them.
    assert_eq!(db.range(key(2000)..).count().unwrap(), 2000);
    assert!(reads(&db) > first);
}

#[test]
fn a_scan_of_many_segments_leaves_the_full_cache_as_it_is() {
    let dir = fast_dir();
    let options =
        || quiet().residency(Residency::Pinned).segment_bytes(64 << 10).block_cache_bytes(400 << 10);
    let db = options().open(dir.path()).unwrap();
    db.ingest((0..3 * ROWS).map(|n| sidebloom::Result::Ok((key(n), n.to_be_bytes().repeat(50))))).unwrap();
    drop(db);
    let db = options().open(dir.path()).unwrap();
    assert!(db.stats().levels.iter().map(|level| level.segments).sum::<usize>() > 20);
    assert_eq!(db.iter().count().unwrap(), 3 * ROWS as u64);
    let is_cached = |n: u32| {
        let before = db.stats();
        assert!(db.get(key(n)).unwrap().is_some());
        db.stats().block_cache_hits > before.block_cache_hits
    };
    assert!(is_cached(100), "the scan filled the cache with its first rows");
    assert!(!is_cached(2 * ROWS) && !is_cached(3 * ROWS - 1), "and left it alone from then on");
}

/// An error among the rows that `nth` skips must not look like the end.
#[test]
fn i6_an_error_among_skipped_rows_is_returned() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).compression(Compression::None).open(STORE).unwrap();
    fill(&db, 0..100);
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    assert_eq!(db.iter().skip(70).count(), 30);
    drop(db);
    let db = tiny_on(&fs).block_cache_bytes(0).open(STORE).unwrap();
    for path in fs.files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "segment")) {
        fs.make_unreadable(&path, 5000..5100);
    }
    let mut rows = db.iter();
    assert!(rows.nth(99).unwrap().is_err());
    assert!(rows.next().is_none() && rows.next_back().is_none());
    let mut keys = db.iter().keys();
    assert!(keys.nth_back(99).unwrap().is_err());
    assert!(keys.next().is_none());
    let mut rows = db.iter();
    let lent = std::iter::from_fn(|| rows.next_row().map(|row| row.map(|_| ())).transpose());
    let lent: Vec<_> = lent.take(100).collect();
    assert!(lent.len() < 100 && lent.iter().filter(|row| row.is_err()).count() == 1);
    assert!(lent.last().unwrap().is_err(), "the error ends the range");
}

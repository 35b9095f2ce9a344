//! Rows deleted by many small range tombstones: they are removed like those of point tombstones, and until
//! then iterators pass them quickly.

use crate::support::fast_dir;
use sidebloom::{Batch, Compression, Db, Options};

/// Enough for a long streak of tombstones.
const PREFIXES: u32 = 9000;

fn prefix(n: u32) -> String {
    format!("user{n:05}/")
}

fn totals(db: &Db) -> (u64, u64) {
    let levels = db.stats().levels;
    (levels.iter().map(|of| of.keys).sum(), levels.iter().map(|of| of.range_tombstones).sum())
}

/// A store with one row of each prefix in its deepest level, and one after them.
fn store(dir: &std::path::Path) -> Db {
    let db = Options::new().open(dir).unwrap();
    let mut rows = Batch::new();
    (0..PREFIXES).for_each(|n| rows.put(prefix(n) + "x", "a row"));
    rows.put("zzz", "the last");
    db.write(rows).unwrap();
    db.compact().unwrap();
    assert_eq!(totals(&db), (u64::from(PREFIXES) + 1, 0));
    db
}

fn delete(db: &Db, prefixes: impl Iterator<Item = u32>) {
    let mut deleted = Batch::new();
    prefixes.for_each(|n| deleted.delete_prefix(prefix(n)));
    db.write(deleted).unwrap();
}

#[test]
fn rows_deleted_by_many_small_ranges_go_when_the_store_is_idle() {
    let dir = fast_dir();
    let db = store(dir.path());
    delete(&db, 0..PREFIXES);
    db.wait_for_compaction().unwrap();
    assert_eq!(totals(&db), (1, 0));
    assert!(db.iter().map(|row| row.unwrap().0).eq([b"zzz".to_vec()]));
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn ranges_between_rows_that_stay_are_no_long_run() {
    let dir = fast_dir();
    let db = store(dir.path());
    for n in (0..PREFIXES).step_by(100) {
        delete(&db, n..n + 100);
        db.put(prefix(n) + "new", "stays").unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    assert_eq!(totals(&db), (u64::from(PREFIXES + PREFIXES / 100) + 1, u64::from(PREFIXES)));
    assert_eq!(db.iter().count().unwrap(), u64::from(PREFIXES) / 100 + 1);
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn a_walk_passes_each_of_many_deleted_ranges_at_once() {
    let dir = fast_dir();
    let options = Options::new().compression(Compression::None).block_cache_bytes(0);
    let db = options.open(dir.path()).unwrap();
    let value = [b'v'; 4096];
    for n in 0..40 {
        (0..100).for_each(|row| db.put(format!("{}{row:02}", prefix(n)), value).unwrap());
    }
    db.compact().unwrap();
    delete(&db, 0..40);
    let before = db.stats().bytes_read;
    assert!(db.iter().next().is_none());
    let read = db.stats().bytes_read - before;
    // Attempts that get rarer with all rows passed so far read nearly everything.
    assert!(read < 100 * 40 * 4096 / 2, "{read} bytes");
}

#[test]
fn a_range_without_an_end_takes_few_bytes_of_manifest_and_segment() {
    let dir = fast_dir();
    let db = Options::new().open(dir.path()).unwrap();
    db.put("a", "stays").unwrap();
    db.put("m", "goes").unwrap();
    db.flush().unwrap();
    db.delete_range("m"..).unwrap();
    db.flush().unwrap();
    let bytes = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap());
    let large = |entry: &std::fs::DirEntry| entry.metadata().unwrap().len() > 16 << 10;
    let large: Vec<_> = bytes.filter(large).map(|entry| entry.file_name()).collect();
    assert!(large.is_empty(), "{large:?}");
    let check = |db: &Db| {
        assert!(db.iter().rev().map(|row| row.unwrap().0).eq([b"a".to_vec()]));
        assert_eq!(db.get("m").unwrap(), None);
        assert_eq!(db.get([0xff; 64]).unwrap(), None);
        assert!(db.verify().unwrap().is_ok());
    };
    check(&db);
    drop(db);
    check(&Options::new().read_only(true).open(dir.path()).unwrap());
    std::fs::remove_file(dir.path().join("MANIFEST")).unwrap();
    sidebloom::repair(dir.path()).unwrap();
    check(&Db::open(dir.path()).unwrap());
}

//! I2: if there is no memory for a filter, writes and answers stay the same, and it is built later.

use crate::allocator::{exclusive, without_filters};
use crate::support::{eventually, fast_dir};
use sidebloom::{Db, Error, FilterPolicy, Options};

const ROWS: u64 = 100_000;

fn assert_whole(db: &Db) {
    for i in (0..ROWS).step_by(7) {
        assert_eq!(db.get(i.to_be_bytes()).unwrap().as_deref(), Some(b"value".as_slice()), "{i}");
        assert!(db.get((ROWS + i).to_be_bytes()).unwrap().is_none(), "{i}");
    }
}

fn all_have_filters(db: &Db) -> bool {
    db.stats().levels.iter().all(|level| level.filters == level.segments)
}

/// A filter that lacks memory stops no write, and is built once there is memory.
#[test]
fn i2_a_filter_without_memory_stops_no_write_and_is_built_later() {
    let _exclusive = exclusive();
    let dir = fast_dir();
    // The filters of memtables stay below the limit, those of segments exceed it.
    let db = Options::new().memtable_bytes(64 << 10).open(dir.path().join("db")).unwrap();
    db.ingest((0..ROWS).map(|i| Ok((i.to_be_bytes(), b"value")))).unwrap();
    db.warm().unwrap();
    assert!(all_have_filters(&db));
    without_filters(64 << 10, || {
        let refused = db.rebuild_filters(FilterPolicy::bits_per_key(14.0)).unwrap_err();
        assert!(matches!(refused, Error::OutOfMemory { bytes } if bytes >= 64 << 10), "{refused}");
        db.put(0u64.to_be_bytes(), b"value").unwrap();
        assert_whole(&db);
        assert!(all_have_filters(&db), "the old filters stay");
        db.compact().unwrap(); // Writes a new segment, without a filter.
        assert!(!all_have_filters(&db));
        db.put(1u64.to_be_bytes(), b"value").unwrap();
        db.flush().unwrap();
        assert_whole(&db);
    });
    eventually("the filters are built", || all_have_filters(&db));
    db.put(2u64.to_be_bytes(), b"value").unwrap();
    assert_whole(&db);
    assert!(db.verify().unwrap().is_ok());
}

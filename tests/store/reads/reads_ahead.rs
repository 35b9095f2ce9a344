//! Reads started before anybody waits for them: blocks for several keys, and filters after an opening.

use crate::support::{STORE, SimFs, eventually, tiny_on};
use sidebloom::Compression;
use std::path::PathBuf;

/// `multi_get` requests the blocks of all its keys once, and no cached ones.
#[test]
fn multi_get_asks_for_all_its_blocks_once_and_for_none_that_is_cached() {
    let fs = SimFs::new();
    let options = || tiny_on(&fs).memtable_bytes(1 << 20).segment_bytes(16 << 10).block_cache_bytes(8 << 20);
    let db = options().open(STORE).unwrap();
    let key = |n: u32| format!("key {n:06}");
    (0..5_000).for_each(|n| db.put(key(n), n.to_be_bytes().repeat(10)).unwrap());
    db.compact().unwrap();
    drop(db);

    let db = options().open(STORE).unwrap();
    let keys: Vec<String> = (0..5_000).step_by(50).chain(6_000..6_050).map(key).collect();
    let expected: Vec<_> = keys.iter().map(|key| db.get(key).unwrap()).collect();
    drop(db);
    let db = options().open(STORE).unwrap();
    db.get(key(4_999)).unwrap().unwrap(); // Opens a single segment.
    assert_eq!(db.multi_get(&keys).unwrap(), expected);
    fs.take_advised("segment");
    assert_eq!(db.multi_get(&keys).unwrap(), expected);
    assert_eq!(fs.take_advised("segment"), 0, "all is cached");
    // Other blocks, of segments that are now open.
    let others: Vec<String> = (25..5_000).step_by(50).map(key).collect();
    db.multi_get(&others).unwrap().iter().for_each(|found| assert!(found.is_some()));
    let first = fs.take_advised("segment");
    assert!((30..=100).contains(&first), "asked for {first} of 100");
}

#[test]
fn after_an_opening_filters_are_read_ahead_and_every_index_is_read_once() {
    let fs = SimFs::new();
    let key = |n: u32| format!("key {n:06}");
    let db = tiny_on(&fs)
        .segment_bytes(16 << 10)
        .block_bytes(4 << 10)
        .compression(Compression::None)
        .open(STORE)
        .unwrap();
    (0..5_000).for_each(|n| db.put(key(n), n.to_be_bytes().repeat(10)).unwrap());
    db.compact().unwrap();
    drop(db);
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "segment");
    let segments = fs.files().into_iter().filter(is_segment).count();
    assert!(segments > 10, "{segments} segments");
    fs.take_advised("filter");

    let db = tiny_on(&fs).block_cache_bytes(8 << 20).read_only(true).open(STORE).unwrap();
    eventually("the indexes are in memory", || db.stats().block_reads == segments as u64);
    assert_eq!(fs.take_advised("filter"), segments - 5, "none before the fifth check");
    for n in (0..5_000).step_by(500) {
        let before = db.stats().block_reads;
        assert!(db.get(key(n)).unwrap().is_some());
        assert!(db.stats().block_reads <= before + 1, "data alone");
    }
}

#[test]
fn without_a_block_cache_a_found_key_reads_one_block() {
    let fs = SimFs::new();
    let options = || {
        let options = tiny_on(&fs).memtable_bytes(1 << 20).segment_bytes(16 << 10);
        options.block_cache_bytes(0).max_open_files(256)
    };
    let key = |n: u32| format!("key {n:06}");
    let db = options().open(STORE).unwrap();
    (0..5_000).for_each(|n| db.put(key(n), n.to_be_bytes().repeat(10)).unwrap());
    db.compact().unwrap();
    drop(db);
    let db = options().open(STORE).unwrap();
    db.warm().unwrap();
    // A background thread may still be reading an index.
    eventually("100 keys read 100 blocks", || {
        let before = db.stats().block_reads;
        (0..5_000).step_by(50).for_each(|n| assert!(db.get(key(n)).unwrap().is_some()));
        db.stats().block_reads - before == 100
    });
}

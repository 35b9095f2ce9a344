//! A read of several keys starts the reads of all of them before it waits for the second.

use crate::support::{STORE, SimFs, tiny_on};

#[test]
fn multi_get_asks_for_the_blocks_of_all_its_keys_once_and_for_none_that_is_cached() {
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
    db.get(key(4_999)).unwrap().unwrap(); // Opens a segment, and no other one.
    assert_eq!(db.multi_get(&keys).unwrap(), expected);
    fs.take_advised();
    assert_eq!(db.multi_get(&keys).unwrap(), expected);
    assert_eq!(fs.take_advised(), 0, "all is cached");
    // Other blocks, of segments that are open by now.
    let others: Vec<String> = (25..5_000).step_by(50).map(key).collect();
    db.multi_get(&others).unwrap().iter().for_each(|found| assert!(found.is_some()));
    let first = fs.take_advised();
    assert!((30..=100).contains(&first), "asked for {first} of 100");
}

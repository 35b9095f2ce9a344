//! The store's filter bits go to the keyspaces in which keys are missing.

use crate::support::{fast_dir, tiny};
use sidebloom::{Db, Keyspace, KeyspaceOptions};

const ROWS: u32 = 10_000;

fn key(n: u32) -> [u8; 12] {
    let mut key = *b"key-....-key";
    key[4..8].copy_from_slice(&n.to_be_bytes());
    key
}

fn bits_per_key(keyspace: &Keyspace) -> f64 {
    let stats = keyspace.stats().unwrap();
    assert_eq!(stats.filters, stats.segments, "{stats:?}");
    8.0 * stats.filter_bytes as f64 / stats.keys as f64
}

fn miss(db: &Db, keyspace: &Keyspace, lookups: u32) {
    for n in 0..lookups {
        let missing = [key(n % (ROWS - 1)).as_slice(), &n.to_be_bytes()].concat();
        assert!(keyspace.get(missing).unwrap().is_none());
    }
    db.wait_for_compaction().unwrap();
}

#[test]
fn a_keyspace_with_more_misses_gets_wider_filters_from_the_others() {
    let dir = fast_dir();
    let db = tiny().segment_bytes(256 << 10).memtable_bytes(1 << 20).open(dir.path()).unwrap();
    let create = |name| db.create_keyspace(name, KeyspaceOptions::new()).unwrap();
    let (seen, users) = (create("seen"), create("users"));
    for keyspace in [&seen, &users] {
        (0..ROWS).for_each(|n| keyspace.put(key(n), [b'x'; 50]).unwrap());
    }
    db.compact().unwrap();
    let even = [&seen, &users].map(bits_per_key);
    assert!(even.iter().all(|bits| (9.0..11.5).contains(bits)), "{even:?} bits per key");
    // Found keys ask for nothing.
    (0..3).for_each(|_| (0..ROWS).for_each(|n| assert!(users.get(key(n)).unwrap().is_some())));
    miss(&db, &seen, 400_000);
    let [wide, narrow] = [&seen, &users].map(bits_per_key);
    assert!(
        wide > narrow + 1.5 && wide + narrow < even[0] + even[1] + 1.0,
        "{wide} and {narrow} bits per key"
    );
    // What is written from now on, too.
    for keyspace in [&seen, &users] {
        (0..ROWS).for_each(|n| keyspace.put(key(n), [b'y'; 50]).unwrap());
    }
    db.compact().unwrap();
    let [wide, narrow] = [&seen, &users].map(bits_per_key);
    assert!(wide > narrow + 1.5, "{wide} and {narrow} bits per key");
    for keyspace in [&seen, &users] {
        assert_eq!(keyspace.iter().count().unwrap(), u64::from(ROWS));
    }
    assert!(db.verify().unwrap().is_ok());
}

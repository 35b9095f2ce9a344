//! The key hash is chosen when a store is created, stays with it, and changes no answer.

use sidebloom::{Db, KeyHash, Options};
use std::path::Path;

const KEYS: u32 = 5000;

fn open(path: &Path, key_hash: KeyHash) -> Db {
    let db = Options::new().key_hash(key_hash).memtable_bytes(64 << 10).segment_bytes(64 << 10).open(path);
    let db = db.unwrap();
    db.warm().unwrap();
    db
}

fn check(db: &Db, key_hash: KeyHash) {
    assert_eq!(db.stats().key_hash, key_hash);
    let before = db.stats();
    for i in 0..KEYS {
        assert_eq!(db.get(format!("key {i}")).unwrap().unwrap(), i.to_le_bytes());
        assert!(db.get(format!("key {i}?")).unwrap().is_none());
    }
    let after = db.stats();
    assert_eq!(after.filters_unavailable, 0, "every sidecar fits its segment");
    assert!(after.filter_negatives - before.filter_negatives > u64::from(KEYS) / 2, "the filters answer");
}

/// A store keeps its key hash for life, even through a repair without a manifest.
#[test]
fn a_store_keeps_the_hash_it_was_created_with_also_through_a_repair() {
    for [created, other] in [[KeyHash::Xxh3, KeyHash::SipHash13], [KeyHash::SipHash13, KeyHash::Xxh3]] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let db = open(&path, created);
        (0..KEYS).for_each(|i| db.put(format!("key {i}"), i.to_le_bytes()).unwrap());
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
        check(&db, created);
        drop(db);
        check(&open(&path, other), created);
        std::fs::remove_file(path.join("MANIFEST")).unwrap();
        sidebloom::repair(&path).unwrap();
        let db = open(&path, other);
        check(&db, created);
        assert!(db.verify().unwrap().is_ok());
    }
}

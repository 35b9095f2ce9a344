//! The cache, the threads and the durability.

use crate::support::{OpKind, STORE, SimFs, eventually, fast_dir, tiny_on};
use sidebloom::{Batch, Compression, Db, Durability, OptionChanges, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

fn changes() -> OptionChanges {
    OptionChanges::new()
}

fn key(n: u32) -> String {
    format!("key {n:05}")
}

fn value(n: u32) -> Vec<u8> {
    format!("value {n} ").repeat(20).into_bytes()
}

#[test]
fn i12_the_cache_shrinks_at_once_and_answers_stay_right_under_readers() {
    let dir = fast_dir();
    let options = Options::new().compression(Compression::Lz4).block_cache_bytes(16 << 20);
    let db = options.open(dir.path()).unwrap();
    (0..20_000).for_each(|n| db.put(key(n), value(n)).unwrap());
    db.compact().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for first in 0..3u32 {
            let (db, done) = (&db, &done);
            scope.spawn(move || {
                for n in (first..20_000).step_by(7).cycle().take_while(|_| !done.load(Relaxed)) {
                    assert_eq!(db.get(key(n)).unwrap().as_deref(), Some(&*value(n)), "{n}");
                }
            });
        }
        for round in 0..10 {
            eventually("readers fill it", || db.stats().block_cache_bytes > 2 << 20);
            for bytes in [1 << 20, 100 << 10, 4096] {
                db.set_options(changes().block_cache_bytes(bytes)).unwrap();
                let stats = db.stats();
                assert_eq!(stats.block_cache_capacity, bytes);
                // Its locks share the bytes, and each rounds up.
                assert!(stats.block_cache_bytes <= bytes + 256, "{} of {bytes}", stats.block_cache_bytes);
            }
            if round % 2 == 0 {
                db.set_options(changes().block_cache_bytes(0)).unwrap();
                let stats = db.stats();
                assert_eq!(stats.block_cache_capacity, 0);
                // A reader puts its block there and takes it back.
                assert!(stats.block_cache_bytes < 64 << 10, "{}", stats.block_cache_bytes);
            }
            db.set_options(changes().block_cache_bytes(16 << 20)).unwrap();
        }
        done.store(true, Relaxed);
    });
    db.set_options(changes().block_cache_bytes(0)).unwrap();
    let reads = || db.stats().block_reads;
    let (before, _) = (reads(), db.get(key(7)).unwrap());
    let (once, _) = (reads(), db.get(key(7)).unwrap());
    assert!(db.stats().block_cache_bytes == 0 && once > before && reads() > once, "each get reads");
}

/// How many syncs of the disk an operation costs.
fn syncs_of(syncs: &AtomicU64, operation: impl FnOnce()) -> u64 {
    let before = syncs.load(Relaxed);
    operation();
    syncs.load(Relaxed) - before
}

#[test]
fn i4_durability_changes_for_the_commits_that_begin_afterwards() {
    let (fs, syncs) = (SimFs::new(), Arc::new(AtomicU64::new(0)));
    let counter = Arc::clone(&syncs);
    fs.before_each(move |_, kind, _| _ = counter.fetch_add((kind == OpKind::Sync).into(), Relaxed));
    let db = tiny_on(&fs).memtable_bytes(1 << 20).open(STORE).unwrap();
    db.create_keyspace("other", sidebloom::KeyspaceOptions::new()).unwrap();
    let other = db.keyspace("other").unwrap();
    let commits: [(&str, &dyn Fn()); 5] = [
        ("put", &|| db.put("a", "1").unwrap()),
        ("in a keyspace", &|| other.put("a", "1").unwrap()),
        ("insert_new", &|| assert!(db.insert_new(format!("b{}", fs.writes()), "1").unwrap())),
        ("a transaction", &|| {
            let transaction = db.transaction();
            transaction.put("c", "1").unwrap();
            transaction.commit().unwrap();
        }),
        ("with its own durability", &|| {
            let mut batch = Batch::new();
            batch.put("d", "1");
            db.write_with(batch, Durability::Sync).unwrap();
        }),
    ];
    for durability in [Durability::Os, Durability::Sync, Durability::Os, Durability::Sync] {
        db.set_options(changes().durability(durability)).unwrap();
        assert_eq!(db.stats().durability, durability);
        for (what, commit) in commits {
            let syncs_always = what == "with its own durability";
            let expected = u64::from(durability == Durability::Sync || syncs_always);
            assert_eq!(syncs_of(&syncs, commit), expected, "{what} with {durability:?}");
        }
    }
}

#[test]
fn nothing_is_stored_and_the_next_open_uses_its_own_options() {
    let dir = fast_dir();
    let db = Db::open(dir.path()).unwrap();
    let all = changes().background_threads(5).block_cache_bytes(1 << 20).durability(Durability::Sync);
    db.set_options(all.compaction_bytes_per_second(1 << 20)).unwrap();
    let stats = db.stats();
    let in_force = (stats.background_threads, stats.block_cache_capacity, stats.compaction_bytes_per_second);
    assert_eq!(in_force, (5, 1 << 20, 1 << 20));
    db.close().unwrap();
    let stats = Db::open(dir.path()).unwrap().stats();
    let in_force = (stats.background_threads, stats.block_cache_capacity, stats.compaction_bytes_per_second);
    assert_eq!((in_force, stats.durability), ((2, 256 << 20, 0), Durability::Os));
}

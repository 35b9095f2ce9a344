//! Changes from several threads, under readers and writers.

use crate::support::{Rng, fast_dir, promptly, tiny};
use sidebloom::{Durability, FilterPolicy, OptionChanges};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

fn random(rng: &mut Rng) -> OptionChanges {
    let mut changes = OptionChanges::new();
    if rng.percent(50) {
        changes = changes.block_cache_bytes(*rng.pick(&[0, 4096, 64 << 10, 8 << 20]));
    }
    if rng.percent(50) {
        changes = changes.background_threads(*rng.pick(&[2, 2, 3, 4, 16]));
    }
    if rng.percent(50) {
        changes = changes.compaction_bytes_per_second(*rng.pick(&[0, 64 << 10, 4 << 20]));
    }
    if rng.percent(50) {
        changes = changes.durability(*rng.pick(&[Durability::Os, Durability::Sync]));
    }
    if rng.percent(50) {
        changes = changes.filter_policy(FilterPolicy::bits_per_key(2.0 + rng.below(18) as f64));
    }
    changes
}

#[test]
fn four_threads_change_options_under_readers_and_writers() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    let key = |n: u32| n.wrapping_mul(0x9e37_79b9).to_be_bytes();
    promptly("all of them", move || {
        let written = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let db = &db;
                scope.spawn(move || {
                    let mut rng = Rng::new(seed);
                    (0..150).for_each(|_| db.set_options(random(&mut rng)).unwrap());
                });
            }
            scope.spawn(|| {
                for n in 0..6000 {
                    db.put(key(n), n.to_le_bytes()).unwrap();
                    written.store(n + 1, SeqCst);
                }
            });
            for seed in 0..2 {
                let (db, written) = (&db, &written);
                scope.spawn(move || {
                    let mut rng = Rng::new(100 + seed);
                    while written.load(SeqCst) < 6000 {
                        let n = rng.below(6000) as u32;
                        let is_there = n < written.load(SeqCst);
                        let found = db.get(key(n)).unwrap();
                        assert!(found.is_none_or(|value| *value == n.to_le_bytes()), "{n}");
                        assert!(!is_there || db.contains_key(key(n)).unwrap(), "{n}");
                    }
                });
            }
        });
        db.set_options(OptionChanges::new().background_threads(2).compaction_bytes_per_second(0)).unwrap();
        db.wait_for_compaction().unwrap();
        assert_eq!(db.iter().count().unwrap(), 6000);
        assert!(db.verify().unwrap().is_ok());
        db.close().unwrap();
    });
}

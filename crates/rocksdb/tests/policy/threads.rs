//! Concurrent reads, writes, flushes and compactions.

use crate::support::{Store, key, value};
use rocksdb::BlockBasedOptions;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn i1_eight_threads_find_every_key_while_files_come_and_go() {
    for partitions in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let mut table = BlockBasedOptions::default();
        table.set_optimize_filters_for_memory(partitions);
        if partitions {
            table.set_partition_filters(true);
            table.set_index_type(rocksdb::BlockBasedIndexType::TwoLevelIndexSearch);
            table.set_metadata_block_size(512);
        }
        // Small enough that filter blocks leave the cache and come back.
        table.set_block_cache(&rocksdb::Cache::new_lru_cache(64 << 10));
        table.set_cache_index_and_filter_blocks(true);
        let store = Store::with_table(dir.path(), &table, "sidebloom.parity:auto:9");
        store.put(0..20_000);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..7 {
                let (store, done) = (&store, &done);
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(thread);
                    while !done.load(Ordering::Relaxed) {
                        let numbers: Vec<u32> = (0..32).map(|_| rng.u32(0..20_000)).collect();
                        let column = store.db.cf_handle("default").unwrap();
                        let keys: Vec<_> = numbers.iter().map(|&number| key(number)).collect();
                        let found = store.db.batched_multi_get_cf(column, &keys, false);
                        for (found, &number) in found.into_iter().zip(&numbers) {
                            assert_eq!(found.unwrap().map(|found| found.to_vec()), value(number));
                        }
                        assert_eq!(store.db.get(keys[0]).unwrap(), value(numbers[0]));
                    }
                });
            }
            for round in 0..30 {
                store.put(round * 700..round * 700 + 2_000);
                if round % 5 == 4 {
                    store.compact();
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        store.check(0..20_000);
    }
}

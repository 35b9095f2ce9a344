//! Filters in partitions: one block for each part of a file's keys.

use crate::support::{Store, sst_files};
use rocksdb::{BlockBasedIndexType, BlockBasedOptions};

fn table(partition_bytes: usize) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    table.set_partition_filters(true);
    table.set_metadata_block_size(partition_bytes);
    table
}

#[test]
fn i1_partitions_of_every_size_find_their_keys_and_deny_others() {
    // Less than the smallest filter, one line, the default, and all keys in one.
    for partition_bytes in [1, 100, 170, 500, 4_096, 1 << 20] {
        for decoupled in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let mut options = crate::support::options_of(&table(partition_bytes), "sidebloom.parity:8");
            if decoupled {
                let text = "block_based_table_factory={decouple_partitioned_filters=true}";
                options = options.get_options_from_string(text).unwrap();
                options.enable_statistics();
            }
            let store = Store::with_options(dir.path(), options);
            store.put(0..40_000);
            store.compact();
            store.check(0..40_000);
            let (asked, maybe) = store.misses(0..40_000);
            assert!(asked >= 19_990, "{partition_bytes}: {asked}");
            assert!(maybe < asked / 150, "{partition_bytes}: {maybe} of {asked}");
            assert_eq!(sst_files(dir.path()).len(), 1);
        }
    }
}

/// A partition's trailer, padding and rounding are a larger share of a small filter.
#[test]
fn default_partitions_cost_few_more_bits() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::with_table(dir.path(), &table(4_096), "sidebloom.parity:8");
    store.put(0..400_000);
    store.compact();
    let bits = store.bits_per_key(200_000);
    assert!((8.85..=9.6).contains(&bits), "{bits}");
}

//! Random operations on databases with random options, compared with a map.

use crate::support::{Store, options_of};
use fastrand::Rng;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, ChecksumType, DBCompressionType, Options, SliceTransform,
};
use std::collections::BTreeMap;

const POLICIES: [&str; 9] = [
    "sidebloom.parity:7",
    "sidebloom.parity:8",
    "sidebloom.parity:9",
    "sidebloom.parity:12",
    "sidebloom.parity:16",
    "sidebloom.parity:auto:8.1",
    "sidebloom.parity:auto:16",
    "bloomfilter:10",
    "",
];

fn table(rng: &mut Rng) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_whole_key_filtering(rng.u8(..4) > 0);
    table.set_cache_index_and_filter_blocks(rng.bool());
    table.set_optimize_filters_for_memory(rng.bool());
    table.set_block_size(rng.usize(100..8_000));
    table.set_format_version(rng.i32(5..=6));
    if rng.bool() {
        table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
        table.set_partition_filters(true);
        table.set_metadata_block_size(1 << rng.u32(4..14));
    }
    if rng.bool() {
        table.set_checksum_type(ChecksumType::NoChecksum);
    }
    table.set_block_cache(&rocksdb::Cache::new_lru_cache(1 << rng.u32(12..24)));
    table
}

fn options(rng: &mut Rng) -> Options {
    let policy = POLICIES[rng.usize(..POLICIES.len())];
    let mut options = options_of(&table(rng), policy);
    if rng.bool() {
        let text = "block_based_table_factory={detect_filter_construct_corruption=true}";
        options = options.get_options_from_string(text).unwrap();
        options.enable_statistics();
    }
    match rng.u8(..4) {
        0 => options.set_prefix_extractor(SliceTransform::create_fixed_prefix(rng.usize(0..6))),
        1 => options.set_prefix_extractor(SliceTransform::create_noop()),
        _ => {}
    }
    options.set_compression_type(if rng.bool() { DBCompressionType::Lz4 } else { DBCompressionType::None });
    options.set_write_buffer_size(1 << rng.u32(16..20));
    options.set_target_file_size_base(1 << rng.u32(14..18));
    options.set_max_subcompactions(rng.u32(1..3));
    options.set_allow_mmap_reads(rng.u8(..4) == 0);
    options.set_memtable_prefix_bloom_ratio(if rng.bool() { 0.1 } else { 0.0 });
    options.set_optimize_filters_for_hits(rng.u8(..4) == 0);
    match rng.u8(..6) {
        0 => options.set_compaction_style(rocksdb::DBCompactionStyle::Universal),
        1 => options.set_level_compaction_dynamic_level_bytes(false),
        _ => {}
    }
    options
}

/// Few lengths and few byte values, so that keys repeat and are prefixes of each other.
fn key(rng: &mut Rng) -> Vec<u8> {
    let length = [0, 1, 3, 6, 8, 40, 300][rng.usize(..7)];
    (0..length).map(|at| if at < 2 { rng.u8(..6) } else { rng.u8(..3) }).collect()
}

fn check(store: &Store, model: &BTreeMap<Vec<u8>, Vec<u8>>, rng: &mut Rng, what: &str) {
    let mut keys: Vec<Vec<u8>> = (0..40).map(|_| key(rng)).collect();
    keys.extend(model.keys().skip(rng.usize(..model.len().max(1))).take(30).cloned());
    let column = store.db.cf_handle("default").unwrap();
    let sorted = rng.bool();
    if sorted {
        keys.sort();
    }
    let found = store.db.batched_multi_get_cf(column, &keys, sorted);
    for (key, found) in keys.iter().zip(found) {
        assert_eq!(found.unwrap().as_deref(), model.get(key).map(Vec::as_slice), "{what}: {key:?}");
        assert_eq!(store.db.get(key).unwrap().as_ref(), model.get(key), "{what}: {key:?}");
    }
}

fn run(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let dir = tempfile::tempdir().unwrap();
    let mut model = BTreeMap::new();
    for opening in 0..5 {
        let what = format!("seed {seed}, opening {opening}");
        let store = Store::with_options(dir.path(), options(&mut rng));
        check(&store, &model, &mut rng, &what);
        for _ in 0..rng.u32(1..12) {
            match rng.u8(..10) {
                0..=4 => {
                    for _ in 0..rng.u32(1..800) {
                        let key = key(&mut rng);
                        let value: Vec<u8> = (0..rng.usize(..60)).map(|_| rng.u8(..)).collect();
                        store.db.put(&key, &value).unwrap();
                        model.insert(key, value);
                    }
                }
                5 => {
                    for _ in 0..rng.u32(1..200) {
                        let key = key(&mut rng);
                        store.db.delete(&key).unwrap();
                        model.remove(&key);
                    }
                }
                6 => {
                    let (from, to) = (key(&mut rng), key(&mut rng));
                    let (from, to) = if from < to { (from, to) } else { (to, from) };
                    let column = store.db.cf_handle("default").unwrap();
                    store.db.delete_range_cf(column, &from, &to).unwrap();
                    model.retain(|key, _| *key < from || *key >= to);
                }
                7 | 8 => store.db.flush().unwrap(),
                _ => store.compact(),
            }
            check(&store, &model, &mut rng, &what);
        }
        let mut read = rocksdb::ReadOptions::default();
        read.set_total_order_seek(true);
        let rows = store.db.iterator_opt(rocksdb::IteratorMode::Start, read);
        let rows: Vec<_> =
            rows.map(|row| row.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        assert!(rows.iter().map(|(key, value)| (key, value)).eq(model.iter()), "{what}");
    }
}

#[test]
fn i1_random_operations_under_random_options_agree_with_a_map() {
    let long = std::env::var_os("SIDEBLOOM_TEST_LONG").is_some();
    for seed in 0..if long { 600 } else { 60 } {
        run(seed);
    }
}

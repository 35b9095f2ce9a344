//! Prefix extractors: filters have the keys, their prefixes, or both.

use crate::support::{Store, key, options_of};
use rocksdb::statistics::Ticker;
use rocksdb::{BlockBasedOptions, Options, ReadOptions, SliceTransform};

fn options(whole_keys: bool, partitions: bool) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_whole_key_filtering(whole_keys);
    if partitions {
        table.set_index_type(rocksdb::BlockBasedIndexType::TwoLevelIndexSearch);
        table.set_partition_filters(true);
        table.set_metadata_block_size(300);
    }
    let mut options = options_of(&table, "sidebloom.parity:9");
    // The first eight bytes of a key are constant, the next four its number divided by 100.
    options.set_prefix_extractor(SliceTransform::create_fixed_prefix(12));
    options
}

#[test]
fn i1_prefixes_that_exist_are_found_and_others_denied() {
    for (whole_keys, partitions) in [(true, false), (false, false), (true, true), (false, true)] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::with_options(dir.path(), options(whole_keys, partitions));
        // Prefixes with an even number have keys, others have none.
        for hundred in (0..200u32).step_by(2) {
            for number in (hundred * 100..(hundred + 1) * 100).step_by(2) {
                store.db.put(key(number), number.to_be_bytes()).unwrap();
            }
        }
        store.db.flush().unwrap();
        store.compact();
        let before =
            store.ticker(Ticker::NonLastLevelSeekFiltered) + store.ticker(Ticker::LastLevelSeekFiltered);
        for hundred in 0..199u32 {
            let mut read = ReadOptions::default();
            read.set_prefix_same_as_start(true);
            let mut rows = store.db.raw_iterator_opt(read);
            rows.seek(&key(hundred * 100)[..12]);
            let mut count = 0;
            while rows.valid() && count < 1_000 {
                count += 1;
                rows.next();
            }
            rows.status().unwrap();
            assert_eq!(count, if hundred % 2 == 0 { 50 } else { 0 }, "{hundred}, {whole_keys}, {partitions}");
        }
        let filtered = store.ticker(Ticker::NonLastLevelSeekFiltered)
            + store.ticker(Ticker::LastLevelSeekFiltered)
            - before;
        assert!(filtered >= 95, "{filtered} of 99 absent prefixes were denied, {whole_keys}, {partitions}");
        for number in 0..20_000 {
            let found = store.db.get(key(number)).unwrap();
            assert_eq!(found.is_some(), number / 100 % 2 == 0 && number % 2 == 0, "{number}");
        }
    }
}

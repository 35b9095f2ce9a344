//! Policy strings: in options, in options files, and wrong ones.

use crate::support::{PARITY, Store};
use rocksdb::{BlockBasedOptions, Cache, DB, Env, Options};
use sidebloom_rocksdb::Policy;

#[test]
fn the_policy_stands_in_the_options_file_and_is_read_from_it() {
    let dir = tempfile::tempdir().unwrap();
    for (policy, stored) in [
        (PARITY, "sidebloom.parity:8"),
        ("sidebloom.parity", "sidebloom.parity:8"),
        ("sidebloom.parity:auto=9.5", "sidebloom.parity:auto:9.5"),
        ("sidebloom.parity:auto", "sidebloom.parity:auto:10"),
        ("{id=sidebloom.parity:auto=9.5}", "sidebloom.parity:auto:9.5"),
    ] {
        Store::open(dir.path(), policy).put(0..1_000);
        let (options, columns) =
            Options::load_latest(dir.path(), Env::new().unwrap(), false, Cache::new_lru_cache(1 << 20))
                .unwrap();
        let newest = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let newest = newest.filter(|path| path.to_str().unwrap().contains("OPTIONS-")).max().unwrap();
        let text = std::fs::read_to_string(newest).unwrap();
        assert!(
            text.lines().any(|line| line.trim() == format!("filter_policy={stored}")),
            "{policy}: {text}"
        );
        let db = DB::open_cf_descriptors(&options, dir.path(), columns).unwrap();
        assert_eq!(db.get(crate::support::key(2)).unwrap().unwrap(), 2u32.to_be_bytes());
    }
}

#[test]
fn options_keep_the_table_that_they_are_given() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = BlockBasedOptions::default();
    table.set_block_size(12_345);
    table.set_format_version(6);
    let mut options = sidebloom_rocksdb::options(&table, "sidebloom.parity:9".parse().unwrap()).unwrap();
    options.create_if_missing(true);
    DB::open(&options, dir.path()).unwrap();
    let log = std::fs::read_to_string(dir.path().join("LOG")).unwrap();
    for line in ["filter_policy: sidebloom.parity", "block_size: 12345", "format_version: 6"] {
        assert!(log.contains(line), "{line} is not in {log}");
    }
}

#[test]
fn a_wrong_policy_string_says_what_to_use() {
    sidebloom_rocksdb::register().unwrap();
    for junk in
        ["sidebloom.parity:13", "sidebloom.parity:8:9", "sidebloom.parity:auto:99", "sidebloom.parity:"]
    {
        let error = Options::default()
            .get_options_from_string(format!("block_based_table_factory={{filter_policy={junk}}}"))
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(junk) && error.contains("7, 8, 9, 10, 11, 12, 16 lanes"), "{error}");
        assert!(junk.parse::<Policy>().unwrap_err().to_string().contains(junk));
    }
}

#[test]
fn registering_again_does_nothing() {
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(sidebloom_rocksdb::register)).collect();
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
}

/// RocksDB can change the policy of an open database; new files follow it.
#[test]
fn an_open_database_takes_another_policy() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), PARITY);
    store.put(0..20_000);
    store.db.set_options(&[("block_based_table_factory", "{filter_policy=sidebloom.parity:12}")]).unwrap();
    store.put(20_000..40_000);
    store.compact();
    let bits = store.bits_per_key(20_000);
    assert!(bits > 13.0, "{bits}");
    store.check(0..40_000);
}

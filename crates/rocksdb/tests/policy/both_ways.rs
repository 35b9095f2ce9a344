//! A store switches from RocksDB's own policy to parity filters and back, with the same answers.

use crate::support::{PARITY, Store};

const BLOOM: &str = "bloomfilter:10";

#[test]
fn i1_answers_stay_the_same_under_every_policy() {
    let dir = tempfile::tempdir().unwrap();
    let policies =
        [BLOOM, PARITY, "ribbonfilter:10", "sidebloom.parity:auto:10", "", "sidebloom.parity:12", BLOOM];
    for (round, policy) in (0..).zip(policies) {
        let store = Store::open(dir.path(), policy);
        store.check(0..round * 3_000);
        store.put(round * 3_000..(round + 1) * 3_000);
        store.check(0..(round + 1) * 3_000);
    }
    for policy in policies {
        let store = Store::open(dir.path(), policy);
        store.check(0..21_000);
        store.compact();
        store.check(0..21_000);
    }
}

/// RocksDB finds a filter by its policy's name, so files of another policy have none until compacted.
#[test]
fn old_files_run_unfiltered_until_compaction() {
    let dir = tempfile::tempdir().unwrap();
    for (old, new) in [(BLOOM, PARITY), (PARITY, BLOOM)] {
        let store = Store::open(dir.path(), old);
        store.put(0..20_000);
        store.compact();
        assert!(store.misses(0..20_000).0 >= 9_999, "{old} filters its own files");
        drop(store);
        let store = Store::open(dir.path(), new);
        assert_eq!(store.misses(0..20_000), (0, 0), "{new} asks no filter of {old}");
        store.put(20_000..40_000);
        assert!(store.misses(20_000..40_000).0 >= 9_999, "but those of new files");
        store.check(0..40_000);
        store.compact();
        let (asked, maybe) = store.misses(0..40_000);
        assert!(asked >= 19_999 && maybe < asked / 50, "{new}: {maybe} of {asked}");
        store.check(0..40_000);
    }
}

/// A file of one width is readable under the policy of any other: each filter block has its width.
#[test]
fn every_width_reads_the_filters_of_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), "sidebloom.parity:7");
    store.put(0..20_000);
    store.compact();
    drop(store);
    for policy in
        ["sidebloom.parity", "sidebloom.parity:12", "sidebloom.parity:16", "sidebloom.parity:auto:9"]
    {
        let store = Store::open(dir.path(), policy);
        assert!(store.misses(0..20_000).0 >= 9_999);
        store.check(0..20_000);
    }
}

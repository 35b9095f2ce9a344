//! A policy that changes while the store is open acts as if the store was opened again with it.

use crate::support::{Contents, Rng, assert_holds, copy_store, fast_dir};
use sidebloom::{Compression, Db, FilterPolicy, KeyspaceOptions, OptionChanges, Options};
use std::path::Path;

fn options(policy: FilterPolicy) -> Options {
    Options::new().compression(Compression::None).segment_bytes(256 << 10).filter_policy(policy)
}

/// The sizes of all filters of a store, by the numbers of their files.
fn filters(dir: &Path) -> Vec<u64> {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let mut filters: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "filter")).collect();
    filters.sort();
    filters.iter().map(|path| std::fs::metadata(path).unwrap().len()).collect()
}

/// Writes rows to the default keyspace, one that follows the store's policy, and one with its own.
fn write(db: &Db, expected: &mut Contents, seed: u64) {
    let mut rng = Rng::new(seed);
    let keyspaces = ["follows", "own"].map(|name| db.keyspace(name).unwrap());
    for _ in 0..3000 {
        let (key, value) = (rng.next().to_be_bytes().to_vec(), rng.next().to_le_bytes().to_vec());
        db.put(&key, &value).unwrap();
        keyspaces.iter().for_each(|keyspace| keyspace.put(&key, &value).unwrap());
        expected.insert(key, value);
    }
    db.flush().unwrap();
}

fn create(dir: &Path, policy: FilterPolicy) -> Db {
    let db = options(policy).open(dir).unwrap();
    let own = KeyspaceOptions::new().filter_policy(FilterPolicy::blocked_bloom(12.0));
    db.create_keyspace("follows", KeyspaceOptions::new()).unwrap();
    db.create_keyspace("own", own).unwrap();
    db
}

#[test]
fn a_changed_policy_acts_as_a_reopened_store_does() {
    // These give all segments the same filters. Others choose one of two by the numbers of the files, which
    // another opening changes.
    let (narrowest, widest) = (FilterPolicy::bits_per_key(2.0), FilterPolicy::bits_per_key(64.0));
    let policies = [
        (narrowest, widest),
        (widest, FilterPolicy::blocked_bloom(8.0)),
        (FilterPolicy::blocked_bloom(10.0), FilterPolicy::blocked_bloom(16.0)),
        (widest, FilterPolicy::memory_budget(0)),
    ];
    for (before, after) in policies {
        let [changed, reopened] = [fast_dir(), fast_dir()];
        let mut changed_rows = Contents::new();
        let changed_db = create(changed.path(), before);
        changed_db.close().unwrap();
        // A copy hashes keys as the original does, so its filters have the same sizes.
        let copy = reopened.path().join("copy");
        copy_store(changed.path(), &copy);
        let [changed_db, reopened_db] = [changed.path(), &copy].map(|dir| options(before).open(dir).unwrap());
        write(&changed_db, &mut changed_rows, 1);
        write(&reopened_db, &mut Contents::new(), 1);
        [&changed_db, &reopened_db].iter().for_each(|db| db.compact().unwrap());
        let old = filters(changed.path());
        changed_db.set_options(OptionChanges::new().filter_policy(after)).unwrap();
        reopened_db.close().unwrap();
        let reopened_db = options(after).open(&copy).unwrap();
        let both_have_the_same = |what: &str| {
            let [changed, reopened] = [changed.path(), &copy].map(filters);
            assert_eq!(changed, reopened, "{what}: from {before:?} to {after:?}");
            changed
        };
        assert_eq!(both_have_the_same("at once"), old);
        let rest = || [&changed_db, &reopened_db].iter().for_each(|db| db.wait_for_compaction().unwrap());
        rest(); // An idle store replaces filters, but only of what it has written under this policy.
        assert_eq!(both_have_the_same("at rest"), old);
        write(&changed_db, &mut changed_rows, 2);
        write(&reopened_db, &mut Contents::new(), 2);
        let new = both_have_the_same("after a flush");
        assert_eq!(new[..old.len()], old, "the old ones stay");
        let policies = format!("from {before:?} to {after:?}");
        assert_ne!(new[old.len()..], old, "the new ones follow the new policy: {policies}");
        [&changed_db, &reopened_db].iter().for_each(|db| db.compact().unwrap());
        rest();
        assert_ne!(both_have_the_same("after a compaction"), old, "{policies}");
        assert_holds(&changed_db, &changed_rows);
        for name in ["follows", "own"] {
            let keyspace = changed_db.keyspace(name).unwrap();
            assert!(changed_rows.keys().all(|key| keyspace.contains_key(key).unwrap()));
        }
        assert!(changed_db.verify().unwrap().is_ok());
    }
}

/// I3: the old filters follow when somebody asks for that.
#[test]
fn i3_rebuilding_filters_after_a_changed_policy_rewrites_no_segment() {
    let dir = fast_dir();
    let (before, after) = (FilterPolicy::bits_per_key(8.0), FilterPolicy::bits_per_key(16.0));
    let (db, mut rows) = (create(dir.path(), before), Contents::new());
    write(&db, &mut rows, 1);
    db.set_options(OptionChanges::new().filter_policy(after)).unwrap();
    let (old, written) = (filters(dir.path()), db.stats().compaction_bytes);
    let report = db.rebuild_filters(after).unwrap();
    assert!(report.segments > 0 && filters(dir.path()).iter().sum::<u64>() > old.iter().sum());
    assert_eq!(db.stats().compaction_bytes, written);
    assert_holds(&db, &rows);
}

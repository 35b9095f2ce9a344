//! What `set_options` refuses changes nothing.

use crate::support::{fast_dir, tiny};
use sidebloom::{Db, Durability, Error, FilterPolicy, OptionChanges, Options, Stats};

fn in_force(stats: &Stats) -> (u64, u64, u64, Durability) {
    let Stats { background_threads, compaction_bytes_per_second, .. } = stats;
    (stats.block_cache_capacity, *background_threads, *compaction_bytes_per_second, stats.durability)
}

/// Changes of everything, to values that are not the defaults.
fn valid() -> OptionChanges {
    OptionChanges::new()
        .block_cache_bytes(12345)
        .background_threads(7)
        .compaction_bytes_per_second(1 << 20)
        .durability(Durability::Sync)
        .filter_policy(FilterPolicy::bits_per_key(7.0))
}

#[test]
fn invalid_changes_change_nothing_and_are_refused_as_at_opening() {
    let dir = fast_dir();
    let db = Db::open(dir.path()).unwrap();
    let before = in_force(&db.stats());
    let policy = FilterPolicy::bits_per_key(1.0);
    let bad: [(OptionChanges, Options); 6] = [
        (valid().background_threads(1), Options::new().background_threads(1)),
        (valid().background_threads(65), Options::new().background_threads(65)),
        (valid().compaction_bytes_per_second(1), Options::new().compaction_bytes_per_second(1)),
        (valid().compaction_bytes_per_second(65535), Options::new().compaction_bytes_per_second(65535)),
        (valid().filter_policy(policy), Options::new().filter_policy(policy)),
        (
            valid().filter_policy(FilterPolicy::target_fpr(0.0)),
            Options::new().filter_policy(FilterPolicy::target_fpr(0.0)),
        ),
    ];
    for (changes, options) in bad {
        let refused = db.set_options(changes).unwrap_err();
        let at_opening = options.open(fast_dir().path()).map(drop).unwrap_err();
        assert!(matches!(refused, Error::InvalidArgument(_)), "{refused}");
        assert_eq!(refused.to_string(), at_opening.to_string());
        assert_eq!(in_force(&db.stats()), before);
    }
    db.set_options(OptionChanges::new()).unwrap();
    assert_eq!(in_force(&db.stats()), before, "no changes");
    db.set_options(OptionChanges::new().compaction_bytes_per_second(64 << 10)).unwrap();
    db.set_options(valid()).unwrap();
    assert_eq!(in_force(&db.stats()), (12345, 7, 1 << 20, Durability::Sync));
}

#[test]
fn filters_are_neither_turned_on_nor_off_while_the_store_is_open() {
    for (opened, wanted) in
        [(FilterPolicy::default(), FilterPolicy::OFF), (FilterPolicy::OFF, FilterPolicy::default())]
    {
        let dir = fast_dir();
        let db = tiny().filter_policy(opened).open(dir.path()).unwrap();
        let before = in_force(&db.stats());
        let refused = db.set_options(valid().filter_policy(wanted));
        assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{refused:?}");
        assert_eq!(in_force(&db.stats()), before);
        db.set_options(OptionChanges::new().filter_policy(opened)).unwrap();
    }
}

#[test]
fn only_the_cache_of_a_store_that_is_read_can_be_changed() {
    let dir = fast_dir();
    let writer = Db::open(dir.path()).unwrap();
    writer.put("a", "1").unwrap();
    let follower = Options::new().follow(true).open(dir.path()).unwrap();
    drop(writer);
    let read_only = Options::new().read_only(true).open(dir.path()).unwrap();
    for db in [follower, read_only] {
        db.set_options(OptionChanges::new().block_cache_bytes(4096)).unwrap();
        let before = in_force(&db.stats());
        assert_eq!((before.0, before.1), (4096, 1));
        let others = [
            OptionChanges::new().background_threads(4),
            OptionChanges::new().compaction_bytes_per_second(0),
            OptionChanges::new().durability(Durability::Os),
            OptionChanges::new().filter_policy(FilterPolicy::default()),
            valid(),
        ];
        for changes in others {
            let refused = db.set_options(changes);
            assert!(matches!(refused, Err(Error::ReadOnly)), "{changes:?}: {refused:?}");
        }
        assert_eq!(in_force(&db.stats()), before);
    }
}

#[test]
fn a_store_that_takes_no_writes_any_more_says_so() {
    let dir = fast_dir();
    let db = Db::open(dir.path()).unwrap();
    db.stop_writing("a test");
    assert!(matches!(db.set_options(valid()), Err(Error::Poisoned { .. })));
    db.set_options(OptionChanges::new().block_cache_bytes(4096)).unwrap();
    assert_eq!(db.stats().block_cache_capacity, 4096);
}

//! I9: filters include tombstones. A filter's "absent" must never skip a tombstone that hides an older value.

use crate::support::{STORE, SimFs, assert_holds, contents, eventually, fast_dir, fill_deep, tiny, tiny_on};
use sidebloom::{Db, FilterPolicy, Options};

fn policies() -> [FilterPolicy; 4] {
    [2.0, 3.0, 10.0, 24.0].map(FilterPolicy::bits_per_key)
}

fn key(i: u32) -> String {
    format!("key{i:05}")
}

fn fill(db: &Db, value: &[u8]) {
    (0..300).for_each(|i| db.put(key(i), value).unwrap());
}

/// The number of segments with a working filter, and of all segments.
fn filters(db: &Db) -> (usize, usize) {
    let levels = db.stats().levels;
    (levels.iter().map(|l| l.filters).sum(), levels.iter().map(|l| l.segments).sum())
}

#[track_caller]
fn assert_deleted(db: &Db, deleted: impl Fn(u32) -> bool) {
    for i in 0..300 {
        assert_eq!(db.get(key(i)).unwrap().is_none(), deleted(i), "{}", key(i));
        assert_eq!(db.contains_key(key(i)).unwrap(), !deleted(i), "{}", key(i));
    }
    assert_holds(db, &contents(db));
}

#[test]
fn i9_a_flushed_tombstone_hides_the_value_in_the_levels_below() {
    for policy in policies() {
        let dir = fast_dir();
        let db = Options::new().filter_policy(policy).open(dir.path()).unwrap();
        fill(&db, b"old");
        db.compact().unwrap();
        (0..300).step_by(3).for_each(|i| db.delete(key(i)).unwrap());
        db.flush().unwrap();
        assert_eq!(filters(&db), (2, 2), "one segment with the values, one with tombstones only");
        assert_deleted(&db, |i| i % 3 == 0);
        assert!(db.stats().filter_probes > 0, "the filters were asked");
        drop(db);

        let db = Options::new().filter_policy(policy).open(dir.path()).unwrap();
        assert_deleted(&db, |i| i % 3 == 0);
        db.warm().unwrap();
        eventually("filters answer", || filters(&db) == (2, 2));
        assert_deleted(&db, |i| i % 3 == 0);
        db.rebuild_filters(FilterPolicy::bits_per_key(5.0)).unwrap();
        assert_deleted(&db, |i| i % 3 == 0);
    }
}

/// Tombstones hide values through every level and compaction on their way down.
#[test]
fn i9_tombstones_hide_values_through_every_level_and_compaction() {
    for policy in policies() {
        let dir = fast_dir();
        let db = tiny().filter_policy(policy).open(dir.path()).unwrap();
        for round in 0..6u32 {
            fill(&db, format!("round {round}, long enough for several segments").as_bytes());
            let deleted = |i: u32| (i + round).is_multiple_of(4);
            (0..300).filter(|i| deleted(*i)).for_each(|i| db.delete(key(i)).unwrap());
            assert_deleted(&db, deleted);
            if round % 2 == 0 {
                db.wait_for_compaction().unwrap();
                assert_deleted(&db, deleted);
            }
        }
        assert!(db.stats().levels.len() > 1);
        db.compact().unwrap();
        assert_deleted(&db, |i| (i + 5).is_multiple_of(4));
        let entries: u64 = db.stats().levels.iter().map(|l| l.keys).sum();
        assert_eq!(entries, 225, "at the bottom no tombstone is left");
    }
}

#[test]
fn i9_tombstones_stay_for_as_long_as_a_deeper_level_has_what_they_hide() {
    for (seed, policy) in policies().into_iter().enumerate() {
        let dir = fast_dir();
        let db = tiny().filter_policy(policy).open(dir.path()).unwrap();
        let expected = fill_deep(&db, seed as u64);
        assert_holds(&db, &expected);
        for i in 0..3000 {
            let key = key(i).into_bytes();
            assert_eq!(db.contains_key(&key).unwrap(), expected.contains_key(&key), "{}", key.escape_ascii());
        }
        assert!(db.stats().filter_negatives > 0);
    }
}

#[test]
fn i9_a_key_that_comes_back_after_its_tombstone_is_found() {
    let dir = fast_dir();
    let db = Options::new().filter_policy(FilterPolicy::bits_per_key(2.0)).open(dir.path()).unwrap();
    for (i, value) in [Some("one"), None, Some("two"), None, Some("three")].into_iter().enumerate() {
        match value {
            Some(value) => db.put(b"key", value).unwrap(),
            None => db.delete(b"key").unwrap(),
        }
        db.put(format!("other{i}"), b"").unwrap();
        db.flush().unwrap();
        assert_eq!(db.get(b"key").unwrap().as_deref(), value.map(str::as_bytes), "step {i}");
    }
}

/// A tombstone at the edge of a compaction stays while a deeper level has its key. The inputs from the lower
/// level have a wider range than those from the upper one. Tombstones in that range hide rows of a still
/// deeper level.
#[test]
fn i9_a_tombstone_at_a_compactions_edge_stays_above_its_key() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    // More than level 1 may hold.
    let rows =
        |first: char| (0..1600u32).map(move |i| (format!("{first}{i:04}"), [i as u8, (i >> 8) as u8, 7]));
    // Two runs of the deepest level with nothing between them.
    for first in ['a', 'z'] {
        rows(first).for_each(|(key, value)| db.put(key, value.repeat(20)).unwrap());
        db.compact().unwrap();
    }
    let deepest = db.stats().levels.len() - 1;
    assert!(deepest >= 2, "{deepest}");
    let merge_level0 = |round: u32, delete: bool| {
        for i in 0..4u32 {
            db.put(format!("m{i}"), round.to_be_bytes()).unwrap();
            db.put("m", i.to_be_bytes()).unwrap(); // They overlap.
            if delete {
                db.delete("z0200").unwrap();
            }
            db.flush().unwrap();
        }
        eventually("level 0 is merged", || db.stats().levels[0].segments == 0);
    };
    merge_level0(1, true);
    assert_eq!(db.get("z0200").unwrap(), None);
    assert_eq!(db.stats().levels[1].segments, 1, "m and the tombstone of z");
    merge_level0(2, false);
    assert_eq!(db.get("z0200").unwrap(), None, "a deleted key is back");
    assert_eq!(db.iter().count().unwrap(), 1600 + 1599 + 5);
    db.compact().unwrap();
    assert_eq!(db.iter().count().unwrap(), 1600 + 1599 + 5);
}

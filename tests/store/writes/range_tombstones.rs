//! Range tombstones, where the random model does not test them specifically (I9 extended: no filter hides
//! one, and nothing they hide comes back).

use crate::support::{Crash, STORE, SimFs, assert_holds, contents, eventually, fast_dir, tiny, tiny_on};
use sidebloom::{Batch, Compression, Db, Error, FilterPolicy, Options, repair};

fn key(i: u32) -> String {
    format!("key{i:05}")
}

fn fill(db: &Db, keys: std::ops::Range<u32>, value: &str) {
    keys.for_each(|i| db.put(key(i), value).unwrap());
}

#[track_caller]
fn assert_deleted(db: &Db, of: u32, deleted: impl Fn(u32) -> bool) {
    for i in 0..of {
        assert_eq!(db.get(key(i)).unwrap().is_none(), deleted(i), "{}", key(i));
    }
    let left = (0..of).filter(|i| !deleted(*i)).count();
    assert_eq!(db.iter().count().unwrap() as usize, left);
    assert_eq!(db.iter().rev().map(Result::unwrap).count(), left);
    assert_holds(db, &contents(db));
}

/// A filter that denies a key does not hide the range tombstone in the same segment.
#[test]
fn i9_a_filter_that_denies_a_key_hides_no_range_tombstone() {
    for bits in [2.0, 10.0, 24.0] {
        let options = Options::new().filter_policy(FilterPolicy::bits_per_key(bits));
        let dir = fast_dir();
        let db = options.clone().open(dir.path()).unwrap();
        fill(&db, 0..300, "old");
        db.compact().unwrap();
        db.delete_range(key(50)..key(250)).unwrap();
        db.put(key(100), "new").unwrap();
        let deleted = |i: u32| (50..250).contains(&i) && i != 100;
        assert_deleted(&db, 300, deleted);
        db.flush().unwrap();
        let levels = db.stats().levels;
        assert_eq!((levels[0].segments, levels[0].keys, levels[0].range_tombstones), (1, 1, 1));
        assert_deleted(&db, 300, deleted);
        assert!(db.stats().filter_negatives > 0, "the filter of that segment was asked and denied");
        drop(db);
        let db = options.open(dir.path()).unwrap();
        db.warm().unwrap();
        assert_deleted(&db, 300, deleted);
        db.rebuild_filters(FilterPolicy::bits_per_key(5.0)).unwrap();
        assert_deleted(&db, 300, deleted);
        db.compact().unwrap();
        assert_deleted(&db, 300, deleted);
        let levels = db.stats().levels;
        assert!(levels.iter().all(|level| level.range_tombstones == 0), "nothing is left to hide");
        assert_eq!(levels.iter().map(|level| level.keys).sum::<u64>(), 101);
    }
}

#[test]
fn a_snapshot_sees_what_was_there_when_a_later_range_tombstone_comes() {
    let dir = fast_dir();
    let db = Options::new().open(dir.path()).unwrap();
    fill(&db, 0..100, "value");
    let before = db.snapshot();
    db.delete_range(key(10)..key(20)).unwrap();
    let between = db.snapshot();
    db.delete_prefix("key").unwrap();
    let walk = before.iter();
    for round in 0..3 {
        assert!((0..100).all(|i| before.contains_key(key(i)).unwrap()), "round {round}");
        assert_eq!(before.iter().count().unwrap() as usize, 100);
        assert!((0..100).all(|i| between.contains_key(key(i)).unwrap() != (10..20).contains(&i)));
        assert_eq!(between.iter().rev().map(Result::unwrap).count(), 90);
        assert!((0..100).all(|i| !db.contains_key(key(i)).unwrap()));
        assert!(db.iter().next().is_none() && db.snapshot().iter().next_back().is_none());
        if round == 0 { db.flush().unwrap() } else { db.compact().unwrap() }
    }
    assert_eq!(walk.count().unwrap() as usize, 100);
}

#[test]
fn the_order_within_a_batch_counts() {
    let dir = fast_dir();
    let db = Options::new().open(dir.path()).unwrap();
    let mut batch = Batch::new();
    batch.put("a", "1");
    batch.put("b", "1");
    batch.delete_range("a"..="b");
    batch.put("b", "2");
    batch.delete_prefix("c");
    db.write(batch).unwrap();
    for _ in 0..2 {
        assert_eq!(db.get("a").unwrap(), None);
        assert_eq!(db.get("b").unwrap().as_deref(), Some(&b"2"[..]));
        assert_eq!(db.multi_get(&["a", "b", "c"]).unwrap().iter().flatten().count(), 1);
        db.flush().unwrap();
    }
}

#[test]
fn bad_ranges_are_refused_by_name_and_change_nothing() {
    let dir = fast_dir();
    let db = Options::new().open(dir.path()).unwrap();
    fill(&db, 0..10, "value");
    assert!(matches!(db.delete_range("z".."a"), Err(Error::InvalidRange { .. })));
    assert!(matches!(db.delete_prefix(""), Err(Error::EmptyPrefix)));
    assert!(matches!(db.delete_prefix(vec![0; 70_000]), Err(Error::KeyTooLarge { .. })));
    let mut batch = Batch::new();
    batch.put("more", "value");
    batch.delete_range("z".."a");
    assert!(matches!(db.write(batch), Err(Error::InvalidRange { .. })));
    db.delete_range("key".."key").unwrap();
    assert_deleted(&db, 10, |_| false);
    assert_eq!(db.get("more").unwrap(), None);
}

#[test]
fn segments_of_deleted_keys_alone_are_dropped_unread() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    fill(&db, 0..4000, "a value that fills segments of 4 KiB soon");
    db.compact().unwrap();
    let full = db.stats();
    assert!(full.levels.iter().map(|level| level.segments).sum::<usize>() > 20);
    db.delete_range(key(100)..key(3900)).unwrap(); // An idle store flushes this by itself.
    eventually("covered segments are gone", || {
        db.stats().levels.iter().map(|level| level.data_bytes).sum::<u64>()
            < full.levels.iter().map(|level| level.data_bytes).sum::<u64>() / 8
    });
    let read = db.stats().compaction_read_bytes - full.compaction_read_bytes;
    let bytes: u64 = full.levels.iter().map(|level| level.data_bytes).sum();
    assert!(read < bytes / 4, "{read} of {bytes} bytes were read");
    assert_deleted(&db, 4000, |i| (100..3900).contains(&i));
    db.compact().unwrap();
    assert_deleted(&db, 4000, |i| (100..3900).contains(&i));
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn many_ranges_without_keys_are_divided_among_disjoint_segments() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    // Older rows in the deepest level, so that no compaction may drop the ranges.
    (0..3000).for_each(|i| db.put(key(i), "an old value of some length").unwrap());
    db.compact().unwrap();
    for i in (0..3000).step_by(3) {
        db.delete_range(key(i)..key(i + 1)).unwrap();
    }
    db.wait_for_compaction().unwrap();
    assert!(db.verify().unwrap().is_ok(), "I10 among them");
    assert_deleted(&db, 3000, |i| i % 3 == 0);
    drop(db);
    let db = tiny_on(&fs).open(STORE).unwrap();
    assert_deleted(&db, 3000, |i| i % 3 == 0);
    db.delete_range(..).unwrap();
    db.put(key(7), "again").unwrap();
    db.compact().unwrap();
    assert_deleted(&db, 3000, |i| i != 7);
    let levels = db.stats().levels;
    assert_eq!(levels.iter().map(|level| (level.keys, level.range_tombstones)).max(), Some((1, 0)));
}

/// A crash after a sync keeps the deletion, and a crash before it keeps all or nothing.
#[test]
fn i4_a_crash_keeps_a_synced_deletion_and_all_or_nothing_of_another() {
    for seed in 0..20 {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        fill(&db, 0..200, "value");
        db.sync().unwrap();
        db.delete_range(key(20)..key(40)).unwrap();
        db.sync().unwrap();
        db.delete_range(key(60)..key(80)).unwrap();
        let after = fs.crash(Crash::Power, seed);
        drop(db);
        let db = tiny_on(&after).open(STORE).unwrap();
        let second = db.get(key(60)).unwrap().is_none();
        assert_deleted(&db, 200, |i| (20..40).contains(&i) || second && (60..80).contains(&i));
    }
}

/// A damaged block of range tombstones is an error for what they may hide.
#[test]
fn i6_damaged_range_tombstones_are_an_error_for_what_they_may_hide() {
    let dir = fast_dir();
    let db = Options::new().open(dir.path()).unwrap();
    fill(&db, 0..300, "old");
    db.compact().unwrap();
    db.delete_range(key(50)..key(60)).unwrap();
    db.put(key(99), "new").unwrap();
    db.flush().unwrap();
    drop(db);
    let newest = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let newest = newest.filter(|path| path.extension().is_some_and(|e| e == "segment")).max().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    // The block of range tombstones is the first place with the start of the range.
    let start = bytes.windows(8).position(|window| window == key(50).as_bytes()).unwrap();
    bytes[start + 2] ^= 1;
    std::fs::write(&newest, &bytes).unwrap();

    let db = Options::new().open(dir.path()).unwrap();
    for i in 0..300 {
        match db.get(key(i)) {
            Ok(value) => assert!(!(50..60).contains(&i) && value.is_some(), "{}", key(i)),
            Err(error) => {
                assert!(matches!(error, Error::Corruption { .. }) && (50..99).contains(&i), "{error}")
            }
        }
    }
    assert!(db.range(key(40)..key(55)).any(|row| row.is_err()), "a walk says so, too");
    assert!(!db.verify().unwrap().is_ok());
    drop(db);
    let report = repair(dir.path()).unwrap();
    assert!(report.lost.iter().any(|lost| lost.to_string().contains("key00050")), "{report:?}");
    let db = Options::new().open(dir.path()).unwrap();
    assert_eq!(db.get(key(99)).unwrap().as_deref(), Some(&b"new"[..]));
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn repair_without_a_manifest_keeps_range_tombstones() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    fill(&db, 0..2000, "a value that fills segments");
    db.compact().unwrap();
    db.delete_range(key(500)..key(1500)).unwrap();
    db.put(key(700), "new").unwrap();
    db.flush().unwrap();
    drop(db);
    std::fs::remove_file(dir.path().join("MANIFEST")).unwrap();
    repair(dir.path()).unwrap();
    let db = tiny().open(dir.path()).unwrap();
    let deleted = |i: u32| (500..1500).contains(&i) && i != 700;
    assert_deleted(&db, 2000, deleted);
    db.compact().unwrap();
    assert_deleted(&db, 2000, deleted);
}

#[test]
fn long_runs_of_tombstones_go_by_themselves() {
    let dir = fast_dir();
    let db = Options::new().memtable_bytes(1 << 20).open(dir.path()).unwrap();
    fill(&db, 0..60_000, "value");
    (0..59_990).for_each(|i| db.delete(key(i)).unwrap());
    db.wait_for_compaction().unwrap();
    let levels = db.stats().levels;
    let left: u64 = levels.iter().map(|level| level.tombstones).sum();
    assert!(left < 8192 && db.stats().memtable_bytes < 8192 * 200, "{left} tombstones are left");
    assert_eq!(db.iter().count().unwrap() as usize, 10);
}

#[test]
fn walks_pass_a_deleted_range_without_reading_it_but_for_newer_rows() {
    let dir = fast_dir();
    let db = tiny().compression(Compression::Lz4).block_cache_bytes(0).open(dir.path()).unwrap();
    fill(&db, 0..5000, "a value that fills segments of 4 KiB soon");
    db.compact().unwrap();
    let before = db.snapshot();
    db.put(key(2000), "newer, in a segment").unwrap();
    db.delete_range(key(10)..key(1999)).unwrap();
    db.delete_range(key(1999)..key(4990)).unwrap();
    db.put(key(3000), "newer, in the memtable").unwrap();
    db.put(key(3001), "newer, in the memtable").unwrap();
    let left: Vec<String> = (0..10).chain([3000, 3001]).chain(4990..5000).map(key).collect();
    let pinned = db.snapshot(); // Whatever compactions do now, iterate over this state.
    let walk = |reverse: bool| {
        let reads = db.stats().block_reads;
        let text = |row: sidebloom::Result<_>| {
            let (key, _): (Vec<u8>, _) = row.unwrap();
            String::from_utf8(key).unwrap()
        };
        let mut found: Vec<String> =
            if reverse { pinned.iter().rev().map(text).collect() } else { pinned.iter().map(text).collect() };
        if reverse {
            found.reverse();
        }
        assert_eq!(found, left);
        db.stats().block_reads - reads
    };
    let all = |reverse: bool| {
        let reads = db.stats().block_reads;
        let rows =
            if reverse { before.iter().rev().count() } else { before.iter().map(Result::unwrap).count() };
        assert_eq!(rows, 5000);
        db.stats().block_reads - reads
    };
    for reverse in [false, true] {
        let (few, many) = (walk(reverse), all(reverse));
        assert!(few * 8 < many, "{few} of {many} blocks were read");
    }
    let mut cursor = pinned.cursor();
    assert!(cursor.seek(key(500)).unwrap());
    assert_eq!(cursor.key(), Some(key(3000).as_bytes()));
    assert!(cursor.seek_for_prev(key(2999)).unwrap());
    assert_eq!(cursor.key(), Some(key(9).as_bytes()));
    assert!(cursor.next().unwrap() && cursor.next().unwrap());
    assert_eq!(cursor.key(), Some(key(3001).as_bytes()));
}

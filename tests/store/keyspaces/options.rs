//! The options of keyspaces: stored, changed, and applied to their segments.

use crate::support::{eventually, fast_dir, files_with, tiny};
use sidebloom::{Compression, Db, Error, FilterPolicy, Keyspace, KeyspaceOptions, PrefixExtractor};

fn fill(keyspace: &Keyspace, rows: u32) {
    (0..rows).for_each(|i| keyspace.put(format!("key{i:06}"), [b'x'; 100]).unwrap());
}

fn filters(db: &Db) -> usize {
    db.stats().levels.iter().map(|level| level.filters).sum()
}

#[test]
fn each_keyspace_gets_the_filters_that_it_asks_for() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    let off = db.create_keyspace("off", KeyspaceOptions::new().filter_policy(FilterPolicy::OFF)).unwrap();
    let wide = KeyspaceOptions::new().filter_policy(FilterPolicy::bits_per_key(15.0));
    let wide = db.create_keyspace("wide", wide).unwrap();
    for keyspace in [&off, &wide] {
        fill(keyspace, 3000);
    }
    db.compact().unwrap();
    let bits = |db: &Db| {
        let levels = db.stats().levels;
        let sum = |of: fn(&sidebloom::LevelStats) -> u64| levels.iter().map(of).sum::<u64>() as f64;
        8.0 * sum(|level| level.filter_bytes) / sum(|level| level.keys)
    };
    let segments: usize = db.stats().levels.iter().map(|level| level.segments).sum();
    assert!(filters(&db) > segments / 3 && filters(&db) < segments * 2 / 3, "{} of {segments}", filters(&db));
    let on_disk = files_with(dir.path(), ".filter").len();
    assert_eq!(on_disk, filters(&db));
    // Missing keys: those of the keyspace without filters cost reads.
    let reads = |keyspace: &Keyspace| {
        let before = db.stats();
        (0..1000).for_each(|i| assert!(keyspace.get(format!("key{i:06}?")).unwrap().is_none()));
        let after = db.stats();
        let blocks = |of: &sidebloom::Stats| of.block_reads + of.block_cache_hits;
        (after.filter_negatives - before.filter_negatives, blocks(&after) - blocks(&before))
    };
    let (denied, blocks) = reads(&off);
    assert!(denied < 100 && blocks > 900, "{denied} denied, {blocks} blocks");
    let (denied, blocks) = reads(&wide);
    assert!(denied > 900 && blocks < 10, "{denied} denied, {blocks} blocks");
    // Reopened, neither is a missing filter reported, nor rebuilt.
    let before = bits(&db);
    drop((off, wide, db));
    let db = tiny().open(dir.path()).unwrap();
    db.warm().unwrap();
    eventually("the filters are verified", || filters(&db) == on_disk);
    assert_eq!(db.stats().filters_unavailable, 0);
    assert_eq!(bits(&db), before);
    let off = db.keyspace("off").unwrap();
    assert_eq!(off.options().own_filter_policy(), Some(FilterPolicy::OFF));
    // Changed, and changed back.
    off.set_options(KeyspaceOptions::new().filter_policy(FilterPolicy::bits_per_key(8.0))).unwrap();
    let report = off.rebuild_filters().unwrap();
    assert!(report.segments > 0 && report.keys >= 2900, "{report:?}");
    assert!(filters(&db) > on_disk * 3 / 2);
    let (denied, _) = reads_of(&db, &off);
    assert!(denied > 900, "{denied}");
    off.set_options(KeyspaceOptions::new().filter_policy(FilterPolicy::OFF)).unwrap();
    off.rebuild_filters().unwrap();
    assert_eq!((filters(&db), files_with(dir.path(), ".filter").len()), (on_disk, on_disk));
    assert!(db.verify().unwrap().is_ok());
}

/// One flush writes both.
#[test]
fn filters_are_those_of_the_keyspace_from_the_flush_on() {
    let dir = fast_dir();
    let db = tiny().memtable_bytes(8 << 20).open(dir.path()).unwrap();
    let off = db.create_keyspace("off", KeyspaceOptions::new().filter_policy(FilterPolicy::OFF)).unwrap();
    let wide = KeyspaceOptions::new().filter_policy(FilterPolicy::bits_per_key(15.0));
    let wide = db.create_keyspace("wide", wide).unwrap();
    for keyspace in [&off, &wide] {
        fill(keyspace, 3000);
    }
    db.flush().unwrap();
    let segments: usize = db.stats().levels.iter().map(|level| level.segments).sum();
    assert_eq!((segments, filters(&db)), (3, 2), "the catalog's, and the wide one");
    let (of_off, of_wide) = (off.stats().unwrap(), wide.stats().unwrap());
    assert_eq!((of_off.segments, of_off.keys, of_off.filters), (1, 3000, 0));
    assert_eq!((of_wide.segments, of_wide.keys, of_wide.filters), (1, 3000, 1));
    assert!(of_off.expected_fpr == 1.0 && of_wide.expected_fpr < 0.001 && of_wide.shared_segments == 0);
    assert_eq!(Keyspace::stats(&db).unwrap(), sidebloom::KeyspaceStats::default());
    let ((denied_off, _), (denied_wide, reads)) = (reads_of(&db, &off), reads_of(&db, &wide));
    assert!(denied_off < 100 && denied_wide > 900 && reads < 10, "{denied_off} {denied_wide} {reads}");
}

/// Emptied, and filled again: a range tombstone covers all of its keys, up to the next keyspace.
#[test]
fn a_keyspace_that_was_emptied_keeps_segments_and_filters_of_its_own() {
    for policy in [FilterPolicy::bits_per_key(17.0), FilterPolicy::target_fpr(0.001)] {
        let dir = fast_dir();
        let db = tiny().memtable_bytes(8 << 20).segment_bytes(1 << 20).open(dir.path()).unwrap();
        let wide = db.create_keyspace("wide", KeyspaceOptions::new().filter_policy(policy)).unwrap();
        let next = db.create_keyspace("next", KeyspaceOptions::new()).unwrap();
        fill(&wide, 100);
        fill(&next, 3000);
        db.flush().unwrap();
        wide.delete_range(..).unwrap();
        fill(&wide, 3000);
        db.flush().unwrap();
        let bits = |when: &str| {
            let stats = wide.stats().unwrap();
            let bits = 8.0 * stats.filter_bytes as f64 / stats.keys as f64;
            assert!(
                (9.0..20.0).contains(&bits) && stats.keys >= 3000,
                "{bits} bits per key {when}: {stats:?}"
            );
        };
        bits("after the flush");
        wide.compact().unwrap();
        bits("compacted");
        assert_eq!(next.iter().count().unwrap(), 3000);
    }
}

/// Each flush has too few rows of it for a segment of its own: less than a 64th. A merge leaves no more than
/// that in a shared segment.
#[test]
fn a_keyspace_that_leaves_shared_segments_gets_filters_of_its_own() {
    let dir = fast_dir();
    let options = tiny().memtable_bytes(8 << 20).segment_bytes(4 << 20).compression(Compression::None);
    let db = options.open(dir.path()).unwrap();
    let policy = KeyspaceOptions::new().filter_policy(FilterPolicy::bits_per_key(17.0));
    let wide = db.create_keyspace("wide", policy.compression(Compression::None)).unwrap();
    let next = db.create_keyspace("next", KeyspaceOptions::new()).unwrap();
    for round in 10..40 {
        (0..500).for_each(|i| wide.put(format!("{round}{i:04}"), [b'x'; 100]).unwrap());
        next.put(format!("{round}"), "v").unwrap();
        db.flush().unwrap();
    }
    db.compact().unwrap();
    let stats = wide.stats().unwrap();
    let bits = 8.0 * stats.filter_bytes as f64 / stats.keys as f64;
    assert!((13.0..20.0).contains(&bits) && stats.keys > 12_000, "{bits} bits per key: {stats:?}");
}

fn reads_of(db: &Db, keyspace: &Keyspace) -> (u64, u64) {
    let before = db.stats();
    (0..1000).for_each(|i| assert!(keyspace.get(format!("key{i:06}?")).unwrap().is_none()));
    let after = db.stats();
    (after.filter_negatives - before.filter_negatives, after.block_reads - before.block_reads)
}

#[test]
fn prefixes_are_those_of_the_keyspaces_own_keys() {
    let dir = fast_dir();
    let store = || tiny().prefixes([PrefixExtractor::fixed(4)]);
    let db = store().open(dir.path()).unwrap();
    let own = KeyspaceOptions::new().prefixes([PrefixExtractor::delimited(b'/', 1)]);
    let rows = db.create_keyspace("rows", own).unwrap();
    let inherits = db.create_keyspace("inherits", KeyspaceOptions::new()).unwrap();
    let escaped = |prefix: &str| [b"\xff", prefix.as_bytes()].concat();
    for i in 0..2000 {
        let even = format!("{:04}key", 2 * i);
        rows.put(format!("row{i}/column"), [b'x'; 50]).unwrap();
        inherits.put(&even, [b'x'; 50]).unwrap();
        db.put(&even, [b'x'; 50]).unwrap();
        db.put(escaped(&even), [b'x'; 50]).unwrap();
    }
    let check = |db: &Db, rows: &Keyspace, inherits: &Keyspace| {
        for i in (0..2000).step_by(37) {
            let even = format!("{:04}", 2 * i);
            assert_eq!(rows.prefix(format!("row{i}/")).count().unwrap(), 1);
            assert_eq!(inherits.prefix(&even).count().unwrap(), 1);
            assert_eq!(db.prefix(&even).count().unwrap(), 1);
            assert_eq!(db.prefix(escaped(&even[..3])).count().unwrap(), 5);
        }
        let before = db.stats().prefix_negatives;
        for i in 0..500 {
            assert_eq!(rows.prefix(format!("row{i}x/")).count().unwrap(), 0);
        }
        let of_rows = db.stats().prefix_negatives - before;
        for i in 0..500 {
            assert_eq!(inherits.prefix(format!("{:04}", 2 * i + 1)).count().unwrap(), 0);
        }
        (of_rows, db.stats().prefix_negatives - before - of_rows)
    };
    check(&db, &rows, &inherits);
    db.compact().unwrap();
    let (of_rows, inherited) = check(&db, &rows, &inherits);
    assert!(of_rows > 400 && inherited > 400, "{of_rows} and {inherited} denied");
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn compression_and_blocks_are_those_of_the_keyspace() {
    let dir = fast_dir();
    let db = tiny().compression(Compression::None).open(dir.path()).unwrap();
    let lz4 = KeyspaceOptions::new().compression(Compression::Lz4).block_bytes(65536);
    let small = db.create_keyspace("small", lz4.clone()).unwrap();
    let plain = db.create_keyspace("plain", KeyspaceOptions::new()).unwrap();
    let bytes = |keyspace: &Keyspace| {
        let before: u64 = db.stats().levels.iter().map(|level| level.data_bytes).sum();
        fill(keyspace, 2000);
        db.compact().unwrap();
        db.stats().levels.iter().map(|level| level.data_bytes).sum::<u64>() - before
    };
    let (plain, small) = (bytes(&plain), bytes(&small));
    assert!(small * 3 < plain, "{small} of {plain}");
    drop(db);
}

#[test]
fn options_out_of_range_are_refused_and_change_nothing() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    let bad = KeyspaceOptions::new().block_bytes(1);
    assert!(matches!(db.create_keyspace("bad", bad.clone()), Err(Error::InvalidArgument(_))));
    assert!(db.keyspaces().unwrap().is_empty());
    let good = KeyspaceOptions::new().block_bytes(1024);
    let keyspace = db.create_keyspace("good", good.clone()).unwrap();
    assert!(matches!(keyspace.set_options(bad), Err(Error::InvalidArgument(_))));
    assert!(keyspace.options() == good);
    assert!(matches!(sidebloom::Keyspace::set_options(&db, good), Err(Error::InvalidArgument(_))));
}

#[test]
fn thousands_of_small_keyspaces_share_segments() {
    let dir = fast_dir();
    let db = Db::open(dir.path()).unwrap();
    let keyspaces: Vec<_> = (0..2000)
        .map(|i| db.create_keyspace(&format!("tenant {i}"), KeyspaceOptions::new()).unwrap())
        .collect();
    for (i, keyspace) in keyspaces.iter().enumerate() {
        (0..10).for_each(|row| keyspace.put(format!("row {row}"), format!("{i}")).unwrap());
    }
    let bits = |db: &Db| {
        let level = db.stats().levels.into_iter().find(|level| level.segments > 0).unwrap();
        8.0 * level.filter_bytes as f64 / level.keys as f64
    };
    db.flush().unwrap();
    db.warm().unwrap();
    assert!((9.0..12.0).contains(&bits(&db)), "{} bits per key after the flush", bits(&db));
    db.compact().unwrap();
    assert!((9.0..12.0).contains(&bits(&db)), "{} bits per key", bits(&db));
    let files = files_with(dir.path(), "").len();
    assert!(files < 20, "{files} files");
    drop((keyspaces, db));
    let db = Db::open(dir.path()).unwrap();
    for (i, name) in db.keyspaces().unwrap().iter().enumerate().step_by(111) {
        let keyspace = db.keyspace(name).unwrap();
        assert_eq!(keyspace.iter().count().unwrap(), 10, "{i}");
        assert_eq!(*keyspace.get("row 3").unwrap().unwrap(), name.as_bytes()["tenant ".len()..]);
        assert!(keyspace.get("row 30").unwrap().is_none());
    }
}

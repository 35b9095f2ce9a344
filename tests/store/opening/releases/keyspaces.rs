//! `keyspaces.tar.gz`: a store with keyspaces, rows that expire, blocked Bloom filters, and values coded by
//! symbols. Its rows follow from their numbers.

use crate::archive::unpack;
use crate::support::{TestClock, copy_store, fast_dir, files_with, tiny};
use sidebloom::{
    Compression, Db, Expiry, FilterPolicy, Keyspace, KeyspaceOptions, Options, PrefixExtractor, TimeToLive,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub const NAME: &str = "keyspaces";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// When the store was written, by its own clock: in 2001.
const WRITTEN: Duration = Duration::from_secs(1_000_000_000);
/// Rows in segments, and those in the log after them.
const ROWS: u64 = 300;
const LOGGED: u64 = 20;
/// Rows that a range tombstone deletes.
const DELETED: std::ops::Range<u64> = 40..55;

fn options() -> Options {
    tiny().filter_policy(FilterPolicy::blocked_bloom(10.0)).compression(Compression::Fsst)
}

/// The keyspaces, and how long after 2001 their rows live. `None` is the default one.
fn keyspaces() -> [(Option<&'static str>, KeyspaceOptions, Option<Duration>); 4] {
    let plain = KeyspaceOptions::new;
    [
        (None, plain(), None),
        (Some("events"), plain().window(1000 * YEAR), Some(1000 * YEAR)),
        (Some("sessions"), plain().expire_after(DAY).compression(Compression::Lz4), Some(DAY)),
        (
            Some("users"),
            plain().filter_policy(FilterPolicy::OFF).prefixes([PrefixExtractor::fixed(4)]).block_bytes(512),
            None,
        ),
    ]
}

fn key(i: u64) -> String {
    format!("user{}/{i:04}", i % 7)
}

fn value(i: u64) -> String {
    format!("{{\"title\":\"song {i}\",\"year\":{},\"artist\":\"ABBA\"}}", 1950 + i % 70)
}

/// When a row expires by itself, after 2001.
fn own_expiry(i: u64) -> Option<Duration> {
    match i % 10 {
        3 => Some(DAY),
        4 => Some(2000 * YEAR),
        _ => None,
    }
}

fn is_deleted(i: u64) -> bool {
    i.is_multiple_of(11) || DELETED.contains(&i)
}

fn put(space: &Keyspace, rows: std::ops::Range<u64>) {
    for i in rows {
        match own_expiry(i) {
            Some(after) => {
                space.put_with(key(i), value(i), Expiry::at(SystemTime::UNIX_EPOCH + WRITTEN + after))
            }
            None => space.put(key(i), value(i)),
        }
        .unwrap();
    }
}

fn each(db: &Db, mut with: impl FnMut(Keyspace, Option<Duration>)) {
    for (name, _, lives) in keyspaces() {
        let space = name.map_or_else(|| Keyspace::clone(db), |name| db.keyspace(name).unwrap());
        with(space, lives);
    }
}

pub fn make(dir: &Path) {
    let original = fast_dir();
    let clock = TestClock::new();
    clock.set_back(Duration::from_millis(clock.millis()) - WRITTEN);
    let clock = Arc::new(clock);
    let db = options().clock(clock.clone()).open(original.path()).unwrap();
    for (name, options, _) in keyspaces() {
        _ = name.map(|name| db.create_keyspace(name, options).unwrap());
    }
    each(&db, |space, _| put(&space, 0..ROWS / 2));
    db.compact().unwrap();
    each(&db, |space, _| put(&space, ROWS / 2..ROWS));
    each(&db, |space, _| {
        (0..ROWS).filter(|i| i.is_multiple_of(11)).for_each(|i| space.delete(key(i)).unwrap());
        DELETED.for_each(|i| space.delete_range(key(i)..=key(i)).unwrap());
    });
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    drop(db);
    let db = options().clock(clock).memtable_bytes(1 << 20).open(original.path()).unwrap();
    db.wait_for_compaction().unwrap();
    each(&db, |space, _| put(&space, ROWS..ROWS + LOGGED));
    db.sync().unwrap();
    copy_store(original.path(), &dir.join("store"));
    let segments = files_with(&dir.join("store"), ".segment");
    let has = |name: &str| {
        let holds = |path: &Path| std::fs::read(path).unwrap().windows(4).any(|at| at == name.as_bytes());
        segments.iter().any(|path| holds(path))
    };
    assert!(segments.len() > 4 && has("fsst"), "{segments:?}");
}

#[track_caller]
fn assert_rows(db: &Db) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    each(db, |space, lives| {
        let mut rows = 0;
        for i in 0..ROWS + LOGGED {
            let expires = own_expiry(i).or(lives).map(|after| WRITTEN + after);
            let is_there = !(i < ROWS && is_deleted(i)) && expires.is_none_or(|at| at > now);
            rows += usize::from(is_there);
            let found = space.get(key(i)).unwrap();
            let expected = is_there.then(|| value(i));
            assert_eq!(found.as_deref(), expected.as_ref().map(|text| text.as_bytes()), "{}", space.name());
            match (space.time_to_live(key(i)).unwrap(), expires) {
                (TimeToLive::Missing, _) => assert!(!is_there),
                (TimeToLive::Unlimited, None) => assert!(is_there),
                (TimeToLive::Remaining(left), Some(at)) => {
                    assert!((now + left).abs_diff(at) < DAY, "{left:?}")
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(rows > 20 && space.iter().count().unwrap() == rows as u64, "{}", space.name());
    });
    assert!(db.verify().unwrap().is_ok());
}

/// Reads it, and reads it again after all of it was rewritten.
pub fn check(release: &Path) {
    let dir = fast_dir();
    unpack(&release.join("keyspaces.tar.gz"), dir.path());
    let path = dir.path().join("store");
    assert_rows(&options().read_only(true).open(&path).unwrap());
    let db = options().open(&path).unwrap();
    let names: Vec<_> = keyspaces().into_iter().filter_map(|(name, ..)| name).collect();
    assert_eq!(db.keyspaces().unwrap(), names);
    for (name, options, _) in keyspaces() {
        assert!(name.is_none_or(|name| db.keyspace(name).unwrap().options() == options), "{name:?}");
    }
    assert_rows(&db);
    db.compact().unwrap();
    assert_rows(&db);
    assert_eq!(db.stats().segments_of_earlier_formats, 0);
}

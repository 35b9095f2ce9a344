//! Keyspaces of what was written within a window of time.

use super::{Timed, after, secs};
use sidebloom::{Expiry, Keyspace, KeyspaceOptions, WallClock};

fn windowed(timed: &Timed, window: u64) -> Keyspace {
    timed.db.create_keyspace("recent", KeyspaceOptions::new().window(secs(window))).unwrap()
}

fn fill(recent: &Keyspace, keys: std::ops::Range<u32>) {
    keys.for_each(|n| recent.put(n.wrapping_mul(0x9e37_79b9).to_be_bytes(), [7; 10]).unwrap());
}

fn has(recent: &Keyspace, n: u32) -> bool {
    recent.get(n.wrapping_mul(0x9e37_79b9).to_be_bytes()).unwrap().is_some()
}

/// Memtables are flushed only when a test says so.
fn with_large_memtables() -> Timed {
    Timed::with(|options| options.memtable_bytes(1 << 20))
}

#[test]
fn a_window_forgets_by_removing_whole_segments() {
    let timed = with_large_memtables();
    let recent = windowed(&timed, 120);
    let begun = timed.clock.now();
    for round in 0..60u32 {
        fill(&recent, 100 * round..100 * (round + 1));
        timed.db.flush().unwrap();
        timed.db.wait_for_compaction().unwrap();
        // Twelve rounds, and what has come since the bucket of the oldest began.
        let stats = recent.stats().unwrap();
        assert_eq!(recent.iter().count().unwrap(), 100 * u64::from(round + 1).min(12));
        assert!(stats.segments <= 13, "{}", stats.segments);
        assert!(stats.keys <= 1300, "{}", stats.keys);
        let oldest = round.saturating_sub(11);
        assert_eq!(stats.next_expiry, Some(begun + secs(120) + oldest * secs(10)));
        timed.clock.advance(secs(10));
    }
    timed.db.compact().unwrap();
    let stats = timed.db.stats();
    assert_eq!((stats.compaction_bytes, stats.compaction_read_bytes), (0, 0));
    timed.clock.advance(secs(120));
    timed.db.wait_for_compaction().unwrap();
    assert_eq!(recent.stats().unwrap().segments, 0);
}

#[test]
fn one_flush_writes_a_segment_for_each_bucket() {
    let timed = with_large_memtables();
    let recent = windowed(&timed, 120);
    let other = timed.db.create_keyspace("other", KeyspaceOptions::new()).unwrap();
    for bucket in 0..6u32 {
        fill(&recent, 10 * bucket..10 * (bucket + 1));
        fill(&other, 10 * bucket..10 * (bucket + 1));
        timed.clock.advance(secs(10));
    }
    timed.db.flush().unwrap();
    let segments = || recent.stats().unwrap().segments;
    assert!((6..=7).contains(&segments()), "{}", segments());
    timed.clock.advance(secs(60));
    for bucket in 0..6u32 {
        timed.db.wait_for_compaction().unwrap();
        assert!((0..10 * (bucket + 1)).all(|n| !has(&recent, n)));
        assert!((10 * (bucket + 1)..60).all(|n| has(&recent, n)));
        assert!(segments() <= 7 - bucket as usize);
        timed.clock.advance(secs(10));
    }
    timed.db.wait_for_compaction().unwrap();
    assert_eq!((segments(), other.iter().count().unwrap()), (0, 60));
    assert!(timed.db.verify().unwrap().is_ok());
}

#[test]
fn many_flushes_of_one_bucket_become_few_segments() {
    let mut timed = Timed::new();
    let mut recent = windowed(&timed, 1200);
    for round in 0..150u32 {
        fill(&recent, 20 * round..20 * (round + 1));
        timed.db.flush().unwrap();
        if round % 50 == 49 {
            drop(recent);
            timed = timed.reopened();
            recent = timed.db.keyspace("recent").unwrap();
        }
    }
    timed.db.wait_for_compaction().unwrap();
    let stats = recent.stats().unwrap();
    assert!(stats.segments <= 25, "{}", stats.segments);
    assert!((0..3000).all(|n| has(&recent, n)));
    let below: u64 = timed.db.stats().levels.iter().skip(1).map(|level| level.keys).sum();
    assert!(below < 10, "{below} rows have left their buckets"); // The catalog may.
    let read = timed.db.stats().compaction_read_bytes;
    timed.clock.advance(secs(1200));
    timed.db.wait_for_compaction().unwrap();
    assert_eq!((recent.stats().unwrap().segments, recent.iter().count().unwrap()), (0, 0));
    assert_eq!(timed.db.stats().compaction_read_bytes, read);
}

#[test]
fn i15_rows_of_another_life_stay_until_their_moment() {
    let timed = Timed::new();
    let recent = windowed(&timed, 120);
    recent.put_with("long", "1", after(500)).unwrap();
    recent.put_with("never", "1", Expiry::never()).unwrap();
    recent.put_with("short", "1", after(5)).unwrap();
    fill(&recent, 0..50);
    timed.db.flush().unwrap();
    let exists = |key: &str| recent.get(key).unwrap().is_some();
    for (passed, expected) in
        [(5, [true, true, false]), (115, [true, true, false]), (380, [false, true, false])]
    {
        timed.clock.advance(secs(passed));
        timed.db.wait_for_compaction().unwrap();
        assert_eq!(["long", "never", "short"].map(exists), expected);
    }
    recent.put_with("never", "2", after(1)).unwrap();
    timed.db.flush().unwrap();
    timed.clock.advance(secs(1));
    timed.db.wait_for_compaction().unwrap();
    assert!(!exists("never") && !has(&recent, 7));
}

#[test]
fn i15_a_window_can_be_set_and_taken_away_while_rows_are_below() {
    let timed = Timed::new();
    let recent = timed.db.create_keyspace("recent", KeyspaceOptions::new()).unwrap();
    recent.put("old", "1").unwrap();
    recent.put("kept", "1").unwrap();
    timed.db.flush().unwrap();
    timed.db.compact().unwrap();
    recent.set_options(KeyspaceOptions::new().window(secs(60))).unwrap();
    for round in 0..4 {
        recent.put("old", format!("in a window {round}")).unwrap();
        fill(&recent, 0..100);
        timed.db.flush().unwrap();
        timed.clock.advance(secs(5));
    }
    timed.clock.advance(secs(60));
    timed.db.wait_for_compaction().unwrap();
    assert_eq!(recent.iter().map(|row| row.unwrap().0).collect::<Vec<_>>(), [b"kept"]);
    recent.put("old", "again").unwrap();
    timed.db.flush().unwrap();
    recent.set_options(KeyspaceOptions::new()).unwrap();
    recent.put("kept", "2").unwrap();
    timed.db.flush().unwrap();
    timed.db.compact().unwrap();
    let value = |key: &str| recent.get(key).unwrap().map(|value| value.to_vec());
    assert_eq!((value("old"), value("kept")), (Some(b"again".to_vec()), Some(b"2".to_vec())));
    timed.clock.advance(secs(60));
    timed.db.wait_for_compaction().unwrap();
    assert_eq!((value("old"), value("kept")), (None, Some(b"2".to_vec())));
    assert!(timed.db.verify().unwrap().is_ok());
}

#[test]
fn i15_deleting_in_a_window_hides_and_leaves_nothing() {
    let timed = Timed::new();
    let recent = windowed(&timed, 60);
    fill(&recent, 0..300);
    timed.db.flush().unwrap();
    timed.clock.advance(secs(6));
    (0..100).for_each(|n: u32| recent.delete(n.wrapping_mul(0x9e37_79b9).to_be_bytes()).unwrap());
    recent.delete_range([0x80].as_slice()..).unwrap();
    fill(&recent, 300..310);
    timed.db.flush().unwrap();
    let left = recent.iter().count().unwrap();
    assert!((100..200).contains(&left), "{left}");
    assert!((0..100).all(|n| !has(&recent, n)) && (300..310).all(|n| has(&recent, n)));
    timed.clock.advance(secs(54));
    timed.db.wait_for_compaction().unwrap();
    assert_eq!(recent.iter().count().unwrap(), 10);
    timed.clock.advance(secs(60));
    timed.db.wait_for_compaction().unwrap();
    assert_eq!((recent.iter().count().unwrap(), recent.stats().unwrap().segments), (0, 0));
}

#[test]
fn deletions_in_a_window_go_once_they_hide_nothing() {
    let timed = with_large_memtables();
    let recent = windowed(&timed, 120);
    fill(&recent, 0..10);
    timed.db.flush().unwrap();
    (0..10u32).for_each(|n| recent.delete(n.wrapping_mul(0x9e37_79b9).to_be_bytes()).unwrap());
    timed.db.flush().unwrap();
    timed.db.wait_for_compaction().unwrap();
    assert_eq!(recent.stats().unwrap().segments, 2);
    timed.clock.advance(secs(120));
    timed.db.wait_for_compaction().unwrap();
    assert_eq!(recent.stats().unwrap().segments, 0);
    recent.delete("missing").unwrap();
    timed.db.flush().unwrap();
    timed.db.wait_for_compaction().unwrap();
    assert_eq!(recent.stats().unwrap().segments, 0);
}

/// Keys before and behind those of [`fill`].
const ENDS: [&[u8]; 2] = [&[], &[0xff; 5]];

#[test]
fn rows_that_outlive_a_window_keep_nothing_else_in_it() {
    type Pin = fn(&Timed, &Keyspace);
    let pins: [(&str, Pin); 4] = [
        ("never", |_, recent| put_ends(recent, Expiry::never())),
        ("a year", |_, recent| put_ends(recent, after(365 * 86_400))),
        ("touched", |_, recent| {
            put_ends(recent, after(60));
            ENDS.iter().for_each(|key| assert!(recent.touch(key, after(365 * 86_400)).unwrap()));
        }),
        ("below", |timed, recent| {
            recent.set_options(KeyspaceOptions::new()).unwrap();
            put_ends(recent, Expiry::never());
            timed.db.compact().unwrap();
        }),
    ];
    for (name, pin) in pins {
        let timed = with_large_memtables();
        let recent = windowed(&timed, 60);
        pin(&timed, &recent);
        timed.db.flush().unwrap();
        recent.set_options(KeyspaceOptions::new().window(secs(60))).unwrap();
        for round in 0..40u32 {
            fill(&recent, 200 * round..200 * (round + 1));
            timed.db.flush().unwrap();
            timed.db.wait_for_compaction().unwrap();
            assert_eq!(recent.iter().count().unwrap(), 200 * u64::from(round + 1).min(6) + 2, "{name}");
            let stats = recent.stats().unwrap();
            assert!(stats.keys <= 1600 && stats.segments <= 10, "{name}: {stats:?}");
            timed.clock.advance(secs(10));
        }
        timed.clock.advance(secs(60));
        timed.db.compact().unwrap();
        let stats = recent.stats().unwrap();
        assert_eq!((recent.iter().count().unwrap(), stats.keys, stats.segments), (2, 2, 1), "{name}");
        assert!(timed.db.verify().unwrap().is_ok());
    }
}

fn put_ends(recent: &Keyspace, expiry: Expiry) {
    ENDS.iter().for_each(|key| recent.put_with(key, "x", expiry).unwrap());
}

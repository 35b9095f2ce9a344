//! What a row that expires looks like to each kind of read and write.

use super::{Timed, after, options, secs};
use crate::support::fast_dir;
use sidebloom::{Batch, Error, Expiry, KeyspaceOptions, TimeToLive};
use std::time::{Duration, UNIX_EPOCH};

#[test]
fn a_row_is_as_if_deleted_from_its_moment_on() {
    let timed = Timed::new();
    let (db, clock) = (&timed.db, &timed.clock);
    db.put_with("a", "1", after(10)).unwrap();
    db.put("b", "2").unwrap();
    db.put_with("c", "3", Expiry::at(UNIX_EPOCH + Duration::from_millis(clock.millis()) + secs(20))).unwrap();
    for flushed in [false, true] {
        if flushed {
            db.flush().unwrap();
        }
        assert_eq!((timed.get("a"), timed.get("c")), (Some("1".into()), Some("3".into())));
        assert_eq!(timed.keys(), ["a", "b", "c"]);
    }
    let before = db.snapshot();
    clock.advance(secs(10) - Duration::from_millis(1));
    assert_eq!(timed.get("a"), Some("1".into()));
    clock.advance(Duration::from_millis(1));
    assert_eq!(timed.get("a"), None);
    assert_eq!(timed.keys(), ["b", "c"]);
    assert_eq!(db.iter().count().unwrap(), 2);
    assert_eq!(db.multi_get(&["a", "b", "c"]).unwrap().iter().flatten().count(), 2);
    assert!(!db.contains_key("a").unwrap());
    let mut cursor = db.cursor();
    assert!(cursor.seek("").unwrap() && cursor.key() == Some(b"b"));
    // A snapshot reads as of its own moment.
    assert_eq!(before.get("a").unwrap().unwrap(), b"1");
    assert_eq!(before.iter().count().unwrap(), 3);
    clock.advance(secs(10));
    assert_eq!(timed.keys(), ["b"]);
    assert_eq!(before.iter().rev().count(), 3);
}

#[test]
fn an_expired_row_hides_older_ones_of_its_key() {
    let mut timed = Timed::new();
    timed.db.put("a", "old").unwrap();
    timed.db.flush().unwrap();
    timed.db.compact().unwrap();
    timed.db.put_with("a", "new", after(10)).unwrap();
    timed.clock.advance(secs(10));
    assert_eq!(timed.get("a"), None, "in the memtable");
    timed.db.flush().unwrap();
    assert_eq!(timed.get("a"), None, "in a segment");
    assert_eq!(timed.keys(), [""; 0]);
    timed = timed.reopened();
    assert_eq!(timed.get("a"), None, "after reopening");
    timed.db.compact().unwrap();
    assert_eq!((timed.get("a"), timed.segments()), (None, 0), "after a compaction");
}

#[test]
fn insert_new_inserts_an_expired_key_again() {
    let timed = Timed::new();
    let (db, clock) = (&timed.db, &timed.clock);
    for round in 0..3 {
        assert!(db.insert_new_with("nonce", "", after(300)).unwrap(), "round {round}");
        assert!(!db.insert_new_with("nonce", "", after(300)).unwrap(), "round {round}");
        let rows = [("x", round.to_string()), ("y", round.to_string()), ("x", "again".into())];
        assert_eq!(db.insert_new_many_with(&rows, after(300)).unwrap(), [true, true, false]);
        assert_eq!(db.insert_new_many_with(&rows, after(300)).unwrap(), [false; 3]);
        if round == 1 {
            db.flush().unwrap();
        }
        clock.advance(secs(299));
        assert!(!db.insert_new("nonce", "").unwrap());
        clock.advance(secs(1));
    }
    assert!(db.insert_new("nonce", "").unwrap());
    clock.advance(secs(1_000_000));
    assert!(!db.insert_new("nonce", "").unwrap(), "without an expiry, it stays");
}

#[test]
fn the_time_to_live_is_told_and_changed() {
    let timed = Timed::new();
    let (db, clock) = (&timed.db, &timed.clock);
    assert_eq!(db.time_to_live("a").unwrap(), TimeToLive::Missing);
    assert!(!db.touch("a", after(5)).unwrap());
    db.put("a", "1").unwrap();
    assert_eq!(db.time_to_live("a").unwrap(), TimeToLive::Unlimited);
    assert!(db.touch("a", after(5)).unwrap());
    clock.advance(secs(2));
    assert_eq!(db.time_to_live("a").unwrap(), TimeToLive::Remaining(secs(3)));
    assert!(db.touch("a", after(60)).unwrap());
    clock.advance(secs(59));
    assert_eq!(
        (db.time_to_live("a").unwrap(), timed.get("a")),
        (TimeToLive::Remaining(secs(1)), Some("1".into()))
    );
    assert!(db.touch("a", Expiry::never()).unwrap());
    clock.advance(secs(1000));
    assert_eq!((db.time_to_live("a").unwrap(), timed.get("a")), (TimeToLive::Unlimited, Some("1".into())));
    assert!(db.touch("a", after(1)).unwrap());
    clock.advance(secs(1));
    assert_eq!(db.time_to_live("a").unwrap(), TimeToLive::Missing);
    assert!(!db.touch("a", Expiry::never()).unwrap(), "nothing comes back");
    // A put without an expiry replaces the expiry as well.
    db.put_with("b", "1", after(1)).unwrap();
    db.put("b", "2").unwrap();
    assert_eq!(db.time_to_live("b").unwrap(), TimeToLive::Unlimited);
}

#[test]
fn conditional_writes_take_an_expired_key_for_absent() {
    let timed = Timed::new();
    let (db, clock) = (&timed.db, &timed.clock);
    db.put_with("a", "1", after(10)).unwrap();
    clock.advance(secs(10));
    assert!(!db.compare_and_set("a", Some(b"1"), Some(b"2")).unwrap().is_set());
    assert!(db.compare_and_set("a", None, Some(b"3")).unwrap().is_set());
    db.put_with("a", "1", after(10)).unwrap();
    let mut seen = Vec::new();
    let update = db.update("a", |current| {
        seen.push(current.map(<[u8]>::to_vec));
        if seen.len() == 1 {
            clock.advance(secs(10)); // It expires between the read and the write.
        }
        Some("4")
    });
    assert_eq!(update.unwrap(), Some("4"));
    assert_eq!(seen, [Some(b"1".to_vec()), None]);
    // Expected values count when the batch is written.
    let mut batch = Batch::new();
    db.put_with("b", "1", after(10)).unwrap();
    clock.advance(secs(10));
    batch.expect_absent("b");
    batch.put_with("c", "1", after(10));
    db.write(batch.clone()).unwrap();
    assert_eq!(timed.get("c"), Some("1".into()));
    clock.advance(secs(5));
    db.write(batch).unwrap();
    clock.advance(secs(5));
    assert_eq!(timed.get("c"), Some("1".into()), "the duration counts from the second write");
}

#[test]
fn a_transaction_reads_as_of_its_start_and_conflicts_with_time() {
    let timed = Timed::new();
    let (db, clock) = (&timed.db, &timed.clock);
    db.put_with("a", "1", after(10)).unwrap();
    let tx = db.transaction();
    tx.put_with("own", "1", after(10)).unwrap();
    clock.advance(secs(10));
    assert_eq!(tx.get("a").unwrap().unwrap(), b"1");
    assert_eq!(tx.range(..).count().unwrap(), 2);
    assert!(!tx.insert_new("a", "2").unwrap());
    // What it has read is no more.
    assert!(matches!(tx.commit(), Err(Error::Conflict { key }) if key == "a"));
    db.put_with("a", "1", after(10)).unwrap();
    let tx = db.transaction();
    assert_eq!(tx.range(..).count().unwrap(), 1);
    tx.put("b", "1").unwrap();
    clock.advance(secs(10));
    assert!(matches!(tx.commit(), Err(Error::Conflict { key }) if key == "a"));
    let tx = db.transaction();
    assert!(tx.get("a").unwrap().is_none());
    assert_eq!(tx.range(..).count().unwrap(), 0);
    tx.put("b", "1").unwrap();
    tx.commit().unwrap();
    assert_eq!(timed.keys(), ["b"]);
    let tx = db.transaction();
    assert!(tx.get("a").unwrap().is_none() && tx.insert_new("a", "2").unwrap());
    tx.commit().unwrap();
    assert_eq!(timed.keys(), ["a", "b"]);
}

#[test]
fn a_keyspace_says_how_long_its_rows_live() {
    let mut timed = Timed::new();
    let options = KeyspaceOptions::new().expire_after(secs(30));
    timed.db.create_keyspace("seen", options).unwrap();
    for round in 0..2 {
        let seen = timed.db.keyspace("seen").unwrap();
        assert_eq!(seen.options().lifetime(), Some(secs(30)));
        seen.put("a", "1").unwrap();
        seen.put_with("b", "1", Expiry::never()).unwrap();
        assert!(seen.insert_new("c", "1").unwrap());
        let mut batch = Batch::new();
        batch.keyspace(&seen).put("d", "1");
        batch.put("d", "of the default keyspace");
        timed.db.write(batch).unwrap();
        let tx = timed.db.transaction();
        tx.keyspace(&seen).unwrap().put("e", "1").unwrap();
        tx.commit().unwrap();
        seen.ingest([Ok(("f", "1")), Ok(("g", "1"))]).unwrap();
        seen.ingest_unsorted([Ok(("i", "1")), Ok(("h", "1"))]).unwrap();
        timed.clock.advance(secs(29));
        assert_eq!(seen.iter().count().unwrap(), 9);
        timed.clock.advance(secs(1));
        let left: Vec<_> = seen.iter().map(|row| row.unwrap().0).collect();
        assert_eq!(left, [b"b"], "round {round}");
        assert!(timed.db.get("d").unwrap().is_some());
        drop(seen);
        timed = timed.reopened();
    }
    let seen = timed.db.keyspace("seen").unwrap();
    seen.set_options(KeyspaceOptions::new()).unwrap();
    seen.put("a", "1").unwrap();
    assert_eq!(seen.time_to_live("a").unwrap(), TimeToLive::Unlimited);
}

#[test]
fn an_expiry_in_the_past_deletes_and_impossible_ones_are_refused() {
    let timed = Timed::new();
    let db = &timed.db;
    db.put("a", "1").unwrap();
    for past in [UNIX_EPOCH, UNIX_EPOCH - secs(1), UNIX_EPOCH + Duration::from_millis(timed.clock.millis())] {
        db.put_with("a", "2", Expiry::at(past)).unwrap();
        assert_eq!(timed.get("a"), None);
    }
    let year_10000 = UNIX_EPOCH + secs(253_402_300_800);
    let largest =
        [Expiry::at(year_10000 - Duration::from_millis(2)), Expiry::after(Duration::from_millis(1))];
    for expiry in largest {
        db.put_with("b", "1", expiry).unwrap();
        assert_eq!(timed.get("b"), Some("1".into()));
    }
    let refused = [
        Expiry::after(Duration::ZERO),
        Expiry::after(Duration::from_micros(999)),
        Expiry::after(Duration::MAX),
        Expiry::after(secs(253_402_300_800 - timed.clock.millis() / 1000)),
        Expiry::at(year_10000),
    ];
    for expiry in refused {
        assert!(matches!(db.put_with("b", "2", expiry), Err(Error::InvalidArgument(_))), "{expiry:?}");
        assert!(matches!(db.insert_new_with("new", "2", expiry), Err(Error::InvalidArgument(_))));
        assert!(matches!(db.touch("b", expiry), Err(Error::InvalidArgument(_))));
        let tx = db.transaction();
        assert!(matches!(tx.put_with("b", "2", expiry), Err(Error::InvalidArgument(_))));
        let mut batch = Batch::new();
        batch.put_with("b", "2", expiry);
        assert!(matches!(db.write(batch), Err(Error::InvalidArgument(_))));
    }
    assert_eq!(timed.get("b"), Some("1".into()));
    let dir = fast_dir();
    let other = options(&timed.clock).open(dir.path().join("store")).unwrap();
    let refused = other.create_keyspace("a", KeyspaceOptions::new().expire_after(Duration::ZERO));
    assert!(matches!(refused, Err(Error::InvalidArgument(_))));
}

#[test]
fn keys_and_values_of_any_length_expire() {
    let mut timed = Timed::new();
    let keys = [0, 1, 15, 16, 17, 300, 64 << 10].map(|len| vec![b'k'; len]);
    let values = [0, 1, 6, 300, 100_000].map(|len| vec![b'v'; len]);
    for (at, key) in keys.iter().enumerate() {
        let value = &values[at % values.len()];
        timed.db.put_with(key, value, after(10 + at as u64)).unwrap();
    }
    for _ in 0..2 {
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(timed.db.get(key).unwrap().unwrap(), *values[at % values.len()].as_slice());
        }
        timed.db.flush().unwrap();
        timed = timed.reopened();
    }
    for at in 0..keys.len() {
        timed.clock.advance(if at == 0 { secs(10) } else { secs(1) });
        assert_eq!(timed.db.iter().count().unwrap() as usize, keys.len() - at - 1);
        assert!(timed.db.get(&keys[at]).unwrap().is_none());
    }
}

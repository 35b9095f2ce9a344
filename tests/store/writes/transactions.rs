//! Transactions: what they read, what counts as a conflict, and what does not.

use crate::support::{Errno, Fault, OpKind, STORE, SimFs, fast_dir, tiny, tiny_on};
use sidebloom::{
    Db, Durability, Error, Isolation, MAX_KEY_BYTES, MAX_VALUE_BYTES, Options, Result, Transaction,
};

fn value(value: Option<sidebloom::Value>) -> Option<String> {
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn rows(rows: impl Iterator<Item = Result<(Vec<u8>, sidebloom::Value)>>) -> String {
    let text = |(key, value): (Vec<u8>, sidebloom::Value)| {
        format!("{}={}", key.escape_ascii(), value.escape_ascii())
    };
    rows.map(|row| text(row.unwrap())).collect::<Vec<_>>().join(" ")
}

fn store() -> (tempfile::TempDir, Db) {
    let dir = fast_dir();
    let db = tiny().open(dir.path().join("store")).unwrap();
    (dir, db)
}

/// The key of the conflict with which a commit fails.
fn conflict(tx: Transaction) -> String {
    match tx.commit().unwrap_err() {
        Error::Conflict { key } => key,
        other => panic!("{other}"),
    }
}

#[test]
fn a_transaction_sees_its_moment_and_its_own_writes() {
    let (_dir, db) = store();
    for key in ["a", "b", "c", "d", "e", "f"] {
        db.put(key, "0").unwrap();
    }
    db.flush().unwrap();
    db.delete("f").unwrap();
    let tx = db.transaction();
    db.put("a", "later").unwrap();
    db.delete("b").unwrap();
    db.put("g", "later").unwrap();
    db.flush().unwrap();
    assert_eq!(rows(tx.range(..)), "a=0 b=0 c=0 d=0 e=0");
    tx.put("b", "mine").unwrap();
    tx.put("bb", "mine").unwrap();
    tx.delete("c").unwrap();
    let before_range = tx.range("a".."z");
    tx.delete_range("d".."f").unwrap();
    tx.put("e", "again").unwrap();
    assert!(!tx.insert_new("e", "no").unwrap());
    assert!(tx.insert_new("d", "new").unwrap());
    tx.delete_prefix("bb").unwrap();
    let now = "a=0 b=mine d=new e=again";
    assert_eq!(rows(tx.range(..)), now);
    assert_eq!(rows(tx.range(..).rev()), "e=again d=new b=mine a=0");
    assert_eq!(rows(tx.prefix("b")), "b=mine");
    assert_eq!(rows(before_range), "a=0 b=mine bb=mine d=0 e=0", "as of its start");
    let found: Vec<_> = ["a", "b", "bb", "c", "d", "e", "f", "g"]
        .into_iter()
        .map(|key| value(tx.get(key).unwrap()))
        .collect();
    let expected = [Some("0"), Some("mine"), None, None, Some("new"), Some("again"), None, None];
    assert_eq!(found, expected.map(|value| value.map(str::to_owned)));
    let many = tx.multi_get(&["g", "e", "a", "c"]).unwrap();
    assert_eq!(
        many.into_iter().map(value).collect::<Vec<_>>(),
        [None, Some("again".into()), Some("0".into()), None]
    );
    let mut cursor = tx.cursor();
    assert!(cursor.seek("b").unwrap() && cursor.key() == Some(b"b") && cursor.value() == Some(b"mine"));
    assert!(cursor.next().unwrap() && cursor.key() == Some(b"d"));
    assert!(cursor.seek_to_last().unwrap() && cursor.to_value().unwrap() == b"again");
    assert!(cursor.prev().unwrap() && cursor.key() == Some(b"d"));
    assert!(cursor.seek_for_prev("c").unwrap() && cursor.key() == Some(b"b"));
    assert!(cursor.seek_to_first().unwrap() && cursor.key() == Some(b"a") && !cursor.prev().unwrap());
    assert!(!cursor.is_valid());
    drop(cursor);
    assert_eq!(rows(db.iter()), "a=later c=0 d=0 e=0 g=later", "others see none of it");
    assert_eq!(conflict(tx), "a");
    assert_eq!(rows(db.iter()), "a=later c=0 d=0 e=0 g=later");
}

#[test]
fn i4_a_commit_applies_all_writes_at_once() {
    let (_dir, db) = store();
    ["a", "b", "c"].iter().for_each(|key| db.put(key, "0").unwrap());
    let tx = db.transaction();
    tx.put("a", "1").unwrap();
    tx.delete_range("b".."d").unwrap();
    tx.put("c", "after").unwrap();
    let before = db.stats().log_bytes;
    tx.commit_with(Durability::Sync).unwrap();
    assert!(db.stats().log_bytes > before);
    assert_eq!(rows(db.iter()), "a=1 c=after");
    let tx = db.transaction();
    tx.put("a", "2").unwrap();
    tx.roll_back();
    drop({
        let tx = db.transaction();
        tx.delete("a").unwrap();
        tx
    });
    assert_eq!(rows(db.iter()), "a=1 c=after");
}

/// What another writer does to a key that was read decides; the engine's own work does not.
#[test]
fn only_changes_of_what_was_read_are_conflicts() {
    type Step = (&'static str, fn(&Db), bool);
    let steps: [Step; 14] = [
        ("put", |db| db.put("k", "1").unwrap(), true),
        ("put of the same value", |db| db.put("k", "0").unwrap(), true),
        ("delete", |db| db.delete("k").unwrap(), true),
        ("delete_range", |db| db.delete_range("j".."l").unwrap(), true),
        ("ingest", |db| db.ingest([Ok(("k", "1"))]).unwrap(), true),
        ("put and flush", |db| db.put("k", "1").and_then(|()| db.flush()).unwrap(), true),
        ("put and compaction", |db| db.put("k", "1").and_then(|()| db.compact()).unwrap(), true),
        ("put of another key", |db| db.put("l", "1").unwrap(), false),
        ("deletion of another key", |db| db.delete("absent").unwrap(), false),
        ("another range", |db| db.delete_range("l".."z").unwrap(), false),
        ("another ingest", |db| db.ingest([Ok(("a", "1")), Ok(("z", "1"))]).unwrap(), false),
        ("flush", |db| db.put("l", "1").and_then(|()| db.flush()).unwrap(), false),
        ("compaction", |db| db.put("l", "1").and_then(|()| db.compact()).unwrap(), false),
        ("filters", |db| _ = db.rebuild_filters(Default::default()).unwrap(), false),
    ];
    type Read = (&'static str, fn(&Transaction) -> bool);
    let reads: [Read; 6] = [
        ("get", |tx| tx.get("k").unwrap().is_some()),
        ("multi_get", |tx| tx.multi_get(&["b", "k"]).unwrap()[1].is_some()),
        ("range", |tx| tx.range("jj".."kk").count() == 1),
        ("range backwards", |tx| tx.range("jj".."l").next_back().is_some()),
        ("prefix", |tx| tx.prefix("k").next().is_some()),
        ("cursor", |tx| tx.cursor().seek("jj").unwrap()),
    ];
    for (read_by, read) in reads {
        for (what, step, conflicts) in steps {
            for flushed in [false, true] {
                let (_dir, db) = store();
                db.put("k", "0").unwrap();
                db.put("c", "0").unwrap();
                if flushed {
                    db.flush().unwrap();
                }
                let tx = db.transaction();
                assert!(read(&tx), "{read_by}");
                tx.put("result", "1").unwrap();
                step(&db);
                let committed = tx.commit();
                let is_conflict = matches!(committed, Err(Error::Conflict { .. }));
                assert_eq!(is_conflict, conflicts, "{read_by}, {what}, flushed: {flushed}: {committed:?}");
                assert_eq!(db.contains_key("result").unwrap(), !conflicts, "{read_by}, {what}");
            }
        }
    }
}

#[test]
fn a_key_that_was_absent_must_stay_absent() {
    for flushed in [false, true] {
        let (_dir, db) = store();
        db.put("other", "").unwrap();
        let tx = db.transaction();
        assert!(tx.insert_new("k", "mine").unwrap());
        db.put("k", "theirs").unwrap();
        if flushed {
            db.flush().unwrap();
        }
        assert_eq!(conflict(tx), "k");
        let tx = db.transaction();
        assert!(!tx.contains_key("l").unwrap());
        tx.put("x", "").unwrap();
        db.put("l", "").unwrap();
        db.delete("l").unwrap();
        if flushed {
            db.compact().unwrap();
        }
        tx.commit().unwrap(); // It is absent again.
    }
}

/// Read an empty range, write; another transaction adds a row there.
#[test]
fn a_phantom_in_a_range_is_a_conflict() {
    let (_dir, db) = store();
    let (one, two) = (db.transaction(), db.transaction());
    for (tx, mine) in [(&one, "on call: ann"), (&two, "on call: bob")] {
        assert!(tx.prefix("on call: ").next().is_none());
        tx.put(mine, "").unwrap();
    }
    one.commit().unwrap();
    assert_eq!(conflict(two), "on call: ann");
    assert_eq!(rows(db.iter()), "on call: ann=");
}

/// Two doctors are on call, and each goes off duty because the other one is still there.
#[test]
fn write_skew_is_a_conflict_unless_snapshots_are_asked_for() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let (_dir, db) = store();
        db.put("ann", "on").unwrap();
        db.put("bob", "on").unwrap();
        let (one, two) = (db.transaction_with(isolation), db.transaction_with(isolation));
        for (tx, other, me) in [(&one, "bob", "ann"), (&two, "ann", "bob")] {
            assert_eq!(value(tx.get(other).unwrap()).unwrap(), "on");
            tx.put(me, "off").unwrap();
        }
        one.commit().unwrap();
        match isolation {
            Isolation::Serializable => assert_eq!(conflict(two), "ann"),
            Isolation::Snapshot => two.commit().unwrap(),
        }
    }
}

#[test]
fn a_lost_update_is_a_conflict_at_each_isolation() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let (_dir, db) = store();
        db.put("n", "0").unwrap();
        let (one, two) = (db.transaction_with(isolation), db.transaction_with(isolation));
        for tx in [&one, &two] {
            let n: u32 = value(tx.get("n").unwrap()).unwrap().parse().unwrap();
            tx.put("n", (n + 1).to_string()).unwrap();
        }
        one.commit().unwrap();
        assert_eq!(conflict(two), "n");
    }
    // Without a read there is nothing to lose, but for snapshots the first one wins.
    let (_dir, db) = store();
    for (isolation, wins) in [(Isolation::Serializable, true), (Isolation::Snapshot, false)] {
        let tx = db.transaction_with(isolation);
        tx.put("blind", "mine").unwrap();
        db.put("blind", "theirs").unwrap();
        assert_eq!(tx.commit().is_ok(), wins, "{isolation:?}");
        let tx = db.transaction_with(isolation);
        tx.delete_range("b".."c").unwrap();
        db.put("bb", "theirs").unwrap();
        assert_eq!(tx.commit().is_ok(), wins, "{isolation:?}");
    }
}

/// It has read one moment, so it needs no check.
#[test]
fn a_transaction_that_only_reads_never_conflicts() {
    let (_dir, db) = store();
    db.put("a", "0").unwrap();
    let tx = db.transaction();
    assert_eq!(rows(tx.range(..)), "a=0");
    db.put("a", "1").unwrap();
    db.put("b", "1").unwrap();
    assert_eq!(value(tx.get("a").unwrap()).as_deref(), Some("0"));
    tx.commit().unwrap();
}

#[test]
fn a_range_counts_only_as_far_as_it_was_walked() {
    let after = |walk: &dyn Fn(&Transaction), changed: &str| {
        let (_dir, db) = store();
        (0..10).for_each(|n| db.put(format!("{n}"), "").unwrap());
        let tx = db.transaction();
        walk(&tx);
        tx.put("x", "").unwrap();
        db.put(changed, "changed").unwrap();
        tx.commit().is_ok()
    };
    let take_two = |tx: &Transaction| assert_eq!(tx.range("2".."8").take(2).count(), 2);
    assert!(after(&take_two, "1") && after(&take_two, "31") && after(&take_two, "9"));
    assert!(!after(&take_two, "3") && !after(&take_two, "21"));
    let last = |tx: &Transaction| assert!(tx.range("2".."8").next_back().is_some());
    assert!(after(&last, "6") && after(&last, "8"));
    assert!(!after(&last, "7") && !after(&last, "7x"));
    let nothing = |tx: &Transaction| drop(tx.range(..));
    assert!(after(&nothing, "4"));
    let leaked = |tx: &Transaction| std::mem::forget(tx.range("2".."3"));
    assert!(!after(&leaked, "9"), "nobody knows how far it went");
    let cursor = |tx: &Transaction| {
        let mut cursor = tx.cursor();
        assert!(cursor.seek("2").unwrap() && cursor.next().unwrap() && cursor.prev().unwrap());
        assert!(cursor.prev().unwrap() && cursor.seek("6x").unwrap() && !cursor.seek("y").unwrap());
    };
    for (changed, commits) in [
        ("0", true),
        ("1", false),
        ("2x", false),
        ("3", false),
        ("4", true),
        ("6", true),
        ("6z", false),
        ("7", false),
        ("8", true),
    ] {
        assert_eq!(after(&cursor, changed), commits, "{changed}");
    }
    assert!(!after(&cursor, "z"), "the last seek found the end");
}

#[test]
fn writes_roll_back_to_a_savepoint() {
    let (_dir, db) = store();
    db.put("a", "0").unwrap();
    let (tx, other) = (db.transaction(), db.transaction());
    let start = tx.savepoint();
    tx.put("a", "1").unwrap();
    let one = tx.savepoint();
    tx.put("a", "2").unwrap();
    tx.delete_range("a".."z").unwrap();
    let two = tx.savepoint();
    assert_eq!(rows(tx.range(..)), "");
    tx.put("b", "2").unwrap();
    tx.roll_back_to(one).unwrap();
    assert_eq!(rows(tx.range(..)), "a=1");
    assert!(matches!(tx.roll_back_to(two), Err(Error::UnknownSavepoint)), "it came later");
    assert!(matches!(other.roll_back_to(one), Err(Error::UnknownSavepoint)), "of another transaction");
    tx.put("c", "3").unwrap();
    assert_eq!(rows(tx.range(..)), "a=1 c=3");
    tx.roll_back_to(one).unwrap();
    tx.roll_back_to(start).unwrap();
    assert_eq!(rows(tx.range(..)), "a=0");
    tx.put("d", "4").unwrap();
    tx.commit().unwrap();
    assert_eq!(rows(db.iter()), "a=0 d=4");
}

#[test]
fn transact_tries_again_after_a_conflict_and_says_how_often() {
    let (_dir, db) = store();
    db.put("n", "0").unwrap();
    let mut left = 3;
    let outcome = db.transact(|tx| {
        let n: u32 = value(tx.get("n")?).unwrap().parse().unwrap();
        if left > 0 {
            left -= 1;
            db.put("n", (n + 10).to_string())?; // Somebody else, in between.
        }
        tx.put("n", (n + 1).to_string())?;
        Ok(n + 1)
    });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.value, outcome.retries), (31, 3));
    assert_eq!(value(db.get("n").unwrap()).as_deref(), Some("31"));
    let never = db.transact(|tx| {
        tx.get("n")?;
        db.put("n", "other")?;
        tx.put("n", "mine")
    });
    assert!(matches!(never, Err(Error::Conflict { .. })));
    let mut calls = 0;
    let failed: Result<_> = db.transact(|tx| {
        calls += 1;
        tx.put("n", "half")?;
        Err::<(), _>(Error::InvalidArgument("on purpose".into()))
    });
    assert!(matches!(failed, Err(Error::InvalidArgument(_))) && calls == 1);
    let panicked = std::panic::catch_unwind(|| {
        db.transact(|tx| -> Result<()> {
            tx.put("n", "half")?;
            panic!("on purpose")
        })
    });
    assert!(panicked.is_err());
    assert_eq!(value(db.get("n").unwrap()).as_deref(), Some("other"));
    db.put("the store", "goes on").unwrap();
}

#[test]
fn a_transaction_that_outlives_its_store_fails_by_name() {
    let (dir, db) = store();
    db.put("a", "0").unwrap();
    let (tx, reading) = (db.transaction(), db.transaction());
    tx.put("a", "1").unwrap();
    drop(db);
    assert_eq!(value(tx.get("a").unwrap()).as_deref(), Some("1"));
    assert!(matches!(tx.commit(), Err(Error::Closing)));
    assert_eq!(value(reading.get("a").unwrap()).as_deref(), Some("0"));
    let db = tiny().open(dir.path().join("store")).unwrap();
    assert_eq!(rows(db.iter()), "a=0");
}

#[test]
fn what_a_transaction_cannot_take_is_refused_and_it_goes_on() {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let db = tiny().transaction_bytes(4096).open(&path).unwrap();
    let tx = db.transaction();
    tx.put("a", "1").unwrap();
    let (key, large) = (vec![0; MAX_KEY_BYTES + 1], vec![0; MAX_VALUE_BYTES + 1]);
    assert!(matches!(tx.put(&key, ""), Err(Error::KeyTooLarge { .. })));
    assert!(matches!(tx.delete(&key), Err(Error::KeyTooLarge { .. })));
    assert!(matches!(tx.put("b", &large), Err(Error::ValueTooLarge { .. })));
    assert!(matches!(tx.insert_new("b", &large), Err(Error::ValueTooLarge { .. })));
    assert!(matches!(tx.delete_range("z".."a"), Err(Error::InvalidRange { .. })));
    assert!(matches!(tx.delete_prefix(""), Err(Error::EmptyPrefix)));
    assert!(matches!(tx.put("b", [7; 4000]), Err(Error::TransactionTooLarge { max: 4096, .. })));
    tx.delete_range("x".."x").unwrap();
    assert_eq!(rows(tx.range(..)), "a=1");
    let too_many = (0..100).find_map(|n| tx.get(format!("{n}")).err());
    assert!(matches!(too_many, Some(Error::TransactionTooLarge { .. })));
    tx.commit().unwrap();
    assert_eq!(rows(db.iter()), "a=1");
    drop(db);
    let db = Options::new().read_only(true).open(&path).unwrap();
    let tx = db.transaction();
    assert!(matches!(tx.put("a", "2"), Err(Error::ReadOnly)));
    assert!(matches!(tx.delete_range("a".."b"), Err(Error::ReadOnly)));
    assert!(matches!(tx.insert_new("a", "2"), Err(Error::ReadOnly)));
    assert_eq!(value(tx.get("a").unwrap()).as_deref(), Some("1"));
    tx.commit().unwrap();
}

/// A block cannot be read while a commit compares what it has read.
#[test]
fn i5_a_failed_read_during_validation_writes_nothing() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).block_cache_bytes(0).memtable_bytes(1 << 20).open(STORE).unwrap();
    (0..200).for_each(|n| db.put(format!("{n:03}"), "old").unwrap());
    db.flush().unwrap();
    for walks in [false, true] {
        let tx = db.transaction();
        if walks {
            assert_eq!(tx.range("050".."060").count(), 10);
        } else {
            assert!(tx.contains_key("050").unwrap());
        }
        tx.put("result", "").unwrap();
        db.put("300", "another").unwrap();
        db.flush().unwrap(); // Now it has to look again.
        let logged = db.stats().log_bytes;
        fs.fail(Fault::once(OpKind::Read, 0).with(Errno::Io));
        let error = tx.commit().unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "walks: {walks}: {error}");
        fs.heal();
        assert_eq!((db.stats().log_bytes, db.contains_key("result").unwrap()), (logged, false));
    }
    db.put("the store", "goes on").unwrap();
}

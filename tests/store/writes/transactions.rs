//! Transactions: what they read and write, their limits and errors.

use crate::support::{Errno, Fault, OpKind, STORE, SimFs, fast_dir, tiny, tiny_on};
use sidebloom::{Db, Durability, Error, MAX_KEY_BYTES, MAX_VALUE_BYTES, Options, Result, Transaction};

pub(super) fn value(value: Option<sidebloom::Value>) -> Option<String> {
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

pub(super) fn rows(rows: impl Iterator<Item = Result<(Vec<u8>, sidebloom::Value)>>) -> String {
    let text = |(key, value): (Vec<u8>, sidebloom::Value)| {
        format!("{}={}", key.escape_ascii(), value.escape_ascii())
    };
    rows.map(|row| text(row.unwrap())).collect::<Vec<_>>().join(" ")
}

pub(super) fn store() -> (tempfile::TempDir, Db) {
    let dir = fast_dir();
    let db = tiny().open(dir.path().join("store")).unwrap();
    (dir, db)
}

/// The key of the conflict with which a commit fails.
pub(super) fn conflict(tx: Transaction) -> String {
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
            assert_eq!(tx.range("050".."060").count().unwrap(), 10);
        } else {
            assert!(tx.contains_key("050").unwrap());
        }
        tx.put("result", "").unwrap();
        for absent in ["055x", "056x"] {
            db.delete(absent).unwrap();
            db.flush().unwrap(); // The second time, it has to look into the segments.
        }
        db.wait_for_compaction().unwrap(); // So that the fault meets the commit.
        let logged = db.stats().log_bytes;
        fs.fail(Fault::once(OpKind::Read, 0).with(Errno::Io));
        let error = tx.commit().unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "walks: {walks}: {error}");
        fs.heal();
        assert_eq!((db.stats().log_bytes, db.contains_key("result").unwrap()), (logged, false));
    }
    db.put("the store", "goes on").unwrap();
}

/// Whether a commit or the close comes first, a store that was closed is closed.
#[test]
fn a_store_closes_although_a_transaction_commits() {
    for _ in 0..50 {
        let (dir, db) = store();
        let tx = db.transaction();
        tx.put("k", "1").unwrap();
        let committing = std::thread::spawn(move || tx.commit());
        db.close().unwrap();
        let db = tiny().open(dir.path().join("store")).unwrap();
        match committing.join().unwrap() {
            Ok(()) => assert_eq!(rows(db.iter()), "k=1"),
            Err(error) => assert!(matches!(error, Error::Closing) && rows(db.iter()).is_empty(), "{error}"),
        }
    }
}

#[test]
fn walks_and_savepoints_count_towards_the_size() {
    let dir = fast_dir();
    let db = tiny().transaction_bytes(10_000).open(dir.path().join("store")).unwrap();
    let tx = db.transaction();
    let refused = (0..1000).find_map(|n| tx.prefix(format!("{n}")).next()?.err());
    assert!(matches!(refused, Some(Error::TransactionTooLarge { max: 10_000, .. })));
    let tx = db.transaction();
    (0..1000).for_each(|_| _ = tx.savepoint());
    assert!(matches!(tx.put("k", ""), Err(Error::TransactionTooLarge { .. })));
}

/// Each refused call says so, and takes no memory of its own.
#[test]
fn what_is_refused_for_its_size_reads_nothing_and_takes_no_memory() {
    let dir = fast_dir();
    let db = tiny().transaction_bytes(100_000).open(dir.path().join("store")).unwrap();
    for key in ["a", "b", "c"] {
        db.put(key, "0").unwrap();
    }
    let tx = db.transaction();
    tx.put("sum", "0").unwrap();
    let mut cursor = tx.cursor();
    assert!(cursor.seek("a").unwrap());
    let bytes = |error| match error {
        Error::TransactionTooLarge { bytes, max: 100_000 } => bytes,
        other => panic!("{other}"),
    };
    let first = (0..10_000).find_map(|n| tx.get(format!("{n}")).err()).map(bytes).unwrap();
    for n in 0..1000 {
        assert_eq!(tx.get(format!("again {n}")).map_err(bytes).unwrap_err(), first);
        assert_eq!(tx.multi_get(&[format!("again {n}")]).map_err(bytes).unwrap_err(), first);
        assert_eq!(tx.prefix(format!("again {n}")).next().unwrap().map_err(bytes).unwrap_err(), first);
    }
    assert!(cursor.seek("b").is_err());
    assert!(!cursor.is_valid() && !cursor.next().unwrap() && !cursor.prev().unwrap());
    assert_eq!((cursor.key(), cursor.value(), cursor.to_value()), (None, None, None));
    drop(cursor);
    for key in ["b", "c"] {
        db.put(key, "changed").unwrap();
    }
    tx.commit().unwrap();

    // A range tombstone takes 2 KiB in a memtable.
    let tx = db.transaction();
    let ranges = (0..1000).take_while(|n| tx.delete_range(format!("{n}")..format!("{n}x")).is_ok()).count();
    assert!((30..=50).contains(&ranges), "{ranges}");
}

#[test]
fn i6_a_walk_that_cannot_read_is_an_error_and_no_number_of_rows() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).block_cache_bytes(0).open(STORE).unwrap();
    (0..200).for_each(|n| db.put(format!("{n:03}"), "value").unwrap());
    db.flush().unwrap();
    let tx = db.transaction();
    tx.put("150x", "mine").unwrap();
    assert_eq!(tx.range(..).count().unwrap(), 201);
    assert_eq!(tx.range("150"..).last().unwrap().unwrap().0, b"199");
    assert_eq!(tx.range("150"..).nth(1).unwrap().unwrap().0, b"150x");
    assert_eq!(tx.range("150"..).nth_back(1).unwrap().unwrap().0, b"198");
    assert_eq!(Iterator::count(tx.range("150"..)), 51);
    fs.fail(Fault { forever: true, ..Fault::once(OpKind::Read, 0) }.with(Errno::Io));
    assert!(tx.range(..).count().is_err() && tx.range(..).last().is_err());
    assert!(tx.range(..).nth(10).unwrap().is_err() && tx.range(..).nth_back(10).unwrap().is_err());
    fs.heal();
    tx.commit().unwrap();
}

#[test]
fn of_threads_that_share_a_transaction_one_inserts_a_key() {
    let (_dir, db) = store();
    for _ in 0..500 {
        let tx = db.transaction();
        let insert = || tx.insert_new("k", "").unwrap();
        let told = std::thread::scope(|scope| {
            [scope.spawn(insert), scope.spawn(insert)].map(|thread| thread.join().unwrap())
        });
        assert!(told[0] != told[1], "{told:?}");
    }
}

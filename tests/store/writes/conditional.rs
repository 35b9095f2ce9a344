//! Writes that depend on what the store has: new keys, compare and set, updates, batches with expectations.

use crate::support::{Errno, Fault, OpKind, STORE, SimFs, fast_dir, tiny, tiny_on};
use sidebloom::{Batch, CompareAndSet, Db, Durability, Error, MAX_KEY_BYTES, MAX_VALUE_BYTES, Options};
use std::cell::Cell;

fn value(db: &Db, key: &str) -> Option<String> {
    db.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn a_key_is_new_until_it_is_there_and_again_once_it_is_deleted() {
    let dir = fast_dir();
    let db = tiny().open(dir.path().join("store")).unwrap();
    type Step = (&'static str, fn(&Db));
    let steps: [Step; 4] = [
        ("in memory", |_| ()),
        ("flushed", |db| db.flush().unwrap()),
        ("compacted", |db| db.compact().unwrap()),
        ("ingested over", |db| db.ingest([Ok(("other", "row"))]).unwrap()),
    ];
    for (what, step) in steps {
        for delete in [|db: &Db| db.delete("k"), |db: &Db| db.delete_range("a".."z")] {
            assert!(db.insert_new("k", "1").unwrap(), "{what}");
            step(&db);
            assert!(!db.insert_new("k", "2").unwrap(), "{what}");
            assert_eq!(value(&db, "k").as_deref(), Some("1"), "{what}");
            delete(&db).unwrap();
            step(&db);
        }
    }
    assert!(db.insert_new("", "").unwrap(), "the empty key, without a value");
    assert!(!db.insert_new("", "").unwrap());
    drop(db);
    let db = tiny().open(dir.path().join("store")).unwrap();
    assert!(!db.insert_new("", "").unwrap(), "after it is reopened");
    assert!(db.insert_new("k", "3").unwrap());
}

#[test]
fn rows_of_one_call_are_new_once_and_written_together() {
    let dir = fast_dir();
    let db = tiny().open(dir.path().join("store")).unwrap();
    assert!(db.insert_new_many::<&str, &str>(&[]).unwrap().is_empty());
    db.put("old", "0").unwrap();
    let rows = [("a", "1"), ("old", "1"), ("b", "1"), ("a", "2"), ("", "1")];
    assert_eq!(db.insert_new_many(&rows).unwrap(), [true, false, true, false, true]);
    let found = ["a", "old", "b", ""].map(|key| value(&db, key).unwrap());
    assert_eq!(found, ["1", "0", "1", "1"], "of equal keys, the first counts");
    assert_eq!(db.insert_new_many(&rows).unwrap(), [false; 5]);
    let many: Vec<_> = (0..5000).map(|n| (format!("{n}"), [7; 50])).collect();
    assert!(db.insert_new_many(&many).unwrap().into_iter().all(|is_new| is_new));
    db.flush().unwrap();
    assert!(!db.insert_new_many(&many).unwrap().into_iter().any(|is_new| is_new));
}

#[test]
fn compare_and_set_writes_only_over_the_expected_value() {
    let dir = fast_dir();
    let db = tiny().open(dir.path().join("store")).unwrap();
    let differs = |outcome: CompareAndSet| match outcome {
        CompareAndSet::Set => panic!("it was set"),
        CompareAndSet::Differs(current) => current.map(|value| value.to_vec()),
    };
    for flushed in [false, true] {
        let settle = || {
            if flushed {
                db.flush().unwrap()
            }
        };
        assert_eq!(differs(db.compare_and_set("k", Some(b"1"), Some(b"2")).unwrap()), None);
        assert!(db.compare_and_set("k", None, None).unwrap().is_set(), "absent as expected");
        assert!(db.compare_and_set("k", None, Some(b"1")).unwrap().is_set());
        settle();
        assert_eq!(differs(db.compare_and_set("k", None, Some(b"2")).unwrap()), Some(b"1".to_vec()));
        assert_eq!(differs(db.compare_and_set("k", Some(b""), None).unwrap()), Some(b"1".to_vec()));
        assert!(db.compare_and_set("k", Some(b"1"), Some(b"")).unwrap().is_set());
        settle();
        assert_eq!(value(&db, "k").as_deref(), Some(""), "an empty value is not an absent one");
        assert_eq!(differs(db.compare_and_set("k", None, Some(b"2")).unwrap()), Some(Vec::new()));
        assert!(db.compare_and_set("k", Some(b""), None).unwrap().is_set());
        settle();
        assert_eq!(value(&db, "k"), None);
    }
}

/// Whatever the closure, or another thread during it, does to the store, the update starts from that.
#[test]
fn an_update_starts_again_if_its_key_changes_in_between() {
    // What is done, the value to start from then, and how often the closure is called.
    type Meddler = (&'static str, fn(&Db), Option<&'static str>, u32);
    let meddlers: [Meddler; 9] = [
        ("a put", |db| db.put("k", "other").unwrap(), Some("other"), 2),
        ("a put and a flush", |db| db.put("k", "other").and_then(|()| db.flush()).unwrap(), Some("other"), 2),
        ("a deletion", |db| db.delete("k").unwrap(), None, 2),
        ("a deleted range", |db| db.delete_range("a".."z").unwrap(), None, 2),
        ("a deleted prefix", |db| db.delete_prefix("k").unwrap(), None, 2),
        ("an ingest", |db| db.ingest([Ok(("k", "other"))]).unwrap(), Some("other"), 2),
        ("another key", |db| db.put("l", "other").unwrap(), Some("first"), 1),
        ("another range", |db| db.delete_range("l".."z").unwrap(), Some("first"), 1),
        ("a flush", |db| db.put("l", "").and_then(|()| db.compact()).unwrap(), Some("first"), 1),
    ];
    for (what, meddle, starts_from, calls) in meddlers {
        for flushed in [false, true] {
            let dir = fast_dir();
            let db = tiny().open(dir.path().join("store")).unwrap();
            db.put("k", "first").unwrap();
            if flushed {
                db.flush().unwrap();
            }
            let called = Cell::new(0);
            let updated = db.update("k", |before| {
                if called.replace(called.get() + 1) == 0 {
                    assert_eq!(before, Some(&b"first"[..]));
                    meddle(&db);
                }
                Some([before.unwrap_or(b"nothing"), b"+"].concat())
            });
            let expected = format!("{}+", starts_from.unwrap_or("nothing"));
            assert_eq!(updated.unwrap().unwrap(), expected.as_bytes(), "{what}, flushed: {flushed}");
            assert_eq!(value(&db, "k"), Some(expected), "{what}");
            assert_eq!(called.get(), calls, "{what}, flushed: {flushed}");
        }
    }
}

#[test]
fn an_update_may_delete_its_key_and_panic() {
    let dir = fast_dir();
    let db = tiny().open(dir.path().join("store")).unwrap();
    assert_eq!(db.update("k", |_| None::<&str>).unwrap(), None);
    assert_eq!(db.stats().log_bytes, 0, "nothing was there, and nothing was written");
    db.put("k", "1").unwrap();
    let panicked = std::panic::catch_unwind(|| db.update("k", |_| -> Option<&str> { panic!("on purpose") }));
    assert!(panicked.is_err());
    assert_eq!(value(&db, "k").as_deref(), Some("1"));
    assert_eq!(db.update("k", |_| None::<&str>).unwrap(), None);
    assert_eq!(value(&db, "k"), None);
    db.put("l", "the store goes on").unwrap();
}

fn one(key: &str) -> Batch {
    let mut batch = Batch::new();
    batch.put(key, "");
    batch
}

#[test]
fn a_batch_is_written_whole_if_all_its_expectations_hold() {
    let dir = fast_dir();
    let db = tiny().open(dir.path().join("store")).unwrap();
    db.put("ann", "10").unwrap();
    db.flush().unwrap();
    let batch = |fill: &dyn Fn(&mut Batch)| {
        let mut batch = Batch::new();
        fill(&mut batch);
        batch
    };
    let refused = |batch: Batch| match db.write(batch).unwrap_err() {
        Error::Conflict { key } => key,
        other => panic!("{other}"),
    };
    let transfer = batch(&|batch| {
        batch.expect("ann", "10");
        batch.expect_absent("bob");
        batch.expect("ann", "10"); // Twice the same is no contradiction.
        batch.put("ann", "7");
        batch.put("bob", "3");
        batch.delete_range("c".."d");
    });
    assert_eq!(transfer.len(), 3, "expectations are no operations");
    db.write(transfer.clone()).unwrap();
    assert_eq!(refused(transfer.clone()), "ann");
    assert_eq!((value(&db, "ann").as_deref(), value(&db, "bob").as_deref()), (Some("7"), Some("3")));
    assert_eq!(refused(batch(&|batch| batch.expect_absent("bob"))), "bob", "without an operation");
    db.write(batch(&|batch| batch.expect("bob", "3"))).unwrap();
    db.write_with(batch(&|batch| batch.expect("bob", "3")), Durability::Sync).unwrap();
    assert_eq!(refused(batch(&|batch| batch.expect("\u{1}", ""))), "\\x01");

    let contradiction = batch(&|batch| {
        batch.expect("k", "1");
        batch.expect_absent("k");
        batch.put("z", "");
    });
    let error = db.write(contradiction.clone()).unwrap_err();
    assert!(matches!(error, Error::Contradiction { .. }), "{error}");
    let mut cleared = transfer;
    cleared.clear();
    cleared.put("z", "1");
    db.write(cleared).unwrap();
    let mut cleared = contradiction;
    cleared.clear();
    db.write(cleared).unwrap();
}

#[test]
fn i5_a_failed_read_of_a_conditional_write_writes_nothing() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).block_cache_bytes(0).open(STORE).unwrap();
    (0..100).for_each(|n| db.put(format!("{n:03}"), "old").unwrap());
    db.flush().unwrap();
    let logged = db.stats().log_bytes;
    fn expecting(key: &str) -> Batch {
        let mut batch = one("new");
        batch.expect_absent(key);
        batch
    }
    type Write = (&'static str, fn(&Db, &str) -> sidebloom::Result<()>);
    let writes: [Write; 5] = [
        ("insert_new", |db, key| db.insert_new(key, "new").map(drop)),
        ("insert_new_many", |db, key| db.insert_new_many(&[("a", ""), (key, "new")]).map(drop)),
        ("compare_and_set", |db, key| db.compare_and_set(key, None, Some(b"new")).map(drop)),
        ("update", |db, key| db.update(key, |_| Some("new")).map(drop)),
        ("write", |db, key| db.write(expecting(key))),
    ];
    for (n, (what, write)) in (0..).zip(writes) {
        fs.fail(Fault::once(OpKind::Read, 0).with(Errno::Io));
        let error = write(&db, &format!("{:03}", n * 7)).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{what}: {error}");
        fs.heal();
        assert_eq!(db.stats().log_bytes, logged, "{what}");
    }
    assert_eq!(value(&db, "new"), None);
    db.put("the store", "goes on").unwrap();
}

/// The append of a conditional batch fails: nothing is there, and the next attempt finds the key new again.
#[test]
fn i5_a_failed_conditional_write_is_not_acknowledged() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    db.put("x", "").unwrap();
    fs.fail(Fault::once(OpKind::Append, 0).with(Errno::NoSpace));
    assert!(matches!(db.insert_new_many(&[("a", ""), ("b", "")]), Err(Error::Io { .. })));
    fs.heal();
    assert_eq!((value(&db, "a"), value(&db, "b")), (None, None));
    assert_eq!(db.insert_new_many(&[("a", ""), ("b", "")]).unwrap(), [true, true]);
}

#[test]
fn what_cannot_write_refuses_conditional_writes_by_name() {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let db = Options::new().open(&path).unwrap();
    db.put("there", "1").unwrap();
    let refuse = |db: &Db, refuses: &dyn Fn(&Error) -> bool| {
        let mut expecting = Batch::new();
        expecting.expect("there", "1");
        let errors = [
            db.insert_new("there", "").unwrap_err(),
            db.insert_new_many(&[("there", "")]).unwrap_err(),
            db.compare_and_set("there", None, None).unwrap_err(),
            db.update("there", |_| None::<&str>).unwrap_err(),
            db.write(expecting).unwrap_err(),
        ];
        errors.iter().for_each(|error| assert!(refuses(error), "{error}"));
    };
    refuse(&Options::new().follow(true).open(&path).unwrap(), &|error| matches!(error, Error::ReadOnly));
    drop(db);
    refuse(&Options::new().read_only(true).open(&path).unwrap(), &|error| matches!(error, Error::ReadOnly));
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    db.put("there", "1").unwrap();
    fs.fail(Fault::once(OpKind::Append, 0).with(Errno::Io));
    db.put("x", "").unwrap_err();
    refuse(&db, &|error| matches!(error, Error::Poisoned { .. }));
}

#[test]
fn keys_and_values_that_are_too_large_are_refused_before_anything_is_read() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let (key, value) = (vec![0; MAX_KEY_BYTES + 1], vec![0; MAX_VALUE_BYTES + 1]);
    let is_key = |error: Error| matches!(error, Error::KeyTooLarge { .. });
    let is_value = |error: Error| matches!(error, Error::ValueTooLarge { .. });
    assert!(is_key(db.insert_new(&key, "").unwrap_err()));
    assert!(is_value(db.insert_new("k", &value).unwrap_err()));
    assert!(is_key(db.insert_new_many(&[(&b"k"[..], ""), (&key, "")]).unwrap_err()));
    assert!(is_value(db.insert_new_many(&[("k", &b""[..]), ("l", &value)]).unwrap_err()));
    assert!(is_key(db.compare_and_set(&key, None, None).unwrap_err()));
    assert!(is_value(db.compare_and_set("k", None, Some(&value)).unwrap_err()));
    assert!(is_key(db.update(&key, |_| Some("")).unwrap_err()));
    assert!(is_value(db.update("k", |_| Some(&value)).unwrap_err()));
    let expecting = |key: &[u8], value: &[u8]| {
        let mut batch = one("z");
        batch.expect(key, value);
        db.write(batch).unwrap_err()
    };
    assert!(is_key(expecting(&key, b"")));
    assert!(is_value(expecting(b"k", &value)));
    assert_eq!(db.iter().count().unwrap(), 0);
    db.put("k", "1").unwrap();
}

/// Filters answer for new keys: no block is read, however many segments there are.
#[test]
fn a_new_key_reads_no_block() {
    let dir = fast_dir();
    let options = tiny().memtable_bytes(1 << 20).block_cache_bytes(0);
    let db = options.open(dir.path().join("store")).unwrap();
    for round in 0..6 {
        (0..500).for_each(|n| assert!(db.insert_new(format!("{n:04}/{round}"), [7; 60]).unwrap()));
        db.flush().unwrap();
    }
    db.compact().unwrap(); // It reads blocks, too.
    let before = db.stats();
    let new: u64 = (0..3000).map(|n| u64::from(db.insert_new(format!("{n:04}-"), "").unwrap())).sum();
    let after = db.stats();
    let false_positives = after.filter_false_positives - before.filter_false_positives;
    assert_eq!(new, 3000);
    // Each may also read a part of the index.
    assert!(after.block_reads - before.block_reads <= 2 * false_positives, "{false_positives}");
    assert!(false_positives < 100, "{false_positives}");
}

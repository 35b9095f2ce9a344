//! What a keyspace holds, and that it holds nothing of the others.

use crate::support::{Rng, fast_dir, tiny};
use sidebloom::filter::Verdict;
use sidebloom::{Batch, CompareAndSet, Db, Error, Isolation, Keyspace, KeyspaceOptions, Snapshot};
use std::collections::BTreeMap;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys that would fall into other keyspaces if they were stored as they are.
fn hostile_keys() -> Vec<Vec<u8>> {
    let mut keys = vec![vec![], vec![0], vec![0xfe, 0xff], b"key".to_vec()];
    for second in [0, 1, 2, 3, 4, 5, 0xfe, 0xff] {
        for third in [0, 1, 2, 0xff] {
            keys.push(vec![0xff, second]);
            keys.push(vec![0xff, second, third]);
            keys.push(vec![0xff, second, third, b'k']);
        }
    }
    keys.push(vec![0xff]);
    keys.push(vec![0xff; 300]);
    keys.sort();
    keys.dedup();
    keys
}

fn create(db: &Db, name: &str) -> Keyspace {
    db.create_keyspace(name, KeyspaceOptions::new()).unwrap()
}

fn rows(keyspace: &Keyspace) -> Rows {
    keyspace.iter().map(|row| row.map(|(key, value)| (key, value.to_vec())).unwrap()).collect()
}

/// Everything that a keyspace can be asked, against its rows.
fn assert_holds(keyspace: &Keyspace, expected: &Rows) {
    let listed: Vec<_> = expected.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let owned = |row: sidebloom::Result<(Vec<u8>, sidebloom::Value)>| {
        row.map(|(key, value)| (key, value.to_vec())).unwrap()
    };
    assert_eq!(keyspace.iter().map(owned).collect::<Vec<_>>(), listed);
    let mut back: Vec<_> = keyspace.iter().rev().map(owned).collect();
    back.reverse();
    assert_eq!(back, listed);
    assert_eq!(keyspace.iter().count().unwrap(), listed.len() as u64);
    assert_eq!(
        keyspace.iter().keys().map(Result::unwrap).collect::<Vec<_>>(),
        expected.keys().cloned().collect::<Vec<_>>()
    );
    let mut cursor = keyspace.cursor();
    let (mut forward, mut found) = (Vec::new(), cursor.seek_to_first().unwrap());
    while found {
        forward.push((cursor.key().unwrap().to_vec(), cursor.value().unwrap().to_vec()));
        found = cursor.next().unwrap();
    }
    assert_eq!(forward, listed);
    let (mut backward, mut found) = (Vec::new(), cursor.seek_to_last().unwrap());
    while found {
        backward.push((cursor.key().unwrap().to_vec(), cursor.value().unwrap().to_vec()));
        found = cursor.prev().unwrap();
    }
    backward.reverse();
    assert_eq!(backward, listed);
    let keys = hostile_keys();
    let values = keyspace.multi_get(&keys).unwrap();
    let verdicts = keyspace.may_contain_many(&keys);
    for ((key, value), verdict) in keys.iter().zip(values).zip(verdicts) {
        let expected = expected.get(key);
        assert_eq!(value.as_deref(), expected.map(Vec::as_slice), "{}", key.escape_ascii());
        assert_eq!(keyspace.get(key).unwrap().as_deref(), expected.map(Vec::as_slice));
        if expected.is_some() {
            assert_eq!((verdict, keyspace.may_contain(key)), (Verdict::Maybe, Verdict::Maybe));
            assert_eq!(keyspace.may_contain_prefix(&key[..key.len().min(2)]), Verdict::Maybe);
        }
        let from: Vec<_> = keyspace.range(key.clone()..).keys().map(Result::unwrap).collect();
        assert!(from.iter().eq(listed.iter().map(|(known, _)| known).filter(|known| *known >= key)));
        let to: Vec<_> = keyspace.range(..=key.clone()).keys().map(Result::unwrap).collect();
        assert!(to.iter().eq(listed.iter().map(|(known, _)| known).filter(|known| *known <= key)));
        let with: Vec<_> = keyspace.prefix(key).keys().map(Result::unwrap).collect();
        assert!(with.iter().eq(listed.iter().map(|(known, _)| known).filter(|known| known.starts_with(key))));
        let after = listed.iter().find(|(known, _)| known >= key).map(|(known, _)| known.as_slice());
        assert_eq!(cursor.seek(key).unwrap(), after.is_some());
        assert_eq!(cursor.key(), after);
        let before = listed.iter().rev().find(|(known, _)| known <= key).map(|(known, _)| known.as_slice());
        assert_eq!(cursor.seek_for_prev(key).unwrap(), before.is_some());
        assert_eq!(cursor.key(), before);
    }
}

/// The default keyspace, one, and one with a number of two bytes.
fn three(db: &Db) -> [Keyspace; 3] {
    let first = create(db, "first");
    (0..253).for_each(|i| _ = create(db, &format!("between {i}")));
    let last = create(db, "last");
    [Keyspace::clone(db), first, last]
}

#[test]
fn keyspaces_hold_the_same_keys_with_different_values() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    let keyspaces = three(&db);
    let mut expected = vec![Rows::new(); 3];
    for (i, keyspace) in keyspaces.iter().enumerate() {
        for key in hostile_keys() {
            let value = [key.as_slice(), &[i as u8]].concat();
            keyspace.put(&key, &value).unwrap();
            expected[i].insert(key, value);
        }
    }
    let check = |keyspaces: &[Keyspace; 3], expected: &[Rows]| {
        keyspaces.iter().zip(expected).for_each(|(keyspace, expected)| assert_holds(keyspace, expected));
    };
    check(&keyspaces, &expected);
    db.flush().unwrap();
    check(&keyspaces, &expected);
    db.compact().unwrap();
    check(&keyspaces, &expected);
    for (i, keyspace) in keyspaces.iter().enumerate() {
        for key in hostile_keys().into_iter().skip(i).step_by(3) {
            keyspace.delete(&key).unwrap();
            expected[i].remove(&key);
        }
        keyspace.delete_range(vec![0xff, 1]..vec![0xff, 2, 2]).unwrap();
        expected[i].retain(|key, _| !(vec![0xff, 1]..vec![0xff, 2, 2]).contains(key));
        keyspace.delete_prefix([0xff, 3]).unwrap();
        expected[i].retain(|key, _| !key.starts_with(&[0xff, 3]));
    }
    check(&keyspaces, &expected);
    db.compact().unwrap();
    check(&keyspaces, &expected);
    drop((keyspaces, db));
    let db = tiny().open(dir.path()).unwrap();
    let keyspaces = [Keyspace::clone(&db), db.keyspace("first").unwrap(), db.keyspace("last").unwrap()];
    check(&keyspaces, &expected);
    assert_eq!(db.keyspaces().unwrap().len(), 255);
    keyspaces[1].delete_range(..).unwrap();
    expected[1].clear();
    check(&keyspaces, &expected);
    db.delete_range(..).unwrap();
    expected[0].clear();
    check(&keyspaces, &expected);
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn bulk_loads_fill_one_keyspace() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    let keyspaces = three(&db);
    let mut expected = vec![Rows::new(); 3];
    let mut rng = Rng::new(1);
    for (i, keyspace) in keyspaces.iter().enumerate() {
        let rows: Rows = hostile_keys().into_iter().map(|key| (key, vec![i as u8; 50])).collect();
        keyspace.ingest(rows.iter().map(Ok)).unwrap();
        expected[i].extend(rows);
        let mut unsorted: Vec<_> = hostile_keys()
            .into_iter()
            .filter(|_| rng.percent(50))
            .map(|key| (key, vec![10 + i as u8; 30]))
            .collect();
        unsorted.reverse();
        keyspace.ingest_unsorted(unsorted.iter().map(|(key, value)| Ok((key, value)))).unwrap();
        expected[i].extend(unsorted);
    }
    keyspaces.iter().zip(&expected).for_each(|(keyspace, expected)| assert_holds(keyspace, expected));
    let backwards = keyspaces[1].ingest([Ok((b"b\xff", "1")), Ok((b"a\xff", "1"))]).unwrap_err();
    assert_eq!(
        backwards.to_string(),
        "key \"a\\xff\" follows key \"b\\xff\", but keys must increase; sort the rows and drop duplicates"
    );
    let long = vec![0xff; sidebloom::MAX_KEY_BYTES];
    for keyspace in &keyspaces {
        keyspace.put(&long, "longest").unwrap();
        keyspace.ingest([Ok((&long, "longest of all"))]).unwrap();
        assert_eq!(keyspace.get(&long).unwrap().unwrap(), b"longest of all");
        let longer = vec![0; sidebloom::MAX_KEY_BYTES + 1];
        assert!(matches!(keyspace.put(&longer, ""), Err(Error::KeyTooLarge { .. })));
        assert!(matches!(keyspace.ingest([Ok((&longer, ""))]), Err(Error::KeyTooLarge { .. })));
        assert!(matches!(keyspace.ingest_unsorted([Ok((&longer, ""))]), Err(Error::KeyTooLarge { .. })));
        assert!(matches!(keyspace.delete_range(..&longer), Err(Error::KeyTooLarge { .. })));
        assert!(keyspace.get(&longer).unwrap().is_none());
        keyspace.delete_range(long.clone()..=long.clone()).unwrap();
        assert!(keyspace.get(&long).unwrap().is_none());
    }
    db.compact().unwrap();
    keyspaces.iter().zip(&expected).for_each(|(keyspace, expected)| assert_holds(keyspace, expected));
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn batches_transactions_and_snapshots_span_keyspaces() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    let [_, users, seen] = three(&db);
    let before = db.snapshot();
    let mut batch = Batch::new();
    batch.put("\u{ff}", "default");
    batch.keyspace(&users).put("ann", "1");
    batch.keyspace(&seen).put("ann", "2");
    batch.keyspace(&users).expect_absent("ann");
    db.write(batch.clone()).unwrap();
    let conflict = db.write(batch).unwrap_err();
    assert!(matches!(&conflict, Error::Conflict { key } if key == "ann"), "{conflict}");
    let value = |found: Option<sidebloom::Value>| found.map(|value| value.to_vec());
    let of = |snapshot: &Snapshot, keyspace: &Keyspace| {
        value(snapshot.keyspace(keyspace).unwrap().get("ann").unwrap())
    };
    let now = seen.snapshot();
    assert_eq!((of(&before, &users), of(&before, &seen)), (None, None));
    assert_eq!(
        (of(&now, &users), of(&now, &seen), of(&now, &db)),
        (Some(b"1".into()), Some(b"2".into()), None)
    );
    assert_eq!(now.iter().count().unwrap(), 1);
    assert_eq!(now.keyspace(&db).unwrap().iter().count().unwrap(), 1);

    let tx = db.transaction();
    assert!(!tx.keyspace(&users).unwrap().insert_new("ann", "3").unwrap());
    assert!(tx.keyspace(&seen).unwrap().insert_new("bob", "3").unwrap());
    tx.put("bob", "4").unwrap();
    tx.keyspace(&users).unwrap().delete_prefix("a").unwrap();
    assert_eq!(
        tx.keyspace(&seen).unwrap().range(..).map(|row| row.unwrap().0).collect::<Vec<_>>(),
        [b"ann", b"bob"]
    );
    assert_eq!(tx.keyspace(&users).unwrap().range(..).count().unwrap(), 0);
    assert_eq!(tx.range(..).count().unwrap(), 2);
    assert!(seen.get("bob").unwrap().is_none());
    tx.commit().unwrap();
    assert_eq!(
        (value(seen.get("bob").unwrap()), value(db.get("bob").unwrap())),
        (Some(b"3".into()), Some(b"4".into()))
    );
    assert!(users.get("ann").unwrap().is_none());

    // The same key of another keyspace is no conflict; a row that is added where it has walked is.
    for (isolation, walked, conflicts) in [
        (Isolation::Serializable, &seen, true),
        (Isolation::Serializable, &users, false),
        (Isolation::Snapshot, &seen, false),
    ] {
        let tx = users.transaction_with(isolation);
        let mut cursor_tx = tx.keyspace(walked).unwrap().cursor();
        let mut at = cursor_tx.seek_to_first().unwrap();
        while at {
            at = cursor_tx.next().unwrap();
        }
        drop(cursor_tx);
        tx.put("mine", "1").unwrap();
        seen.put(format!("zoe {conflicts}{isolation:?}"), "1").unwrap();
        assert_eq!(tx.commit().is_err(), conflicts, "{isolation:?}");
    }
    assert!(seen.insert_new("carl", "1").unwrap() && users.insert_new("carl", "2").unwrap());
    assert_eq!(seen.insert_new_many(&[("carl", "5"), ("dora", "5")]).unwrap(), [false, true]);
    assert_eq!(users.compare_and_set("carl", Some(b"2"), Some(b"6")).unwrap(), CompareAndSet::Set);
    assert_eq!(seen.update("carl", |was| Some([was.unwrap(), b"!"].concat())).unwrap(), Some(b"1!".to_vec()));
    assert_eq!(value(users.get("carl").unwrap()), Some(b"6".to_vec()));
    let retried = users.transact(|tx| tx.keyspace(&seen)?.put("last", "1")).unwrap();
    assert_eq!(retried.retries, 0);
    assert!(seen.contains_key("last").unwrap() && !users.contains_key("last").unwrap());
    assert!(rows(&seen).len() > 4);
}

#[test]
fn names_are_checked_and_errors_name_them() {
    let (dir, other) = (fast_dir(), fast_dir());
    let db = tiny().open(dir.path()).unwrap();
    let text = |error: Error| error.to_string();
    let options = KeyspaceOptions::new;
    assert_eq!(
        text(db.create_keyspace("", options()).err().unwrap()),
        "\"\" cannot be the name of a keyspace: it is empty"
    );
    let long = "x".repeat(256);
    assert!(text(db.create_keyspace(&long, options()).err().unwrap()).contains("it has more than 255 bytes"));
    create(&db, &long[..255]);
    assert_eq!(
        text(db.keyspace("a\u{1b}b").err().unwrap()),
        "the store has no keyspace \"a\\x1bb\"; create it, or check its name"
    );
    let seen = create(&db, "seen");
    let exists = db.create_keyspace("seen", options()).err().unwrap();
    assert!(matches!(&exists, Error::KeyspaceExists { name } if name == "seen"), "{exists}");
    assert!(matches!(db.drop_keyspace("absent"), Err(Error::UnknownKeyspace { .. })));
    let elsewhere = tiny().open(other.path()).unwrap();
    let mut batch = Batch::new();
    batch.put("mine", "1");
    batch.keyspace(&seen).put("k", "v");
    assert!(matches!(elsewhere.write(batch), Err(Error::ForeignKeyspace { name }) if name == "seen"));
    assert!(elsewhere.get("mine").unwrap().is_none(), "nothing of the batch");
    assert!(matches!(elsewhere.snapshot().keyspace(&seen).err(), Some(Error::ForeignKeyspace { .. })));
    assert!(matches!(elsewhere.transaction().keyspace(&seen).err(), Some(Error::ForeignKeyspace { .. })));
    drop(db);
    let read_only = tiny().read_only(true).open(dir.path());
    assert!(matches!(read_only, Err(Error::Locked { .. })), "a handle keeps the store open");
    drop(seen);
    let read_only = tiny().read_only(true).open(dir.path()).unwrap();
    assert!(matches!(read_only.create_keyspace("new", options()), Err(Error::ReadOnly)));
    assert!(matches!(read_only.drop_keyspace("seen"), Err(Error::ReadOnly)));
    assert_eq!(read_only.keyspaces().unwrap(), ["seen", &long[..255]]);
    assert!(matches!(read_only.keyspace("seen").unwrap().put("k", "v"), Err(Error::ReadOnly)));
}

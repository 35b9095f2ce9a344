//! What is a conflict of transactions, and what is none.

use super::transactions::{conflict, rows, store, value};
use sidebloom::{Batch, Db, Error, Isolation, Transaction};

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
        ("range", |tx| tx.range("jj".."kk").count().unwrap() == 1),
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

/// So many keys that the log does not look each of them up.
#[test]
fn a_transaction_that_has_read_very_many_keys_is_checked_for_each() {
    let keys: Vec<String> = (0..2000).map(|n| format!("{n:04}")).collect();
    for (changed, commits) in [("0500", false), ("1999", false), ("1999x", true), ("2500", true)] {
        for deletes in [false, true] {
            let (_dir, db) = store();
            keys.iter().step_by(2).for_each(|key| db.put(key, "").unwrap());
            db.put("1999", "").unwrap();
            let tx = db.transaction();
            assert_eq!(tx.multi_get(&keys).unwrap().iter().flatten().count(), 1001);
            tx.put("x", "").unwrap();
            for n in 0..50 {
                db.put(format!("other {n}"), "").unwrap();
            }
            if deletes {
                db.delete_range(changed..=changed).unwrap();
            } else {
                db.put(changed, "changed").unwrap();
            }
            assert_eq!(tx.commit().is_ok(), commits, "{changed}, deletes: {deletes}");
            let mut batch = Batch::new();
            keys.iter().step_by(2).filter(|key| **key != changed).for_each(|key| batch.expect(key, ""));
            batch.put("y", "");
            db.write(batch.clone()).unwrap();
            batch.expect_absent("1998");
            assert!(matches!(db.write(batch), Err(Error::Contradiction { .. })));
        }
    }
}

/// However many memtables were flushed, or rows ingested, before and after the change.
#[test]
fn a_change_is_found_in_whichever_memtable_or_segment_it_is() {
    for (before, after) in (0..4).flat_map(|before| (0..4).map(move |after| (before, after))) {
        for (changes, ingests) in [(true, false), (false, false), (true, true), (false, true)] {
            let (_dir, db) = store();
            ["a", "b", "c"].iter().for_each(|key| db.put(key, "").unwrap());
            let pass = |n: usize| {
                db.put("other", format!("{n}")).unwrap();
                if ingests && n.is_multiple_of(2) {
                    db.ingest([Ok(("ingested", "")), Ok(("z", ""))]).unwrap();
                } else {
                    db.flush().unwrap();
                }
            };
            let (one, walk) = (db.transaction(), db.transaction());
            assert!(one.contains_key("b").unwrap() && !one.contains_key("absent").unwrap());
            assert_eq!(walk.range("a"..="c").count().unwrap(), 3);
            (0..before).for_each(pass);
            if changes && ingests {
                db.ingest([Ok(("b", "changed"))]).unwrap();
            } else if changes {
                db.put("b", "changed").unwrap();
            }
            (0..after).for_each(pass);
            for tx in [one, walk] {
                tx.put("x", "").unwrap();
                assert_eq!(tx.commit().is_err(), changes, "{before}, {after}, ingests: {ingests}");
            }
        }
    }
}

/// The memtable of its start is still there, so neither filters nor blocks are asked.
#[test]
fn a_commit_after_one_flush_reads_only_memory() {
    let (_dir, db) = store();
    (0..100).for_each(|n| db.put(format!("{n:03}"), "").unwrap());
    db.compact().unwrap();
    let tx = db.transaction();
    let keys: Vec<String> = (0..100).map(|n| format!("{n:03}-")).collect();
    assert!(tx.multi_get(&keys).unwrap().iter().all(Option::is_none));
    assert_eq!(tx.range("010".."020").count().unwrap(), 10);
    tx.put("x", "").unwrap();
    db.put("y", "").unwrap();
    db.flush().unwrap();
    let probes = db.stats().filter_probes;
    tx.commit().unwrap();
    assert_eq!(db.stats().filter_probes, probes);
}

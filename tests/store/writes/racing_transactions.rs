//! Transactions in many threads: replayed in the order of their commits, each has read what was there.

use crate::support::{OpKind, Rng, STORE, SimFs, fast_dir, sized, tiny, tiny_on};
use sidebloom::{Batch, Db, Error, Isolation};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What a transaction has read and written.
#[derive(Default)]
struct History {
    /// Keys, with the values found.
    reads: Vec<(String, Option<String>)>,
    /// Prefixes, with the rows found.
    walks: Vec<(String, Vec<(String, String)>)>,
    writes: Vec<(String, Option<String>)>,
}

/// A random transaction. It also increments a counter, whose value orders all committed ones.
fn attempt(db: &Db, rng: &mut Rng, unique: &AtomicU64) -> Option<(u64, History)> {
    let (tx, mut history) = (db.transaction_with(Isolation::Serializable), History::default());
    let key = |rng: &mut Rng| format!("{}/{}", rng.below(4), rng.below(12));
    let text = |value: sidebloom::Value| String::from_utf8(value.to_vec()).unwrap();
    for _ in 0..1 + rng.below(3) {
        if rng.percent(60) {
            let key = key(rng);
            let found = tx.get(&key).unwrap().map(text);
            history.reads.push((key, found));
        } else {
            let prefix = format!("{}/", rng.below(4));
            let rows =
                tx.prefix(&prefix).map(|row| row.map(|(k, v)| (String::from_utf8(k).unwrap(), text(v))));
            let rows: Vec<_> = rows.collect::<Result<_, _>>().unwrap();
            history.walks.push((prefix, rows));
        }
    }
    let at = tx.get("order").unwrap().map_or(0, |value| text(value).parse::<u64>().unwrap());
    for _ in 0..1 + rng.below(2) {
        let key = key(rng);
        let value = rng.percent(70).then(|| unique.fetch_add(1, Ordering::Relaxed).to_string());
        match &value {
            Some(value) => tx.put(&key, value).unwrap(),
            None => tx.delete(&key).unwrap(),
        }
        history.writes.push((key, value));
    }
    tx.put("order", (at + 1).to_string()).unwrap();
    match tx.commit() {
        Ok(()) => Some((at, history)),
        Err(Error::Conflict { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn committed_transactions_replay_one_after_the_other() {
    let dir = fast_dir();
    let db = tiny().open(dir.path().join("store")).unwrap();
    let (histories, unique) = (Mutex::new(BTreeMap::new()), AtomicU64::new(0));
    let (done, conflicts) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|thread| {
                let (db, histories, unique, conflicts) = (&db, &histories, &unique, &conflicts);
                scope.spawn(move || {
                    let mut rng = Rng::new(thread);
                    for _ in 0..sized(400, 6000) {
                        match attempt(db, &mut rng, unique) {
                            Some((at, history)) => {
                                let twin = histories.lock().unwrap().insert(at, history);
                                assert!(twin.is_none(), "two transactions were the {at}th");
                            }
                            None => _ = conflicts.fetch_add(1, Ordering::Relaxed),
                        }
                    }
                })
            })
            .collect();
        let (db, done) = (&db, &done);
        let upkeep = scope.spawn(move || {
            for n in 0.. {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                match n % 3 {
                    0 => db.flush().unwrap(),
                    1 => db.ingest([Ok((format!("other {n}"), ""))]).unwrap(),
                    _ => db.compact().unwrap(),
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        done.store(true, Ordering::Relaxed);
        upkeep.join().unwrap();
    });
    let histories = histories.into_inner().unwrap();
    assert!(histories.len() > 50, "{} commits, {conflicts:?} conflicts", histories.len());
    let mut model = BTreeMap::new();
    for (next, (at, history)) in (0..).zip(histories) {
        assert_eq!(at, next, "a commit is missing");
        for (key, found) in history.reads {
            assert_eq!(found, model.get(&key).cloned(), "transaction {at} read {key}");
        }
        for (prefix, rows) in history.walks {
            let within = |(key, _): &(&String, &String)| key.starts_with(&prefix);
            let now: Vec<_> = model
                .iter()
                .filter(within)
                .map(|(k, v): (&String, &String)| (k.clone(), v.clone()))
                .collect();
            assert_eq!(rows, now, "transaction {at} walked {prefix}");
        }
        for (key, value) in history.writes {
            match value {
                Some(value) => _ = model.insert(key, value),
                None => _ = model.remove(&key),
            }
        }
    }
}

/// Flushes, compactions, ingests of other keys and new filters all the time, and nobody touches what the
/// transactions read: none of them conflicts.
#[test]
fn nothing_that_the_engine_does_is_a_conflict() {
    let dir = fast_dir();
    let db = tiny().open(dir.path().join("store")).unwrap();
    (0..500).for_each(|n| db.put(format!("read/{n:03}"), [7; 40]).unwrap());
    let (done, flushes) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (db, done, flushes) = (&db, &done, &flushes);
        scope.spawn(move || {
            for n in 0u64.. {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                (0..20).for_each(|i| db.put(format!("noise/{n}/{i}"), [1; 50]).unwrap());
                match n % 4 {
                    0 => db.flush().unwrap(),
                    1 => db.ingest([Ok((format!("a{n}"), "")), Ok((format!("z{n}"), ""))]).unwrap(),
                    2 => db.compact().unwrap(),
                    _ => _ = db.rebuild_filters(Default::default()).unwrap(),
                }
                flushes.fetch_add(1, Ordering::Relaxed);
            }
        });
        let transactions: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || {
                    let mut rng = Rng::new(thread);
                    for n in 0..sized(40, 500) {
                        let tx = db.transaction();
                        let first = rng.below(480);
                        let range = format!("read/{first:03}")..format!("read/{:03}", first + 20);
                        assert_eq!(tx.range(range).count().unwrap(), 20);
                        assert!(tx.contains_key(format!("read/{:03}", rng.below(500))).unwrap());
                        assert!(!tx.contains_key(format!("read/{:03}x", rng.below(500))).unwrap());
                        let before = flushes.load(Ordering::Relaxed);
                        while n % 4 == 0 && flushes.load(Ordering::Relaxed) < before + 3 {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        tx.put(format!("written/{thread}/{n}"), "").unwrap();
                        tx.commit().unwrap();
                    }
                })
            })
            .collect();
        let results: Vec<_> = transactions.into_iter().map(|thread| thread.join()).collect();
        done.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.unwrap());
    });
}

/// Others fill one memtable after the other, faster than any of these reads what it depends on.
#[test]
fn what_takes_longer_than_others_need_to_fill_memtables_gets_through() {
    let dir = fast_dir();
    let options = tiny().memtable_bytes(64 << 10).transaction_bytes(64 << 10);
    let db = options.open(dir.path().join("store")).unwrap();
    let rows: Vec<(String, String)> =
        (0..sized(20_000, 50_000)).map(|n| (format!("new/{n}"), n.to_string())).collect();
    let done = AtomicBool::new(false);
    let others = |thread: u64| {
        for n in 0u64.. {
            if done.load(Ordering::Relaxed) {
                return;
            }
            db.put(format!("other/{thread}/{n}"), [7; 1000]).unwrap();
        }
    };
    let work = || {
        let are_new = db.insert_new_many(&rows).unwrap();
        assert!(are_new.into_iter().all(|is_new| is_new));
        let mut calls = 0;
        let updated = db.update("new/0", |before| {
            calls += 1;
            db.flush().unwrap();
            before.map(<[u8]>::to_vec)
        });
        assert_eq!((updated.unwrap().unwrap(), calls), (b"0".to_vec(), 1));
        let mut batch = Batch::new();
        rows.iter().for_each(|(key, value)| batch.expect(key, value));
        batch.put("expected", "");
        db.write(batch).unwrap();
        let tx = db.transaction();
        assert_eq!(tx.prefix("new/").count().unwrap(), rows.len() as u64);
        tx.put("walked", "").unwrap();
        tx.commit().unwrap();
    };
    std::thread::scope(|scope| {
        let threads = [scope.spawn(|| others(0)), scope.spawn(|| others(1))];
        let worked = scope.spawn(work).join();
        done.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        worked.unwrap();
    });
}

/// Each time the commit reads a block, others write more than the log keeps, unless they have to wait.
#[test]
fn a_commit_that_others_overtake_each_time_makes_them_wait() {
    let fs = SimFs::new();
    let options = tiny_on(&fs).block_cache_bytes(0).memtable_bytes(64 << 10).transaction_bytes(64 << 10);
    let db = options.open(STORE).unwrap();
    (0..100).for_each(|n| db.put(format!("read/{n:03}"), [7; 40]).unwrap());
    db.flush().unwrap();
    let tx = db.transaction();
    assert_eq!(tx.prefix("read/").count().unwrap(), 100);
    tx.put("walked", "").unwrap();
    // What is newer is in segments, so the commit has to read.
    (0..2).for_each(|n| db.put(format!("other/{n}"), "").and_then(|()| db.flush()).unwrap());
    let (asked, written) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (asks, is_written) = (Arc::clone(&asked), Arc::clone(&written));
    let commit = std::thread::spawn(move || {
        let mine = std::thread::current().id();
        fs.before_each(move |_, kind, _| {
            if kind == OpKind::Read && std::thread::current().id() == mine {
                let number = asks.fetch_add(1, Ordering::SeqCst) + 1;
                let begun = Instant::now();
                // The first six attempts read beside others, and each reads a block or more.
                let at_most = Duration::from_millis(if number <= 6 { 10_000 } else { 300 });
                while is_written.load(Ordering::SeqCst) < number && begun.elapsed() < at_most {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        tx.commit()
    });
    let begun = Instant::now();
    while !commit.is_finished() && begun.elapsed() < Duration::from_secs(60) {
        if written.load(Ordering::SeqCst) < asked.load(Ordering::SeqCst) {
            (0..100).for_each(|n| db.put(format!("other/{n}"), [7; 1000]).unwrap());
            written.fetch_add(1, Ordering::SeqCst);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(commit.is_finished(), "{asked:?} blocks read, {written:?} times overtaken");
    commit.join().unwrap().unwrap();
    assert!(asked.load(Ordering::SeqCst) > 6, "{asked:?}: nobody overtook it");
}

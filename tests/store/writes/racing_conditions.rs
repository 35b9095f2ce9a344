//! Conditional writes in several threads: of those that race, one wins, and no update is lost.

use crate::support::{OpKind, STORE, SimFs, fast_dir, sized, tiny, tiny_on};
use sidebloom::{Batch, Db, Durability, Error};
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

fn value(db: &Db, key: &str) -> Option<String> {
    db.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

/// All threads try the same keys while memtables rotate, segments compact and other rows are ingested: each
/// key is new exactly once, and a counter misses no update.
#[test]
fn of_threads_that_race_for_a_key_exactly_one_inserts_it() {
    const THREADS: u64 = 8;
    let keys = sized(1500, 20_000);
    for durability in [Durability::Os, Durability::Sync] {
        let dir = fast_dir();
        let db = tiny().durability(durability).open(dir.path().join("store")).unwrap();
        let (start, done, new) =
            (Barrier::new(THREADS as usize + 1), AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (db, start, new) = (&db, &start, &new);
                    scope.spawn(move || {
                        start.wait();
                        for n in 0..keys {
                            let (key, mine) = (format!("key {n}"), format!("{thread}"));
                            let is_new = if n % 3 == 0 {
                                db.insert_new(&key, &mine).unwrap()
                            } else if n % 3 == 1 {
                                db.compare_and_set(&key, None, Some(mine.as_bytes())).unwrap().is_set()
                            } else {
                                let rows = [(&key, &mine), (&format!("with {key}"), &mine)];
                                let are_new = db.insert_new_many(&rows).unwrap();
                                assert_eq!(are_new[0], are_new[1], "both or none");
                                are_new[0]
                            };
                            new.fetch_add(u64::from(is_new), Ordering::Relaxed);
                            assert_eq!(value(db, &key).as_ref() == Some(&mine), is_new, "{key}");
                            let count = |before: Option<&[u8]>| {
                                let before = before.map_or(0, |n| u64::from_le_bytes(n.try_into().unwrap()));
                                Some((before + 1).to_le_bytes())
                            };
                            db.update("count", count).unwrap();
                        }
                    })
                })
                .collect();
            let (db, start, done) = (&db, &start, &done);
            let upkeep = scope.spawn(move || {
                start.wait();
                for n in 0.. {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    match n % 3 {
                        0 => db.flush().unwrap(),
                        1 => db.ingest([Ok((format!("other {n}"), ""))]).unwrap(),
                        _ => db.compact_range("key 1".."key 2").unwrap(),
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            done.store(true, Ordering::Relaxed);
            upkeep.join().unwrap();
        });
        assert_eq!(new.load(Ordering::Relaxed), keys);
        let count = db.get("count").unwrap().unwrap();
        assert_eq!(u64::from_le_bytes(count[..].try_into().unwrap()), keys * THREADS);
    }
}

/// Several writers of one key queue while the log is busy, so that one group has them all. What a batch ahead
/// in the group puts or deletes counts, although it is not in the memtable yet.
#[test]
fn of_equal_keys_in_one_group_only_the_first_is_new() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).memtable_bytes(1 << 20).open(STORE).unwrap();
    for round in 0..20 {
        let (key, ranged) = (format!("k{round}"), format!("r{round}"));
        db.put(&ranged, "0").unwrap();
        let held = fs.hold(OpKind::Sync);
        let won: BTreeMap<_, _> = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            let mut queue = |name: &'static str, work: &dyn Fn() -> Box<dyn FnOnce() -> bool + Send>| {
                threads.push((name, scope.spawn(work())));
                std::thread::sleep(Duration::from_millis(5));
            };
            let with = |work: fn(&Db, &str) -> bool, key: &str| -> Box<dyn FnOnce() -> bool + Send> {
                let (db, key) = (db.clone(), key.to_owned());
                Box::new(move || work(&db, &key))
            };
            queue("holder", &|| with(|db, _| db.write_with(one("y"), Durability::Sync).is_ok(), ""));
            queue("first", &|| with(|db, key| db.insert_new(key, "first").unwrap(), &key));
            queue("second", &|| with(|db, key| db.insert_new(key, "second").unwrap(), &key));
            queue("many", &|| with(|db, key| db.insert_new_many(&[(key, "many")]).unwrap()[0], &key));
            queue("range", &|| with(|db, key| db.delete_range(key..).is_ok(), &ranged));
            let swap = |db: &Db, key: &str| db.compare_and_set(key, Some(b"0"), Some(b"1")).unwrap().is_set();
            queue("swap", &|| with(swap, &ranged));
            drop(held);
            threads.into_iter().map(|(name, thread)| (name, thread.join().unwrap())).collect()
        });
        let new: Vec<_> = ["first", "second", "many"].into_iter().filter(|name| won[name]).collect();
        assert_eq!(new.len(), 1, "{won:?}");
        assert_eq!(value(&db, &key).as_deref(), Some(new[0]));
        assert_eq!(value(&db, &ranged), None, "a swap before the range is deleted by it: {won:?}");
    }
}

fn one(key: &str) -> Batch {
    let mut batch = Batch::new();
    batch.put(key, "");
    batch
}

/// Money moves between accounts by batches with expectations; a conflict is tried again. None is lost.
#[test]
fn racing_batches_with_expectations_lose_no_update() {
    let dir = fast_dir();
    let db = tiny().open(dir.path().join("store")).unwrap();
    let accounts = ["a", "b", "c"];
    accounts.iter().for_each(|account| db.put(account, "100").unwrap());
    let conflicts = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (db, conflicts) = (&db, &conflicts);
            scope.spawn(move || {
                for n in 0..sized(200, 3000) {
                    let (from, to) = (accounts[(n + thread) % 3], accounts[(n + 1) % 3]);
                    if from == to {
                        continue;
                    }
                    loop {
                        let before = [from, to].map(|account| value(db, account).unwrap());
                        let [less, more] = before.each_ref().map(|text| text.parse::<i64>().unwrap());
                        let mut batch = Batch::new();
                        batch.expect(from, &before[0]);
                        batch.expect(to, &before[1]);
                        batch.put(from, (less - 1).to_string());
                        batch.put(to, (more + 1).to_string());
                        match db.write(batch) {
                            Ok(()) => break,
                            Err(Error::Conflict { .. }) => conflicts.fetch_add(1, Ordering::Relaxed),
                            Err(error) => panic!("{error}"),
                        };
                    }
                    if n % 50 == 0 {
                        db.flush().unwrap();
                    }
                }
            });
        }
    });
    let sum: i64 = accounts.iter().map(|account| value(&db, account).unwrap().parse::<i64>().unwrap()).sum();
    assert_eq!(sum, 300, "{} conflicts", conflicts.into_inner());
}

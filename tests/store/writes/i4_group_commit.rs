//! I4 and I5 for writers that commit in one group: each gets the result of its own batch.

use crate::support::{Crash, Errno, Fault, OpKind, Rng, STORE, SimFs, eventually, tiny_on};
use sidebloom::{Batch, Db, Durability, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

fn batch(key: &str) -> Batch {
    let mut batch = Batch::new();
    batch.put(key, [7; 100]);
    batch
}

fn write(db: &Db, key: &'static str, durability: Durability) -> JoinHandle<Result<()>> {
    let (db, (tell, told)) = (db.clone(), mpsc::channel());
    let writer = std::thread::spawn(move || {
        tell.send(fs::read_link("/proc/thread-self").unwrap()).unwrap();
        db.write_with(batch(key), durability)
    });
    let stat = Path::new("/proc").join(told.recv().unwrap()).join("stat");
    // So that the next one queues after it.
    eventually("it waits", || fs::read_to_string(&stat).unwrap().contains(") S "));
    writer
}

/// A store in which one writer waits for its sync while these writers queue as the next group.
fn queued(group: &[(&'static str, Durability)], fault: Option<Fault>) -> (SimFs, Db, Vec<Result<()>>) {
    let fs = SimFs::new();
    let db = tiny_on(&fs).memtable_bytes(1 << 20).background_threads(3).open(STORE).unwrap();
    let held = fs.hold(OpKind::Sync);
    let first = write(&db, "first", Durability::Sync);
    let group: Vec<_> = group.iter().map(|(key, durability)| write(&db, key, *durability)).collect();
    if let Some(fault) = fault {
        fs.fail(fault);
    }
    drop(held);
    first.join().unwrap().unwrap();
    let told = group.into_iter().map(|writer| writer.join().unwrap()).collect();
    (fs, db, told)
}

#[track_caller]
fn assert_survive(fs: &SimFs, keys: &[&str]) {
    for seed in 0..40 {
        let db = tiny_on(&fs.crash(Crash::Power, seed)).open(STORE).unwrap();
        keys.iter().for_each(|key| assert!(db.contains_key(key).unwrap(), "{key} is lost, seed {seed}"));
    }
}

#[test]
fn i4_a_group_is_synced_if_any_of_its_writers_asks_for_it() {
    use Durability::{Os, Sync};
    for group in [[("a", Os), ("b", Sync)], [("a", Sync), ("b", Os)]] {
        let (fs, _db, told) = queued(&group, None);
        assert!(told.iter().all(Result::is_ok));
        assert_survive(&fs, &["first", "a", "b"]);
    }
}

#[test]
fn i5_no_writer_of_a_group_that_failed_is_told_that_all_is_well() {
    use Durability::{Os, Sync};
    for fault in [Fault::once(OpKind::Append, 0), Fault::once(OpKind::Sync, 1)] {
        for group in [[("a", Sync), ("b", Sync), ("c", Sync)], [("a", Sync), ("b", Os), ("c", Os)]] {
            let (fs, db, told) = queued(&group, Some(fault.with(Errno::Io)));
            assert!(told.iter().all(Result::is_err), "{fault:?}: {told:?}");
            assert!(!db.contains_key("b").unwrap(), "a write that failed is not visible");
            assert_survive(&fs, &["first"]);
        }
    }
}

/// An empty batch that asks for durability makes the writes before it durable.
#[test]
fn i4_an_empty_synced_batch_makes_the_writes_before_it_durable() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    db.write_with(batch("a"), Durability::Os).unwrap();
    db.write_with(Batch::new(), Durability::Sync).unwrap();
    assert_survive(&fs, &["a"]);
}

/// What concurrent writers were told is synced survives a power cut at any moment.
#[test]
fn i4_what_concurrent_writers_were_told_is_synced_survives_a_power_cut() {
    for seed in 0..8 {
        let fs = SimFs::new();
        let db = tiny_on(&fs).background_threads(2 + seed as usize % 4).open(STORE).unwrap();
        let (synced, stop) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(AtomicBool::new(false)));
        let writers: Vec<_> = (0..5)
            .map(|writer| {
                let (db, synced, stop) = (db.clone(), Arc::clone(&synced), Arc::clone(&stop));
                std::thread::spawn(move || {
                    let mut rng = Rng::new(seed * 100 + writer);
                    for n in 0.. {
                        let key = format!("writer {writer}, batch {n}");
                        let durability = if rng.percent(30) { Durability::Sync } else { Durability::Os };
                        db.write_with(batch(&key), durability).unwrap();
                        if durability == Durability::Sync {
                            synced.lock().unwrap().insert(key);
                        }
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                })
            })
            .collect();
        for cut in 0..6 {
            std::thread::sleep(Duration::from_millis(5));
            eventually("another write is synced", || synced.lock().unwrap().len() as u64 > cut);
            let told = synced.lock().unwrap().clone();
            let found = fs.crash(Crash::Power, seed * 100 + cut);
            let after = tiny_on(&found).open(STORE).unwrap();
            for key in &told {
                assert!(after.contains_key(key).unwrap(), "{key} is lost, seed {seed}, cut {cut}");
            }
        }
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert!(synced.lock().unwrap().len() > 5);
    }
}

//! All threads of a store at once, on a disk with temporary faults, through crashes and reopenings. At any
//! time each writer finds every write that was acknowledged; after a crash, a prefix of its writes that
//! includes every synced one. `EVERYTHING_SEED=n`, `EVERYTHING_COUNT=n` and `EVERYTHING_OPS=n` repeat a seed
//! or extend the test.

mod threads;
mod workload;

use crate::support::{Contents, Crash, Fault, OpKind, Rng, STORE, SimFs, sized, tiny_on};
use sidebloom::{Db, Error, FilterPolicy};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use threads::*;
use workload::*;

/// The disk after several failed openings, each followed by a crash.
fn fail_to_open(mut fs: SimFs, rng: &mut Rng, exists: bool) -> SimFs {
    while exists && rng.percent(40) {
        match rng.below(4) {
            0 => fs.fail(Fault::stop(rng.below(30))),
            1 => fs.limit_space(rng.below(5000)),
            2 => fs.fail(Fault::once(*rng.pick(&[OpKind::Open, OpKind::Read]), rng.below(30))),
            _ => {
                fs.fail(Fault::once(*rng.pick(&[OpKind::Create, OpKind::Sync, OpKind::Rename]), rng.below(6)))
            }
        }
        let db = options(&fs, rng).open(STORE);
        if rng.percent(50) {
            drop(db);
        }
        let crash = *rng.pick(&[Crash::Kill, Crash::Power, Crash::PowerOrdered]);
        fs = fs.crash(crash, rng.next());
    }
    fs.heal();
    fs
}

/// Repairs an intact store, with or without its manifest, perhaps after an interrupted repair.
fn check_repair(fs: &SimFs, rng: &mut Rng, found: &Contents, what: &str) -> SimFs {
    let mut fs = fs.crash(Crash::Kill, rng.next());
    let without = rng.percent(50);
    if without {
        // The renames of obsolete segments must be durable: without these or a manifest, they look live.
        sidebloom::fs::Fs::sync_dir(&fs, std::path::Path::new(STORE)).unwrap();
        sidebloom::fs::Fs::remove(&fs, &std::path::Path::new(STORE).join("MANIFEST")).unwrap();
    }
    if rng.percent(40) {
        fs.fail(Fault::stop(rng.below(20)));
        let _ = tiny_on(&fs).repair(STORE);
        let crash = *rng.pick(&[Crash::Kill, Crash::Power, Crash::PowerOrdered]);
        fs = fs.crash(crash, rng.next());
    }
    let report = tiny_on(&fs).repair(STORE).unwrap_or_else(|e| panic!("{what}, repair {without}: {e}"));
    assert!(report.lost.is_empty(), "{what}, repair {without}: {report:?}");
    let db = tiny_on(&fs).open(STORE).unwrap_or_else(|e| panic!("{what}, repair {without}: {e}"));
    same(&crate::support::contents(&db), found, &format!("{what}, repair, manifest lost: {without}"));
    db.compact().unwrap();
    same(
        &crate::support::contents(&db),
        found,
        &format!("{what}, repair, manifest lost: {without}, compacted"),
    );
    assert!(db.verify().unwrap().is_ok());
    drop(db);
    fs.crash(Crash::Kill, 2)
}

fn run(seed: u64, rounds: u64, ops: u64) {
    let mut rng = Rng::new(seed);
    let mut fs = SimFs::new();
    let mut histories: Vec<History> = (0..WRITERS)
        .map(|writer| History { writer, base: Contents::new(), ops: Vec::new(), from: 0, synced: 0 })
        .collect();
    let mut ingested = Contents::new();
    for round in 0..rounds {
        let mode = rng.below(6);
        let what = format!("seed {seed}, round {round}, mode {mode}");
        fs = fail_to_open(fs, &mut rng, round > 0);
        let db = options(&fs, &mut rng).open(STORE).unwrap_or_else(|e| panic!("{what}: {e}"));
        if round == 0 && rng.percent(50) {
            ingested = (0..400u64).map(|i| (format!("i{i:05}").into_bytes(), vec![i as u8; 40])).collect();
            db.ingest(ingested.iter().map(|kv| Ok((kv.0.clone(), kv.1.clone())))).unwrap();
        }
        let shared = Arc::new(Shared {
            db,
            fs: fs.clone(),
            may_stop: mode == 5,
            faults: AtomicBool::new(false),
            done: AtomicU64::new(0),
            histories: histories.iter().cloned().map(Mutex::new).collect(),
            salt: rng.next(),
        });
        let crash = *rng.pick(&[None, Some(Crash::Kill), Some(Crash::Power), Some(Crash::PowerOrdered)]);
        let at_once = rng.percent(50);
        let (crash_seed, delay) = (rng.next(), Duration::from_millis(rng.below(60)));
        let after = std::thread::scope(|scope| {
            let shared = &*shared;
            for writer in 0..WRITERS {
                scope.spawn(move || write(shared, writer, ops));
            }
            scope.spawn(move || disturb(shared, 1, mode));
            scope.spawn(move || disturb(shared, 2, 0));
            let crash = crash.filter(|_| at_once)?;
            std::thread::sleep(delay);
            let least: Vec<u64> = shared
                .histories
                .iter()
                .map(|h| h.lock().unwrap())
                .map(|h| if crash == Crash::Kill { h.last_ok() } else { h.synced })
                .collect();
            Some((fs.crash(crash, crash_seed), least))
        });
        shared.fs.heal();
        histories = shared.histories.iter().map(|h| h.lock().unwrap().clone()).collect();
        let is_quarantined = shared.db.stats().segments_quarantined > 0;
        if !is_quarantined {
            let report = shared.db.verify().unwrap();
            assert!(report.is_ok(), "{what}: {:?}", report.problems);
        }
        // The live store, now that faults have stopped.
        let found = crate::support::contents(&shared.db);
        for history in &mut histories {
            let last = history.last_ok();
            history.check_found(&found, last, &format!("{what}, live"));
        }
        let (after, least) = match (after, crash) {
            (Some(after), _) => after,
            (None, Some(crash)) => {
                let least = |h: &History| if crash == Crash::Kill { h.last_ok() } else { h.synced };
                (fs.crash(crash, crash_seed), histories.iter().map(least).collect())
            }
            (None, None) => {
                match shared.db.wait_for_compaction() {
                    Err(Error::Poisoned { .. }) if mode == 5 => {}
                    waited => waited.unwrap(),
                }
                let least = histories.iter().map(History::last_ok).collect();
                let Ok(shared) = Arc::try_unwrap(shared) else { panic!("somebody holds the store") };
                drop(shared.db);
                (fs.crash(Crash::Kill, crash_seed), least)
            }
        };
        fs = after;
        let copy = fs.crash(Crash::Kill, 1);
        let read_only = tiny_on(&copy).read_only(true).open(STORE).unwrap_or_else(|e| panic!("{what}: {e}"));
        let found = crate::support::contents(&read_only);
        let db = tiny_on(&fs).open(STORE).unwrap_or_else(|e| panic!("{what}: {e}"));
        same(&crate::support::contents(&db), &found, &format!("{what}: read-only and writable {crash:?}"));
        for (history, least) in histories.iter_mut().zip(least) {
            history.check_found(&found, least, &format!("{what}, after {crash:?}"));
            history.go_on_from(&found);
        }
        drop((db, read_only));
        if rng.percent(40) {
            fs = check_repair(&fs, &mut rng, &found, &what);
        }
        let db = tiny_on(&fs).open(STORE).unwrap_or_else(|e| panic!("{what}: {e}"));
        let of_ingest: Contents =
            found.iter().filter(|(k, _)| k.starts_with(b"i")).map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(of_ingest, ingested, "{what}: ingested rows");
        for (key, value) in &found {
            assert_eq!(db.get(key).unwrap().as_deref(), Some(value.as_slice()), "{what}");
        }
    }
}

/// Opens a store with damaged blocks and uses it: every answer is right or an error that names a damaged
/// file. Then repairs it.
fn damaged(seed: u64) {
    let mut rng = Rng::new(seed);
    let fs = SimFs::new();
    let key = |i: u64| format!("key{i:04}").into_bytes();
    let mut live = Contents::new();
    let mut touched = std::collections::BTreeMap::<Vec<u8>, Vec<Option<Vec<u8>>>>::new();
    for round in 0..4 {
        let db = options(&fs, &mut rng).open(STORE).unwrap();
        for _ in 0..rng.below(1500) {
            let k = key(rng.below(400));
            if rng.percent(40) {
                db.delete(&k).unwrap();
                live.remove(&k);
                touched.entry(k).or_default().push(None);
            } else {
                let value: Vec<u8> = (0..rng.below(80)).map(|_| rng.next() as u8).collect();
                db.put(&k, &value).unwrap();
                live.insert(k.clone(), value.clone());
                touched.entry(k).or_default().push(Some(value));
            }
            match rng.below(200) {
                0 => db.flush().unwrap(),
                1 => drop(db.compact()),
                2 => {
                    let (a, b) = (key(rng.below(400)), key(rng.below(400)));
                    drop(db.compact_range(a.clone().min(b.clone())..a.max(b)));
                }
                3 => drop(db.rebuild_filters(FilterPolicy::bits_per_key(3.0 + rng.below(9) as f64))),
                4 => drop(db.wait_for_compaction()),
                _ => {}
            }
        }
        check_damaged(&db, &live, &format!("seed {seed}, round {round}"));
        if rng.percent(50) {
            drop(db.compact());
            check_damaged(&db, &live, &format!("seed {seed}, round {round}, compacted"));
        }
        if rng.percent(70) {
            drop(db.wait_for_compaction());
        }
        drop(db);
        let ending = if rng.percent(80) { ".segment" } else { ".filter" };
        let mut files = fs.files();
        files.retain(|path| path.starts_with(STORE) && path.to_str().unwrap().ends_with(ending));
        for _ in 0..rng.below(3) {
            if let Some(path) = files.get(rng.below(files.len().max(1) as u64) as usize) {
                let mut bytes = fs.read(path).unwrap();
                let at = rng.below(bytes.len() as u64 / 2) as usize;
                bytes[at] ^= 1 << rng.below(8);
                fs.write(path, bytes);
            }
        }
    }
    let report = tiny_on(&fs).repair(STORE).unwrap();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let check = |what: &str| {
        let found = crate::support::contents(&db);
        for i in 0..400 {
            let k = key(i);
            let lost = report.lost.iter().any(|range| {
                std::ops::RangeBounds::<Vec<u8>>::contains(&(range.first.clone(), range.last.clone()), &k)
            });
            let (found, expected) = (found.get(&k), live.get(&k));
            assert!(
                lost || found == expected,
                "seed {seed}, {what}: {}: {:?}",
                k.escape_ascii(),
                report.lost
            );
            assert_eq!(db.get(&k).unwrap().as_deref(), found.map(Vec::as_slice));
            if let Some(found) = found {
                assert!(touched[&k].contains(&Some(found.clone())), "a value that never was");
            }
        }
    };
    check("repaired");
    db.compact().unwrap();
    check("compacted");
    assert!(db.verify().unwrap().is_ok());
}

fn check_damaged(db: &Db, live: &Contents, what: &str) {
    let is_damage = |error: &Error| matches!(error, Error::Corruption { .. });
    for i in 0..400u64 {
        let key = format!("key{i:04}").into_bytes();
        match db.get(&key) {
            Ok(found) => assert_eq!(
                found.as_deref(),
                live.get(&key).map(Vec::as_slice),
                "{what}: {}",
                key.escape_ascii()
            ),
            Err(error) => assert!(is_damage(&error), "{error}"),
        }
    }
    let mut expected = live.iter();
    for item in db.iter() {
        match item {
            Ok((key, value)) => {
                assert_eq!(expected.next(), Some((&key, &value.to_vec())), "{what}, forwards")
            }
            Err(error) => assert!(is_damage(&error), "{error}"),
        }
    }
    let mut expected = live.iter().rev();
    for item in db.iter().rev() {
        match item {
            Ok((key, value)) => {
                assert_eq!(expected.next(), Some((&key, &value.to_vec())), "{what}, backwards")
            }
            Err(error) => assert!(is_damage(&error), "{error}"),
        }
    }
}

#[test]
fn with_damaged_blocks_every_answer_is_right_or_the_error() {
    let from = setting("EVERYTHING_SEED", 1);
    for seed in from..from + setting("EVERYTHING_COUNT", 6) {
        damaged(seed);
    }
}

fn watched(seed: u64, rounds: u64, ops: u64) {
    let (send, receive) = channel();
    let thread = std::thread::spawn(move || {
        run(seed, rounds, ops);
        send.send(()).unwrap();
    });
    match receive.recv_timeout(Duration::from_secs(100)) {
        Ok(()) => {}
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("seed {seed} hangs"),
        Err(_) => {
            let _ = thread.join();
            panic!("seed {seed} failed");
        }
    }
}

/// A number from the environment, for longer tests or to repeat a seed.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn everything_at_once_with_passing_faults_and_crashes() {
    let from = setting("EVERYTHING_SEED", 1);
    for seed in from..from + setting("EVERYTHING_COUNT", sized(3, 10)) {
        watched(seed, 4, setting("EVERYTHING_OPS", 150));
    }
}

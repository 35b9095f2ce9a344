//! The threads that use the store under test.

use super::workload::*;
use crate::support::{Contents, Errno, Fault, OpKind, Rng, tiny_on};
use sidebloom::{Batch, Db, Durability, Error, FilterPolicy};
use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub fn write(shared: &Shared, writer: u64, ops: u64) {
    MAY_STOP.set(shared.may_stop);
    let mut rng = Rng::new(shared.salt ^ (writer + 1) << 40);
    let mut live = shared.histories[writer as usize].lock().unwrap().base.clone();
    let (prefix, from) = {
        let history = shared.histories[writer as usize].lock().unwrap();
        (history.prefix(), history.from)
    };
    for i in from + 1..=from + ops {
        let mut changes = vec![([&prefix[..], b"count"].concat(), Some(i.to_string().into_bytes()))];
        for _ in 0..rng.below(8) {
            let key = [&prefix[..], format!("key{:04}", rng.below(KEYS)).as_bytes()].concat();
            let len = if rng.percent(3) { rng.below(3000) } else { rng.below(60) };
            let value = (0..len).map(|_| rng.next() as u8).collect();
            changes.push((key, (!rng.percent(35)).then_some(value)));
        }
        let mut batch = Batch::new();
        for (key, value) in &changes {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        let mut op = Op { changes, ok: false };
        shared.histories[writer as usize].lock().unwrap().ops.push(op.clone());
        let durability = if rng.percent(15) { Durability::Sync } else { Durability::Os };
        let outcome = shared.db.write_with(batch, durability);
        match &outcome {
            Ok(()) => {
                op.ok = true;
                apply(&mut live, &op);
                let mut history = shared.histories[writer as usize].lock().unwrap();
                history.ops.last_mut().unwrap().ok = true;
                if durability == Durability::Sync {
                    history.synced = i;
                }
            }
            Err(error) => allowed(error, shared.faults.load(Ordering::SeqCst)),
        }
        match rng.below(40) {
            0 => match shared.db.flush() {
                Ok(()) => {
                    let mut history = shared.histories[writer as usize].lock().unwrap();
                    history.synced = history.last_ok();
                }
                Err(error) => allowed(&error, shared.faults.load(Ordering::SeqCst)),
            },
            1 => match shared.db.sync() {
                Ok(()) => {
                    let mut history = shared.histories[writer as usize].lock().unwrap();
                    history.synced = history.last_ok();
                }
                Err(error) => allowed(&error, shared.faults.load(Ordering::SeqCst)),
            },
            2 => check_scan(shared, &prefix, &live, &mut rng),
            _ => {}
        }
        for _ in 0..3 {
            let key = [&prefix[..], format!("key{:04}", rng.below(KEYS)).as_bytes()].concat();
            match shared.db.get(&key) {
                Ok(found) => assert_eq!(
                    found.as_deref(),
                    live.get(&key).map(Vec::as_slice),
                    "op {i}: {}",
                    key.escape_ascii()
                ),
                Err(error) => allowed(&error, shared.faults.load(Ordering::SeqCst)),
            }
        }
    }
    shared.done.fetch_add(1, Ordering::SeqCst);
}

/// Iterates over a writer's own keys from both ends.
pub fn check_scan(shared: &Shared, prefix: &[u8], live: &Contents, rng: &mut Rng) {
    let lower = [prefix, format!("key{:04}", rng.below(KEYS)).as_bytes()].concat();
    let upper = [prefix, format!("key{:04}", rng.below(KEYS)).as_bytes()].concat();
    if lower > upper {
        return;
    }
    let expected: Vec<_> =
        live.range(lower.clone()..upper.clone()).map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut range = shared.db.range(lower..upper);
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let forward = rng.percent(50);
        let item = if forward { range.next() } else { range.next_back() };
        match item {
            Some(Ok((key, value))) => {
                if forward { &mut front } else { &mut back }.push((key, value.to_vec()));
            }
            Some(Err(error)) => return allowed(&error, shared.faults.load(Ordering::SeqCst)),
            None => break,
        }
    }
    back.reverse();
    front.extend(back);
    assert_eq!(front, expected, "a walk over own keys");
}

/// Calls everything that may run concurrently with writers, and plans faults.
pub fn disturb(shared: &Shared, which: u64, mode: u64) {
    MAY_STOP.set(shared.may_stop);
    let mut rng = Rng::new(shared.salt ^ (which << 20));
    let mut copies = 0;
    let faulty = || shared.faults.load(Ordering::SeqCst);
    while shared.done.load(Ordering::SeqCst) < WRITERS {
        match mode {
            1 if rng.percent(30) => {
                shared.faults.store(true, Ordering::SeqCst);
                shared.fs.fail(Fault::once(
                    *rng.pick(&[OpKind::Read, OpKind::Read, OpKind::Open, OpKind::Inspect, OpKind::Map]),
                    rng.below(200),
                ));
            }
            5 if rng.percent(5) => {
                shared.faults.store(true, Ordering::SeqCst);
                let kind = *rng.pick(&[
                    OpKind::Sync,
                    OpKind::Append,
                    OpKind::Create,
                    OpKind::Rename,
                    OpKind::SyncDir,
                ]);
                let fault = Fault::once(kind, rng.below(60));
                shared.fs.fail(if rng.percent(50) { fault.short() } else { fault });
            }
            4 if rng.percent(40) => {
                shared.faults.store(true, Ordering::SeqCst);
                let kind = *rng.pick(&[OpKind::Sync, OpKind::Append, OpKind::Create, OpKind::Rename]);
                let fault = Fault::once(kind, rng.below(60)).with(Errno::NoSpace);
                shared.fs.fail(if rng.percent(50) { fault.short() } else { fault });
            }
            2 if rng.percent(20) => {
                shared.faults.store(true, Ordering::SeqCst);
                shared.fs.limit_space(rng.below(20_000));
                std::thread::sleep(Duration::from_millis(rng.below(60)));
                shared.fs.heal();
            }
            3 if rng.percent(40) => {
                shared.faults.store(true, Ordering::SeqCst);
                let kind = *rng.pick(&[OpKind::Open, OpKind::Create, OpKind::SyncDir, OpKind::Map]);
                shared.fs.fail(Fault::once(kind, rng.below(50)).with(Errno::TooManyFiles));
            }
            _ => {}
        }
        let outcome = match rng.below(10) {
            0 => shared.db.compact(),
            1 | 2 => {
                let key =
                    |rng: &mut Rng| format!("t{}/key{:04}", rng.below(WRITERS), rng.below(KEYS)).into_bytes();
                let (a, b) = (key(&mut rng), key(&mut rng));
                shared
                    .db
                    .compact_range((Bound::Included(a.clone().min(b.clone())), Bound::Excluded(a.max(b))))
            }
            3 => {
                shared.db.rebuild_filters(FilterPolicy::bits_per_key(3.0 + rng.below(12) as f64)).map(|_| ())
            }
            4 => shared.db.warm(),
            5 => check_snapshot(&shared.db, &mut rng),
            6 if mode != 2 => {
                copies += 1;
                check_copy(shared, &format!("disk/copy{}-{which}-{copies}", shared.salt), mode)
            }
            7 => shared.db.verify().map(|report| {
                assert!(report.is_ok() || faulty(), "{:?}", report.problems);
            }),
            _ => {
                std::thread::sleep(Duration::from_millis(rng.below(5)));
                Ok(())
            }
        };
        if let Err(error) = outcome {
            match error {
                Error::InvalidArgument(what) if what.contains("without filters") => {}
                error => allowed(&error, faulty()),
            }
        }
    }
}

/// A snapshot returns the same rows from both ends, early and late.
pub fn check_snapshot(db: &Db, rng: &mut Rng) -> sidebloom::Result<()> {
    let snapshot = db.snapshot();
    let mut late = snapshot.iter();
    let first = late.next().transpose()?;
    let collect = |items: &mut dyn Iterator<Item = sidebloom::Result<(Vec<u8>, sidebloom::Value)>>| {
        items.map(|kv| kv.map(|(k, v)| (k, v.to_vec()))).collect::<sidebloom::Result<Contents>>()
    };
    let early = collect(&mut snapshot.iter())?;
    std::thread::sleep(Duration::from_millis(rng.below(40)));
    assert_eq!(collect(&mut snapshot.iter().rev())?, early, "a snapshot changed");
    let mut rest = collect(&mut late)?;
    rest.extend(first.map(|(k, v)| (k, v.to_vec())));
    assert_eq!(rest, early, "a walk that was begun early");
    for (key, value) in early.iter().take(50) {
        assert_eq!(snapshot.get(key)?.as_deref(), Some(value.as_slice()));
    }
    Ok(())
}

pub fn check_copy(shared: &Shared, to: &str, mode: u64) -> sidebloom::Result<()> {
    let least: Vec<u64> = shared.histories.iter().map(|h| h.lock().unwrap().last_ok()).collect();
    shared.db.checkpoint(to)?;
    if mode != 0 {
        return Ok(());
    }
    let copy = tiny_on(&shared.fs).read_only(true).open(to)?;
    let found: Contents =
        copy.iter().map(|kv| kv.map(|(k, v)| (k, v.to_vec()))).collect::<sidebloom::Result<_>>()?;
    for (history, least) in shared.histories.iter().zip(least) {
        let mut history = history.lock().unwrap().clone();
        // One operation may have succeeded without being recorded yet.
        if let Some(op) = history.ops.last_mut() {
            op.ok = true;
        }
        history.check_found(&found, least, "checkpoint");
    }
    Ok(())
}

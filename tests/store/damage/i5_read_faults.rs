//! I5, the other half: a failed read is not a failed write. The reader gets an error, the store keeps taking
//! writes, and no answer is ever wrong.

use crate::support::{
    Contents, Errno, Fault, OpKind, STORE, SimFs, assert_holds, contents, promptly, sized, tiny_on,
};
use sidebloom::{Db, Durability, Error, FilterPolicy};

const ROUNDS: u32 = 60;

fn key(n: u32) -> Vec<u8> {
    format!("key{:04}", n * 37 % 300).into_bytes()
}

/// Checks that an error comes from a failed read and names a file of the store.
#[track_caller]
fn assert_is_a_read_error(error: &Error) {
    let text = error.to_string();
    assert!(matches!(error, Error::Io { .. } | Error::Corruption { .. }) && text.contains(STORE), "{text}");
}

/// Writes, reads, flushes and compacts while reads fail. Writes must succeed; reads return the right answer
/// or an error.
fn work(db: &Db) -> Contents {
    let mut expected = Contents::new();
    for i in 0..ROUNDS {
        for n in i * 5..i * 5 + 5 {
            let durability = if n % 11 == 0 { Durability::Sync } else { Durability::Os };
            let mut batch = sidebloom::Batch::new();
            match n % 6 {
                5 => {
                    batch.delete(key(n / 2));
                    expected.remove(&key(n / 2));
                }
                _ => {
                    batch.put(key(n), [n as u8; 50]);
                    expected.insert(key(n), vec![n as u8; 50]);
                }
            }
            db.write_with(batch, durability).unwrap_or_else(|error| panic!("write {n}: {error}"));
        }
        for n in (0..300).step_by(7) {
            match db.get(key(n)) {
                Ok(found) => {
                    assert_eq!(found.as_deref(), expected.get(&key(n)).map(Vec::as_slice), "key {n}")
                }
                Err(error) => assert_is_a_read_error(&error),
            }
        }
        let walked: Result<Contents, Error> =
            db.iter().map(|kv| kv.map(|(key, value)| (key, value.to_vec()))).collect();
        match walked {
            Ok(found) => assert_eq!(found, expected, "round {i}"),
            Err(error) => assert_is_a_read_error(&error),
        }
        match i % 20 {
            6 => db.flush().unwrap(),
            12 => drop(db.compact().map_err(|error| assert_is_a_read_error(&error))),
            18 => drop(
                db.rebuild_filters(FilterPolicy::bits_per_key(9.0)).map_err(|e| assert_is_a_read_error(&e)),
            ),
            _ => {}
        }
    }
    db.flush().unwrap();
    expected
}

/// `false` if the workload ended before the fault.
fn fail(fault: Fault, threads: usize) -> bool {
    let fs = SimFs::new();
    let open = |fs: &SimFs| tiny_on(fs).background_threads(threads).open(STORE);
    let db = open(&fs).unwrap();
    fs.fail(fault);
    let expected = work(&db);
    let struck = fs.faults_left() == 0 || fault.forever;
    fs.heal();
    // Once reads work again, everything is back, including quarantined segments, also after reopening.
    assert_holds(&db, &expected);
    db.put(b"after", b"the fault").unwrap();
    db.delete(b"after").unwrap();
    promptly("closing", move || drop(db));
    let db = open(&fs).unwrap();
    assert_holds(&db, &expected);
    assert!(db.verify().unwrap().is_ok());
    db.compact().unwrap();
    assert_eq!(contents(&db), expected);
    struck
}

fn fail_each(kind: OpKind, step: u64, plan: impl Fn(Fault) -> Fault) {
    let mut struck = 0;
    for after in (0..).step_by(step as usize) {
        let fault = plan(Fault::once(kind, after));
        let outcome = std::panic::catch_unwind(|| fail(fault, [2, 3, 4, 8][(after / step % 4) as usize]));
        match outcome {
            Ok(true) => struck += 1,
            Ok(false) => break,
            Err(panic) => {
                eprintln!("{kind:?} number {after} after opening failed: {fault:?}");
                std::panic::resume_unwind(panic);
            }
        }
        if struck == sized(16, 60) {
            break;
        }
    }
    assert!(struck >= 3, "the workload has too few {kind:?}");
}

#[test]
fn i5_a_read_that_fails_once_stops_no_write_and_changes_no_answer() {
    fail_each(OpKind::Read, 29, |fault| fault);
}

/// If opening a file fails once, no write stops and no answer changes.
#[test]
fn i5_a_file_that_fails_to_open_once_stops_no_write_and_changes_no_answer() {
    fail_each(OpKind::Open, 1, |fault| fault);
}

#[test]
fn i5_a_map_that_fails_once_stops_no_write_and_changes_no_answer() {
    fail_each(OpKind::Map, 1, |fault| fault);
}

/// All reads fail from some moment on, as on a dead disk. Memory still serves reads, and writes succeed.
#[test]
fn i5_reads_that_fail_for_good_stop_no_write() {
    for after in [0, 5, 40, 200] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).memtable_bytes(1 << 20).open(STORE).unwrap();
        (0..200).for_each(|n| db.put(key(n), [n as u8; 50]).unwrap());
        db.flush().unwrap();
        fs.fail(Fault { forever: true, ..Fault::once(OpKind::Read, after).with(Errno::Io) });
        for n in 0..200u32 {
            db.put(format!("new{n}"), b"value").unwrap();
            assert!(db.get(format!("new{n}")).unwrap().is_some());
            if let Err(error) = db.get(key(n)) {
                assert_is_a_read_error(&error);
            }
        }
        db.sync().unwrap();
        fs.heal();
        (0..200).for_each(|n| assert!(db.get(format!("new{n}")).unwrap().is_some()));
    }
}

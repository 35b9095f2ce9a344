//! I4: what was acknowledged as synced is never lost silently. Logs are deleted, truncated, zeroed or get
//! flipped bits; the store reports it, and repair recovers what is readable.

mod misplaced_gap;
mod unexpected;
mod without_manifest;

use crate::support::{Crash, Errno, Fault, LogRecord, OpKind, STORE, SimFs, contents, damage_of, tiny_on};
use sidebloom::filter::Verdict;
use sidebloom::fs::Fs;
use sidebloom::{Batch, Db, Durability, Error, Options, RepairReport};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn options(fs: &SimFs) -> Options {
    Options::new().filesystem(Arc::new(fs.clone()))
}

fn put(db: &Db, key: impl AsRef<[u8]>, value: &[u8], durability: Durability) {
    let mut batch = Batch::new();
    batch.put(key, value);
    db.write_with(batch, durability).unwrap();
}

fn key(n: u64) -> String {
    format!("key {n:04}")
}

/// A closed store with synced writes in its log, and the log's path.
fn closed(writes: u64, value: &[u8]) -> (SimFs, PathBuf) {
    let fs = SimFs::new();
    let db = options(&fs).open(STORE).unwrap();
    (0..writes).for_each(|n| put(&db, key(n), value, Durability::Sync));
    drop(db);
    let log = logs(&fs).pop().unwrap();
    (fs, log)
}

fn logs(fs: &SimFs) -> Vec<PathBuf> {
    fs.files().into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "wal")).collect()
}

fn with(fs: &SimFs, path: &Path, bytes: &[u8]) -> SimFs {
    let fs = fs.crash(Crash::Kill, 0);
    fs.write(path, bytes);
    fs
}

/// The offsets of a log's records, and of its end.
fn bounds(log: &[u8]) -> Vec<usize> {
    let mut bounds = vec![40];
    while let Some(rest) = log.get(*bounds.last().unwrap()..).filter(|rest| !rest.is_empty()) {
        bounds.push(bounds.last().unwrap() + LogRecord::of(rest).len);
    }
    assert_eq!(bounds.last(), Some(&log.len()));
    bounds
}

/// Checks that both kinds of opening fail with an error that names the log and an offset up to `at`.
#[track_caller]
fn assert_refused(fs: &SimFs, log: &Path, at: usize, context: &str) {
    for read_only in [true, false] {
        match options(fs).read_only(read_only).open(STORE) {
            Ok(_) => panic!("{context}: opened without a word"),
            Err(error) => {
                let (file, offset) = damage_of(&error);
                assert_eq!(Path::new(&file), log, "{context}: {error}");
                assert!(offset as usize <= at, "{context}: {error}");
                assert!(error.to_string().contains("sidebloom repair"), "{context}: {error}");
            }
        }
    }
}

#[test]
fn i4_a_log_that_was_deleted_after_a_clean_close_is_missed() {
    for writes in [0, 1, 5] {
        let (fs, log) = closed(writes, b"v");
        fs.remove(&log).unwrap();
        assert_refused(&fs, &log, 0, "deleted");
    }
}

#[test]
fn i4_a_log_cut_anywhere_after_a_clean_close_is_damage() {
    let (fs, log) = closed(3, b"v");
    let bytes = fs.read(&log).unwrap();
    for len in 0..bytes.len() {
        assert_refused(&with(&fs, &log, &bytes[..len]), &log, len, &format!("cut to {len} bytes"));
    }
}

#[test]
fn i4_i6_each_flipped_bit_of_a_log_is_damage_in_its_last_record_too() {
    let (closed, log) = closed(1, b"v");
    let open = SimFs::new();
    let db = options(&open).open(STORE).unwrap();
    put(&db, key(0), b"v", Durability::Sync);
    for (fs, how) in [(closed, "closed"), (open.crash(Crash::Kill, 0), "killed")] {
        let bytes = fs.read(&log).unwrap();
        // The version gives its own error if the checksum matches, and otherwise none.
        let covered = (0..bytes.len()).filter(|at| !(8..12).contains(at));
        for (at, bit) in covered.flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert_refused(&with(&fs, &log, &flipped), &log, at, &format!("{how}, bit {bit} of byte {at}"));
        }
    }
}

#[test]
fn i4_zeros_in_the_middle_of_a_synced_log_are_damage() {
    let (fs, log) = closed(40, &[7; 1000]);
    let mut bytes = fs.read(&log).unwrap();
    bytes[8192..12288].fill(0);
    assert_refused(&with(&fs, &log, &bytes), &log, 8192, "4 KiB of zeros");
    bytes[8192..].fill(0);
    assert_refused(&with(&fs, &log, &bytes), &log, 8192, "zeros to the end");
}

/// What was synced before a flush is known after a crash without a close.
#[test]
fn i4_what_was_synced_before_a_flush_is_known_after_a_crash() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    for n in 0..40 {
        put(&db, key(n), &[3; 700], Durability::Sync);
    }
    db.wait_for_compaction().unwrap();
    let fs = fs.crash(Crash::Power, 1);
    let last = logs(&fs).pop().unwrap();
    fs.remove(&last).unwrap();
    assert_refused(&fs, &last, 0, "deleted after a crash");
}

/// A store that is repeatedly opened and closed stays openable, whatever its log holds.
#[test]
fn a_store_opened_and_closed_in_turn_stays_openable_with_any_log() {
    let fs = SimFs::new();
    for round in 0..20u64 {
        let db = options(&fs).open(STORE).unwrap();
        assert_eq!(contents(&db).len() as u64, round.div_ceil(2));
        if round % 2 == 0 {
            put(&db, key(round), b"v", if round % 4 == 0 { Durability::Os } else { Durability::Sync });
        }
        drop(db);
        assert_eq!(contents(&options(&fs).read_only(true).open(STORE).unwrap()).len() as u64, round / 2 + 1);
        let closed = fs.crash(Crash::Power, round);
        drop(options(&closed).open(STORE).unwrap());
    }
}

/// A store killed while a flush waited, with two fully synced logs. Returns the number of writes in each.
fn two_logs() -> (SimFs, Vec<u64>) {
    let fs = SimFs::new();
    let db = options(&fs).memtable_bytes(8 << 10).open(STORE).unwrap();
    let held = [fs.hold(OpKind::Open), fs.hold(OpKind::Rename)];
    let mut n = 0;
    let mut seen = Vec::new();
    while seen.len() < 2 {
        put(&db, key(n), &[n as u8 | 1; 500], Durability::Sync);
        n += 1;
        let first = fs.read(&logs(&fs)[0]).unwrap();
        if logs(&fs).len() == 2 && n > 2 * (bounds(&first).len() as u64 - 1) - 4 {
            let second = fs.read(&logs(&fs)[1]).unwrap();
            seen = vec![bounds(&first).len() as u64 - 1, bounds(&second).len() as u64 - 1];
        }
    }
    let killed = fs.crash(Crash::Kill, 0);
    drop(held);
    assert!(seen[0] > 4 && seen[1] > 2 && seen[0] + seen[1] == n, "{seen:?}");
    (killed, seen)
}

#[track_caller]
fn repair(fs: &SimFs) -> RepairReport {
    options(fs).repair(STORE).unwrap()
}

/// Checks that the store has exactly the writes with these numbers, takes more, and keeps them on reopening.
#[track_caller]
fn assert_works(fs: &SimFs, expected: impl IntoIterator<Item = u64>) {
    let mut expected: Vec<String> = expected.into_iter().map(key).collect();
    let found = |db: &Db| -> Vec<String> {
        contents(db).into_keys().map(|key| String::from_utf8(key).unwrap()).collect()
    };
    assert_eq!(found(&options(fs).read_only(true).open(STORE).unwrap()), expected);
    let db = options(fs).open(STORE).unwrap();
    assert_eq!(found(&db), expected);
    put(&db, "new", b"first", Durability::Sync);
    drop(db);
    expected.push("new".into());
    for value in ["first", "second", "third"] {
        let db = options(fs).open(STORE).unwrap();
        assert_eq!(found(&db), expected);
        assert_eq!(db.get("new").unwrap().as_deref(), Some(value.as_bytes()));
        put(&db, "new", if value == "first" { b"second" } else { b"third" }, Durability::Sync);
        assert!(db.verify().unwrap().is_ok());
        if value == "second" {
            db.compact().unwrap();
        }
    }
}

/// A log that lost its end before a synced log is an error, and repair keeps both sides of the gap.
#[test]
fn a_log_that_lost_its_end_is_an_error_and_repair_keeps_both_sides() {
    let (fs, counts) = two_logs();
    let [first, second] = &logs(&fs)[..] else { panic!() };
    let bytes = fs.read(first).unwrap();
    let cut = bounds(&bytes)[counts[0] as usize - 2];
    let fs = with(&fs, first, &bytes[..cut]);
    assert_refused(&fs, second, 0, "a gap between two logs");

    let report = repair(&fs);
    let (lost, end) = (counts[0] - 2, counts[0] + counts[1]);
    let logs = report.logs.unwrap();
    assert_eq!(logs.operations_lost, [lost + 1..=lost + 2], "two operations, counted from 1");
    assert_eq!((logs.operations_kept, logs.bytes_unreadable), (end - 2, 0));
    assert!(report.rebuilt && report.set_aside.is_empty());
    assert_works(&fs, (0..lost).chain(counts[0]..end));
}

/// A store closed with two logs. Nothing was synced before closing.
fn two_logs_synced_by_closing() -> SimFs {
    for _ in 0..20 {
        let fs = SimFs::new();
        let db = options(&fs).memtable_bytes(8 << 10).open(STORE).unwrap();
        let held = [fs.hold(OpKind::Open), fs.hold(OpKind::Rename)];
        let mut n = 0;
        while logs(&fs).len() < 3 || bounds(&fs.read(&logs(&fs)[2]).unwrap()).len() < 4 {
            put(&db, key(n), &[7; 500], Durability::Os);
            n += 1;
        }
        // The first memtable is being flushed. The second one waits, and is left in its log on closing.
        let closing = std::thread::spawn(move || drop(db));
        std::thread::sleep(Duration::from_millis(50));
        drop(held);
        closing.join().unwrap();
        if logs(&fs).len() == 2 {
            return fs;
        }
    }
    panic!("closing never came before the second flush");
}

/// A log that lost its end is noticed, although only closing synced it and the log after it.
#[test]
fn i4_a_log_that_lost_its_end_is_missed_though_only_closing_synced_it() {
    let fs = two_logs_synced_by_closing();
    let [first, second] = &logs(&fs)[..] else { panic!() };
    let bytes = fs.read(first).unwrap();
    for cut in bounds(&bytes).into_iter().rev().skip(1) {
        assert_refused(&with(&fs, first, &bytes[..cut]), second, 0, "a gap between two logs");
    }
}

/// A repair keeps the batches after the damage and in later logs, and says what is lost.
#[test]
fn a_repair_keeps_batches_after_damage_and_in_later_logs() {
    let (sound, counts) = two_logs();
    let first = &logs(&sound)[0];
    let bytes = sound.read(first).unwrap();
    let (bounds, end) = (bounds(&bytes), counts[0] + counts[1]);
    for (n, at) in [(1, bounds[1] + 5), (2, bounds[2] + 60), (3, bounds[4] - 1)] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        let fs = with(&sound, first, &damaged);
        assert_refused(&fs, first, at, "a flipped bit");
        let report = repair(&fs);
        let expected = report.logs.unwrap();
        assert_eq!(expected.operations_lost, [n + 1..=n + 1]);
        assert_eq!(expected.operations_kept, end - 1);
        let record = bounds[n as usize + 1] - bounds[n as usize];
        assert_eq!(expected.bytes_unreadable, record as u64);
        assert_eq!(report.set_aside.len(), 1);
        assert_eq!(damage_of(&report.set_aside[0]), (first.display().to_string(), bounds[n as usize] as u64));
        let aside = PathBuf::from(format!("{}.damaged", first.display()));
        assert_eq!(fs.read(&aside), Some(damaged), "the damaged file stays");
        assert_eq!(repair(&fs).logs, None, "in order now");
        assert_works(&fs, (0..end).filter(|other| *other != n));
    }
}

#[test]
fn a_repair_keeps_every_batch_of_a_log_that_has_the_header_of_a_later_one() {
    let (sound, counts) = two_logs();
    let [first, second] = &logs(&sound)[..] else { panic!() };
    let [mut bytes, mut header] = [first, second].map(|log| sound.read(log).unwrap());
    header.truncate(36);
    header[28..].copy_from_slice(&(counts[0] + counts[1] + 1).to_le_bytes()); // Its first sequence number.
    header.extend(crc32fast::hash(&header).to_le_bytes());
    bytes[..40].copy_from_slice(&header);
    let fs = with(&sound, first, &bytes);
    let refused = options(&fs).open(STORE).map(|_| ()).unwrap_err();
    assert_eq!(damage_of(&refused), (first.display().to_string(), 0));
    let logs = repair(&fs).logs.unwrap();
    assert_eq!((logs.operations_lost, logs.bytes_unreadable), (vec![], 40));
    assert_works(&fs, 0..counts[0] + counts[1]);
}

/// A repair of damaged logs can crash at each of its writes and start again.
#[test]
fn a_repair_of_damaged_logs_can_crash_at_each_write_and_start_again() {
    let (fs, counts) = two_logs();
    let first = &logs(&fs)[0];
    let mut bytes = fs.read(first).unwrap();
    let at = bounds(&bytes)[2] + 50;
    bytes[at] ^= 1;
    let fs = with(&fs, first, &bytes);
    for step in 0.. {
        for (seed, crash) in [Crash::Kill, Crash::PowerOrdered, Crash::Power].into_iter().enumerate() {
            let stopped = fs.crash(Crash::Kill, 0);
            stopped.fail(Fault::stop(step).with(Errno::Io));
            let outcome = options(&stopped).repair(STORE);
            let found = stopped.crash(crash, step * 3 + seed as u64);
            let again = repair(&found);
            if outcome.is_ok() {
                assert_eq!(again.logs, None, "nothing left to do");
            }
            let db = options(&found).read_only(true).open(STORE).unwrap();
            assert_eq!(contents(&db).len() as u64, counts[0] + counts[1] - 1, "step {step}, {crash:?}");
            assert!(db.get(key(2)).unwrap().is_none());
            let kept = found.files().iter().any(|path| found.read(path).as_ref() == Some(&bytes));
            assert!(kept, "step {step}, {crash:?}: the damaged log is gone");
            if outcome.is_ok() && crash == Crash::Power {
                return;
            }
        }
    }
}

#[test]
fn a_deleted_log_is_repaired_to_a_store_that_says_how_much_is_lost() {
    let (fs, log) = closed(5, b"v");
    fs.remove(&log).unwrap();
    let report = repair(&fs);
    let expected = report.logs.unwrap();
    assert_eq!((expected.operations_kept, expected.operations_lost), (0, vec![1..=5]));
    assert_works(&fs, []);
}

/// After a repair, new writes have greater sequence numbers than anything in segments.
#[test]
fn after_a_repair_new_writes_have_greater_numbers_than_any_segment() {
    let fs = SimFs::new();
    let db = options(&fs).open(STORE).unwrap();
    (0..10u8).for_each(|n| db.put(b"k", [n]).unwrap());
    let log = logs(&fs).pop().unwrap();
    let bytes = fs.read(&log).unwrap();
    db.flush().unwrap();
    drop(db);
    // Manifest and log are lost, except for the log's start, which is older than the segment's contents.
    fs.remove(&Path::new(STORE).join("MANIFEST")).unwrap();
    logs(&fs).iter().for_each(|log| fs.remove(log).unwrap());
    fs.write(&log, &bytes[..bounds(&bytes)[1]]);
    repair(&fs);
    let db = options(&fs).open(STORE).unwrap();
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some([9].as_slice()));
    db.put(b"k", b"new").unwrap();
    for _ in 0..2 {
        assert_eq!(db.get(b"k").unwrap().as_deref(), Some(b"new".as_slice()));
        assert_eq!(contents(&db)[b"k".as_slice()], b"new");
        db.compact().unwrap();
    }
}

/// A log after a gap that segments fill is kept when the manifest is lost.
#[test]
fn a_log_after_a_gap_that_segments_fill_is_kept_without_the_manifest() {
    let fs = SimFs::new();
    let db = options(&fs).open(STORE).unwrap();
    put(&db, key(0), b"v", Durability::Os);
    db.delete(key(1)).unwrap();
    let first = logs(&fs).pop().unwrap();
    let bytes = fs.read(&first).unwrap();
    put(&db, key(0), b"newer", Durability::Os);
    put(&db, key(1), b"v", Durability::Os);
    db.flush().unwrap();
    put(&db, key(2), b"v", Durability::Os);
    drop(db);
    fs.remove(&Path::new(STORE).join("MANIFEST")).unwrap();
    fs.write(&first, &*bytes);
    let report = repair(&fs);
    assert!(report.logs.is_some_and(|logs| logs.operations_lost.is_empty() && logs.operations_kept == 3));
    for read_only in [true, false] {
        let db = options(&fs).read_only(read_only).open(STORE).unwrap();
        assert_eq!(db.get(key(0)).unwrap().as_deref(), Some(b"newer".as_slice()), "read-only: {read_only}");
        assert_eq!(db.may_contain(key(1)), Verdict::Maybe);
        assert_eq!(db.get(key(1)).unwrap().as_deref(), Some(b"v".as_slice()));
    }
    assert_works(&fs, 0..3);
}

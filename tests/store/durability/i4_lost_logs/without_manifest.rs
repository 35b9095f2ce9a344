//! Repair of logs with damaged headers in a store without a manifest: nothing else says where the logs begin.

use super::*;
use crate::support::Rng;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Ways to damage a header, and nothing after it.
const DAMAGES: [fn(&mut [u8]); 3] =
    [|header| header[0] ^= 1, |header| header.fill(0), |header| header.fill(0xa5)];

/// Removes the manifest and every segment.
fn leave_logs_alone(fs: &SimFs) {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "wal");
    fs.files().iter().filter(|path| !is_log(path)).for_each(|path| fs.remove(path).unwrap());
}

fn aside(log: &Path) -> PathBuf {
    PathBuf::from(format!("{}.damaged", log.display()))
}

#[test]
fn every_record_behind_damaged_headers_is_kept_in_whichever_logs_they_are() {
    let (sound, counts) = two_logs();
    let all = counts[0] + counts[1];
    let paths = logs(&sound);
    for victims in [&paths[..1], &paths[1..], &paths[..]] {
        for damage in DAMAGES {
            let fs = sound.crash(Crash::Kill, 0);
            leave_logs_alone(&fs);
            for log in victims {
                let mut bytes = fs.read(log).unwrap();
                damage(&mut bytes[..40]);
                fs.write(log, bytes);
            }
            let damaged: Vec<_> = victims.iter().map(|log| fs.read(log)).collect();
            let report = repair(&fs);
            let salvage = report.logs.unwrap();
            assert_eq!((salvage.operations_kept, salvage.operations_lost), (all, vec![]));
            assert_eq!(salvage.bytes_unreadable, 40 * victims.len() as u64);
            let named: Vec<_> = report.set_aside.iter().map(damage_of).collect();
            let expected: Vec<_> = victims.iter().map(|log| (log.display().to_string(), 0)).collect();
            assert_eq!(named, expected);
            assert_eq!(victims.iter().map(|log| fs.read(aside(log))).collect::<Vec<_>>(), damaged);
            assert_works(&fs, 0..all);
        }
    }
}

#[test]
fn a_record_that_is_lost_with_the_header_is_named() {
    let (sound, counts) = two_logs();
    let all = counts[0] + counts[1];
    for n in [1, 2] {
        for victims in [1, 2] {
            let fs = sound.crash(Crash::Kill, 0);
            leave_logs_alone(&fs);
            let (mut end, mut lost, mut kept) = (0, Vec::new(), Vec::new());
            for (log, count) in logs(&fs).iter().zip(&counts) {
                let bad = if end == 0 || victims == 2 { n } else { 0 };
                let mut bytes = fs.read(log).unwrap();
                let until = bounds(&bytes)[bad as usize];
                bytes[..until].fill(0xa5);
                fs.write(log, bytes);
                lost.extend((bad > 0).then_some(end + 1..=end + bad));
                kept.extend(end + bad..end + count);
                end += count;
            }
            let report = repair(&fs);
            assert_eq!(report.set_aside.len(), 2, "the second header is damaged anyway");
            assert_eq!(report.logs.unwrap().operations_lost, lost);
            assert_eq!(kept.len() as u64, all - n * victims);
            assert_works(&fs, kept);
        }
    }
}

/// Numbers before the first record after a damaged header do not count as lost. What segments had,
/// compactions may have dropped: the numbers before the log are no loss.
#[test]
fn numbers_before_the_first_record_after_a_damaged_header_are_not_lost() {
    for damage in DAMAGES {
        let fs = SimFs::new();
        let db = options(&fs).open(STORE).unwrap();
        put(&db, key(0), b"v", Durability::Sync);
        put(&db, "gone", b"v", Durability::Sync);
        db.flush().unwrap();
        db.delete("gone").unwrap();
        db.flush().unwrap();
        db.compact().unwrap();
        put(&db, key(1), b"v", Durability::Sync);
        let fs = fs.crash(Crash::Kill, 0);
        remove_manifest(&fs);
        let log = logs(&fs).pop().unwrap();
        let mut bytes = fs.read(&log).unwrap();
        damage(&mut bytes[..40]);
        fs.write(&log, bytes);
        let salvage = repair(&fs).logs.unwrap();
        assert_eq!((salvage.operations_kept, salvage.operations_lost), (1, vec![]));
        assert_works(&fs, 0..2);
    }
}

/// With its manifest, the store would take this for a power cut, which keeps a prefix of what was not synced.
#[test]
fn records_behind_a_zeroed_sector_are_kept_though_nothing_was_synced() {
    let fs = SimFs::new();
    let db = options(&fs).open(STORE).unwrap();
    put(&db, key(0), b"v", Durability::Os);
    db.flush().unwrap();
    (1..20).for_each(|n| put(&db, key(n), &[n as u8; 100], Durability::Os));
    let fs = fs.crash(Crash::Kill, 0);
    remove_manifest(&fs);
    let log = logs(&fs).pop().unwrap();
    let mut bytes = fs.read(&log).unwrap();
    let lost = bounds(&bytes).iter().position(|&end| end > 512).unwrap() as u64;
    bytes[..512].fill(0);
    fs.write(&log, bytes.clone());
    let report = repair(&fs);
    assert_eq!(damage_of(&report.set_aside[0]), (log.display().to_string(), 0));
    assert_eq!(report.logs.unwrap().operations_lost, [2..=lost + 1]);
    assert_eq!(fs.read(aside(&log)), Some(bytes));
    assert_works(&fs, (0..1).chain(lost + 1..20));
}

/// A repair of a store that only its records identify can crash at each of its writes. A new log carries the
/// number of a new store, with which nothing is found in the old logs.
#[test]
fn a_repair_of_a_store_known_only_by_its_records_can_crash_at_each_write() {
    let (fs, counts) = two_logs();
    leave_logs_alone(&fs);
    for log in logs(&fs) {
        let mut bytes = fs.read(&log).unwrap();
        bytes[..40].fill(0);
        fs.write(&log, bytes);
    }
    for step in 0.. {
        for (seed, crash) in [Crash::Kill, Crash::PowerOrdered, Crash::Power].into_iter().enumerate() {
            let stopped = fs.crash(Crash::Kill, 0);
            stopped.fail(Fault::stop(step));
            let outcome = options(&stopped).repair(STORE);
            let found = stopped.crash(crash, step * 3 + seed as u64);
            repair(&found);
            let db = options(&found).read_only(true).open(STORE).unwrap();
            assert_eq!(contents(&db).len() as u64, counts[0] + counts[1], "step {step}, {crash:?}");
            if outcome.is_ok() && crash == Crash::Power {
                return;
            }
        }
    }
}

fn remove_manifest(fs: &SimFs) {
    fs.remove(&Path::new(STORE).join("MANIFEST")).unwrap();
}

/// A log record, as a chosen value.
fn forged_record() -> Vec<u8> {
    let payload = [&[1u8, 5, 4][..], b"admin", b"evil"].concat();
    let mut record = 0x0303_0303u32.to_le_bytes().to_vec();
    record.extend((payload.len() as u32).to_le_bytes());
    record.extend(1u32.to_le_bytes());
    record.extend(1u64.to_le_bytes());
    record.extend(0u64.to_le_bytes());
    record.extend(crc32fast::hash(&[&payload[..], &[0xff]].concat()).to_le_bytes());
    record.extend(crc32fast::hash(&record).to_le_bytes());
    record.extend(payload);
    record.push(0xff);
    record
}

#[test]
fn i11_a_record_inside_a_value_is_not_taken_for_one_of_the_log() {
    let fs = SimFs::new();
    let db = options(&fs).open(STORE).unwrap();
    put(&db, "user", &forged_record(), Durability::Sync);
    (0..20).for_each(|n| put(&db, key(n), b"v", Durability::Sync));
    let fs = fs.crash(Crash::Kill, 0);
    remove_manifest(&fs);
    let log = logs(&fs).pop().unwrap();
    let mut bytes = fs.read(&log).unwrap();
    bytes[..60].fill(0xa5); // The header, and a part of the first record's head.
    fs.write(&log, bytes);
    repair(&fs);
    assert_works(&fs, 0..20);
}

#[test]
fn a_log_of_zeros_is_named() {
    let (sound, counts) = two_logs();
    let fs = sound.crash(Crash::Kill, 0);
    leave_logs_alone(&fs);
    let log = logs(&fs)[0].clone();
    let zeros = vec![0; fs.read(&log).unwrap().len()];
    fs.write(&log, zeros.clone());
    let report = repair(&fs);
    assert_eq!(damage_of(&report.set_aside[0]), (log.display().to_string(), 0));
    assert_eq!(report.logs.unwrap().operations_lost, [1..=counts[0]]);
    assert_eq!(fs.read(aside(&log)), Some(zeros));
    assert_works(&fs, counts[0]..counts[0] + counts[1]);
}

/// The first record of its log is a gap, and does not say where the log begins.
#[test]
fn i12_half_an_ingest_beside_a_damaged_header_stays_invisible() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let mut killed = None;
    let rows = (0..3000u32).map(|n| {
        if n == 2999 {
            killed = Some(fs.crash(Crash::Kill, 0));
        }
        Ok((format!("{n:05}"), vec![n as u8; 100]))
    });
    db.ingest(rows).unwrap();
    let fs = killed.unwrap();
    assert!(fs.files().iter().any(|path| path.extension().is_some_and(|ending| ending == "obsolete")));
    let log = logs(&fs).pop().unwrap();
    let mut bytes = fs.read(&log).unwrap();
    bytes[0] ^= 1;
    fs.write(&log, bytes);
    let report = tiny_on(&fs).repair(STORE).unwrap();
    assert!(report.set_aside.iter().all(|why| !why.to_string().contains("MANIFEST")), "{report:?}");
    assert_eq!(tiny_on(&fs).open(STORE).unwrap().iter().count().unwrap(), 0);
}

/// Segments are written in key order, so half of one does not tell which operations are in segments.
#[test]
fn half_a_flush_hides_no_record_of_the_log() {
    const ROWS: u64 = 40_000;
    let fs = SimFs::new();
    let db = options(&fs).open(STORE).unwrap();
    let mut rng = Rng::new(1);
    for n in (0..ROWS).rev() {
        let value: Vec<u8> = (0..100).map(|_| rng.next() as u8).collect();
        db.put(format!("{n:05}"), value).unwrap();
    }
    db.sync().unwrap();
    let killed = Arc::new(Mutex::new(None));
    let (image, appends) = (Arc::clone(&killed), AtomicU64::new(0));
    fs.watch(move |moment| {
        if moment.kind == OpKind::Append && appends.fetch_add(1, Relaxed) == 3 {
            *image.lock().unwrap() = Some(moment.crash(Crash::Kill, 0));
        }
    });
    db.flush().unwrap();
    let killed = killed.lock().unwrap().take().unwrap();
    for fill in [0, 0xa5] {
        let fs = killed.crash(Crash::Kill, 0);
        remove_manifest(&fs);
        let log = logs(&fs)[0].clone();
        let mut bytes = fs.read(&log).unwrap();
        bytes[..512].fill(fill);
        fs.write(&log, bytes.clone());
        let report = repair(&fs);
        assert_eq!(damage_of(&report.set_aside[0]), (log.display().to_string(), 0));
        assert_eq!(report.set_aside.len(), 2, "and then half of the segment");
        assert_eq!(fs.read(aside(&log)), Some(bytes));
        let found = options(&fs).open(STORE).unwrap().iter().count().unwrap();
        assert!((ROWS - 5..ROWS).contains(&found), "{found}");
    }
}

#[test]
fn a_store_without_logs_has_none_that_were_rewritten() {
    let fs = SimFs::new();
    drop(options(&fs).open(STORE).unwrap());
    logs(&fs).iter().for_each(|log| fs.remove(log).unwrap());
    let manifest = Path::new(STORE).join("MANIFEST");
    let mut bytes = fs.read(&manifest).unwrap();
    bytes[0] ^= 1;
    fs.write(&manifest, bytes);
    assert_eq!(repair(&fs).logs, None);
    assert!(logs(&fs).is_empty());
}

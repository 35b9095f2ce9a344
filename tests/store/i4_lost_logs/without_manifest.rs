//! Repair of logs with damaged headers in a store that has lost its manifest: nothing else says where the logs begin.

use super::*;

/// Ways to damage a header, and nothing behind it.
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

/// What segments had, compactions may have dropped: the numbers before the log are no loss.
#[test]
fn numbers_before_the_first_record_behind_a_damaged_header_do_not_count_as_lost() {
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
        fs.remove(&Path::new(STORE).join("MANIFEST")).unwrap();
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
    fs.remove(&Path::new(STORE).join("MANIFEST")).unwrap();
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

/// A new log carries the number of a new store, with which nothing is found in the old ones.
#[test]
fn a_repair_of_a_store_that_nothing_but_its_records_identifies_can_crash_at_each_of_its_writes() {
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

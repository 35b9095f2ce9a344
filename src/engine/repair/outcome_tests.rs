//! After any repair, the store opens, takes a write and verifies, even with sequence numbers at their end.

use crate::Expiry;
use crate::error::Error;
use crate::fs::Fs;
use crate::id::{FileId, FileKind};
use crate::key::{MAX_NEXT_SEQ, MAX_SEQ};
use crate::manifest::{LogMark, MANIFEST, Manifest, ManifestState, read_state};
use crate::support::{Contents, Crash, STORE, SimFs, TestClock, contents, tiny_on};
use crate::wal::LogWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A store with segments in several levels, ingested rows, range tombstones and a log, and its contents.
fn store() -> (SimFs, Contents) {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    for round in 0..4u32 {
        (0..60u32).for_each(|key| db.put(format!("key{key:03}"), [round as u8; 30]).unwrap());
        db.flush().unwrap();
        let rows = (20..40u32).map(|key| Ok((format!("key{key:03}/{round}"), [round as u8; 40])));
        db.ingest(rows).unwrap();
    }
    db.delete("key001").unwrap();
    db.delete_range("key010".."key015").unwrap();
    db.flush().unwrap();
    db.put("in the log", "1").unwrap();
    let then = contents(&db);
    drop(db);
    (fs, then)
}

fn state_of(fs: &SimFs) -> ManifestState {
    read_state(fs, Path::new(STORE)).unwrap()
}

fn put_state(fs: &SimFs, state: &ManifestState) {
    Manifest::create(Arc::new(fs.clone()), Path::new(STORE), state).unwrap();
}

/// The same store, `left` operations before the last possible one.
fn store_near_the_end(left: u64) -> (SimFs, Contents) {
    let (fs, mut then) = store();
    then.remove(&b"in the log"[..]);
    let state = state_of(&fs);
    let next_id = FileId(state.next_id.0 + 100);
    put_state(
        &fs,
        &ManifestState { next_id, log_floor: next_id, log_mark: None, last_seq: MAX_SEQ - left, ..state },
    );
    (fs, then)
}

/// The store opens, takes a write and an ingest, and verifies. Returns its contents before these.
#[track_caller]
fn must_work(fs: &SimFs, what: &str) -> Contents {
    let db = tiny_on(fs).open(STORE).unwrap_or_else(|error| panic!("{what}: does not open: {error}"));
    let rows = || db.iter().map(|row| row.map(|(key, value)| (key, value.to_vec()))).collect();
    let before: crate::Result<Contents> = rows();
    let before = before.unwrap_or_else(|error| panic!("{what}: cannot be read: {error}"));
    db.put("zz", "written").unwrap_or_else(|error| panic!("{what}: refuses a write: {error}"));
    db.ingest([Ok(("zzz", "ingested"))]).unwrap_or_else(|error| panic!("{what}: refuses an ingest: {error}"));
    db.flush().unwrap_or_else(|error| panic!("{what}: cannot flush: {error}"));
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "{what}: {:?}", report.problems);
    drop(db);
    let db = tiny_on(fs).open(STORE).unwrap_or_else(|error| panic!("{what}: does not open again: {error}"));
    assert_eq!(db.get("zz").unwrap().as_deref(), Some(&b"written"[..]), "{what}");
    assert_eq!(db.get("zzz").unwrap().as_deref(), Some(&b"ingested"[..]), "{what}");
    before
}

#[test]
fn writes_fail_by_name_at_the_last_number_and_a_repair_lets_them_go_on() {
    let (fs, mut then) = store_near_the_end(3);
    let db = tiny_on(&fs).open(STORE).unwrap();
    for n in 0..3u8 {
        db.put([n], [n]).unwrap();
        then.insert(vec![n], vec![n]);
    }
    let is_exhausted = |outcome: crate::Result<()>| {
        assert!(
            matches!(outcome, Err(Error::NumbersExhausted { seq, .. }) if seq == MAX_SEQ + 1),
            "{outcome:?}"
        );
    };
    is_exhausted(db.put("x", "y"));
    is_exhausted(db.delete_range("a".."b"));
    is_exhausted(db.ingest([Ok(("x", "y"))]));
    is_exhausted(db.put("x", "y"));
    db.flush().unwrap();
    db.compact().unwrap();
    assert_eq!(contents(&db), then, "nothing that failed is there");
    drop(db);
    let db = tiny_on(&fs).open(STORE).unwrap();
    is_exhausted(db.put("x", "y"));
    assert!(db.verify().unwrap().is_ok());
    drop(db);
    let report = tiny_on(&fs).repair(STORE).unwrap();
    assert!(report.rebuilt && report.lost.is_empty() && report.set_aside.is_empty(), "{report:?}");
    assert_eq!(must_work(&fs, "renumbered"), then);
    assert!(state_of(&fs).last_seq < 100, "{}", state_of(&fs).last_seq);
    assert!(!tiny_on(&fs).repair(STORE).unwrap().rebuilt, "once is enough");
}

#[test]
fn i4_a_repair_that_numbers_anew_can_be_cut_short_anywhere() {
    for left in [0, 5] {
        let (fs, then) = store_near_the_end(left);
        let writes = {
            let fs = fs.crash(Crash::Kill, 0);
            let before = fs.writes();
            tiny_on(&fs).repair(STORE).unwrap();
            fs.writes() - before
        };
        for stop in (0..writes).step_by(3) {
            let disk = fs.crash(Crash::Kill, 0);
            disk.fail(crate::support::Fault::stop(stop));
            assert!(tiny_on(&disk).repair(STORE).is_err() || stop + 3 > writes);
            let disk = disk.crash(if stop % 2 == 0 { Crash::Power } else { Crash::Kill }, stop);
            tiny_on(&disk).repair(STORE).unwrap();
            assert_eq!(must_work(&disk, &format!("stopped after {stop}")), then);
        }
    }
}

#[test]
fn i15_a_repair_that_numbers_anew_goes_by_the_clock_of_its_options() {
    let (fs, _) = store_near_the_end(3);
    let (clock, hour) = (Arc::new(TestClock::new()), Duration::from_secs(3600));
    clock.set_back(hour * 24 * 365 * 20); // Long before the system's time.
    let options = || tiny_on(&fs).clock(Arc::clone(&clock) as _);
    let db = options().open(STORE).unwrap();
    db.put_with("brief", "1", Expiry::after(hour)).unwrap();
    db.flush().unwrap();
    drop(db);
    assert!(options().repair(STORE).unwrap().rebuilt);
    assert!(state_of(&fs).last_seq < 100, "it was renumbered");
    let db = options().open(STORE).unwrap();
    assert_eq!(db.get("brief").unwrap().as_deref(), Some(&b"1"[..]));
    clock.advance(hour);
    assert!(db.get("brief").unwrap().is_none());
}

/// Damage to one file.
fn wounds(bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let half = bytes.len() / 2;
    let flipped = |at: usize| {
        let mut bytes = bytes.to_vec();
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 0x55;
        }
        Some(bytes)
    };
    let zeroed = |from: usize| {
        let mut bytes = bytes.to_vec();
        bytes.iter_mut().skip(from).take(512).for_each(|byte| *byte = 0);
        Some(bytes)
    };
    vec![
        None,
        Some(Vec::new()),
        Some(bytes[..half].to_vec()),
        Some(bytes[..bytes.len().saturating_sub(1)].to_vec()),
        Some([bytes, &[0; 100]].concat()),
        flipped(9),
        flipped(30),
        flipped(half),
        flipped(bytes.len().saturating_sub(20)),
        flipped(bytes.len().saturating_sub(50)),
        zeroed(0),
        zeroed(half),
        Some(vec![0xff; bytes.len()]),
    ]
}

fn files(fs: &SimFs) -> Vec<PathBuf> {
    fs.files().into_iter().filter(|path| !path.ends_with("LOCK")).collect()
}

#[test]
fn whatever_a_repair_says_ok_to_opens_and_takes_writes() {
    let (mut repaired, mut refused) = (0, 0);
    for (name, source) in
        [("plain", store().0), ("at the end", store_near_the_end(0).0), ("near it", store_near_the_end(2).0)]
    {
        let without_manifest = |fs: &SimFs| fs.remove(&Path::new(STORE).join(MANIFEST)).unwrap();
        for file in files(&source) {
            for (n, wound) in wounds(&source.read(&file).unwrap()).into_iter().enumerate() {
                let fs = source.crash(Crash::Kill, 0);
                match wound {
                    None => fs.remove(&file).unwrap(),
                    Some(bytes) => fs.write(&file, bytes),
                }
                if n % 2 == 0 && !file.ends_with(MANIFEST) {
                    without_manifest(&fs);
                }
                match tiny_on(&fs).repair(STORE) {
                    Ok(_) => {
                        must_work(&fs, &format!("{name}, wound {n} of {}", file.display()));
                        repaired += 1;
                    }
                    Err(error) => {
                        assert!(
                            !matches!(error, Error::Internal(_) | Error::NumbersExhausted { .. }),
                            "{error}"
                        );
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(repaired > 100 && refused < repaired / 10, "{repaired} {refused}");
}

/// A store whose manifest and logs have the largest numbers opens after a repair and takes writes.
#[test]
fn a_repair_with_the_largest_numbers_opens_and_takes_writes() {
    let (source, _) = store();
    let mut repaired = 0;
    for last_seq in [0, 1, MAX_SEQ - 1, MAX_SEQ] {
        for first_seq in [1, MAX_SEQ, MAX_NEXT_SEQ] {
            for mark in [None, Some(0), Some(MAX_NEXT_SEQ)] {
                for keeps_manifest in [true, false] {
                    let fs = source.crash(Crash::Kill, 0);
                    let state = state_of(&fs);
                    let log = FileId(state.next_id.0 + 50);
                    let path = Path::new(STORE).join(log.file_name(FileKind::Wal));
                    LogWriter::create(&fs, &path, log, state.header.store_id, first_seq).unwrap();
                    let log_mark = mark.map(|next_seq| LogMark { log, bytes: 40, next_seq });
                    put_state(&fs, &ManifestState { last_seq, log_mark, ..state });
                    if !keeps_manifest {
                        fs.remove(&Path::new(STORE).join(MANIFEST)).unwrap();
                    }
                    let what = format!("{last_seq} {first_seq} {mark:?} {keeps_manifest}");
                    match tiny_on(&fs).repair(STORE) {
                        Ok(_) => {
                            must_work(&fs, &what);
                            repaired += 1;
                        }
                        Err(error) => panic!("{what}: {error}"),
                    }
                }
            }
        }
    }
    assert_eq!(repaired, 4 * 3 * 3 * 2);
}

//! Repair on a disk with bad sectors: everything readable comes back, and the report says what is lost.

use crate::support::{
    Contents, Crash, Fault, OpKind, Rng, STORE, SimFs, assert_holds, contents, fill_deep, tiny_on,
};
use std::path::PathBuf;

fn numbered(i: u64) -> Vec<u8> {
    format!("key{i:05}").into_bytes()
}

fn log_of(fs: &SimFs) -> PathBuf {
    fs.files().into_iter().rfind(|path| path.extension().is_some_and(|e| e == "wal")).unwrap()
}

/// A store with all rows in its log, synced, one record each.
fn in_the_log() -> (SimFs, Contents) {
    let fs = SimFs::new();
    let db = tiny_on(&fs).memtable_bytes(8 << 20).open(STORE).unwrap();
    let mut expected = Contents::new();
    for i in 0..600 {
        expected.insert(numbered(i), Rng::new(i).next().to_le_bytes().repeat(8));
        db.put(numbered(i), &expected[&numbered(i)]).unwrap();
    }
    db.sync().unwrap();
    (fs.crash(Crash::Power, 0), expected)
}

/// All readable records of a log with bad sectors come back, and the report names the others.
#[test]
fn readable_records_of_a_log_with_bad_sectors_come_back() {
    let (sound, expected) = in_the_log();
    let len = sound.read(log_of(&sound)).unwrap().len() as u64;
    assert!(len > 50_000);
    for (bad, whole_pages) in
        [(20_000..20_001, 1), (4096..8192, 1), (30_000..40_000, 4), (0..10, 1), (len - 1..len, 1)]
    {
        let fs = sound.crash(Crash::Kill, 0);
        fs.make_unreadable(log_of(&fs), bad.clone());
        assert!(tiny_on(&fs).open(STORE).is_err());
        let report = tiny_on(&fs).repair(STORE).unwrap();
        let logs = report.logs.as_ref().unwrap();
        assert_eq!(report.set_aside.len(), 1);
        assert!((1..=4096 * (whole_pages + 1)).contains(&logs.bytes_unreadable), "{bad:?}: {logs:?}");
        assert_eq!(report.lost.len(), 1, "{:?}", report.lost);

        let db = tiny_on(&fs).open(STORE).unwrap();
        let found = contents(&db);
        assert_eq!(logs.operations_kept, found.len() as u64);
        found.iter().for_each(|(key, value)| assert_eq!(expected.get(key), Some(value)));
        let lost = expected.len() - found.len();
        let known: u64 = logs.operations_lost.iter().map(|lost| lost.end() - lost.start() + 1).sum();
        // The number of operations in a damaged end is unknown.
        let expected_to_be_known = if bad.end == len { 0 } else { lost };
        assert_eq!(known as usize, expected_to_be_known, "{bad:?}: {lost} are lost");
        assert!((1..60 * (whole_pages as usize + 1)).contains(&lost), "{bad:?}: {lost}");
        db.put(b"new", b"1").unwrap();
        db.flush().unwrap();
        assert!(db.verify().unwrap().is_ok());
        drop(db);
        assert!(!tiny_on(&fs).repair(STORE).unwrap().rebuilt);
    }
}

#[test]
fn a_read_that_fails_once_during_a_repair_costs_no_row() {
    let (in_log, expected) = in_the_log();
    let in_segments = SimFs::new();
    let filled = fill_deep(&tiny_on(&in_segments).open(STORE).unwrap(), 3);
    for (sound, expected, step) in [(in_log, expected, 1), (in_segments, filled, 37)] {
        for after in (0..).step_by(step) {
            let fs = sound.crash(Crash::Kill, 0);
            fs.fail(Fault::once(OpKind::Read, after));
            let report = tiny_on(&fs).repair(STORE).unwrap();
            if fs.faults_left() > 0 {
                assert!(after >= 3, "{after} reads");
                break;
            }
            assert!(report.lost.is_empty(), "read {after}: {:?}", report.lost);
            assert_holds(&tiny_on(&fs).open(STORE).unwrap(), &expected);
        }
    }
}

#[test]
fn lengths_of_enormous_files_are_added_up_without_an_overflow() {
    let fs = SimFs::new();
    tiny_on(&fs).open(STORE).unwrap().put("key", "value").unwrap();
    let log = log_of(&fs);
    for name in ["900000.wal", "900001.wal"] {
        fs.write(log.with_file_name(name), fs.read(&log).unwrap());
    }
    // Three of these lengths exceed 64 bits.
    for log in fs.files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "wal")) {
        fs.lengthen(log, u64::MAX >> 1);
    }
    let report = tiny_on(&fs).repair(STORE).unwrap();
    assert_eq!((report.set_aside.len(), report.bytes_set_aside), (3, u64::MAX), "{report:?}");
    assert_eq!(report.logs.unwrap().bytes_unreadable, u64::MAX);
    let db = tiny_on(&fs).open(STORE).unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    db.put("new", "value").unwrap();
}

//! A repair that a crash interrupts at any of its writes can start again without loss.

use crate::support::{
    Crash, Fault, OpKind, Rng, STORE, Sequence, SimFs, contents, fill_deep, sized, tiny_on,
};
use sidebloom::{Durability, KeyspaceOptions, fs};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

fn files(fs: &SimFs, ending: &str) -> Vec<PathBuf> {
    fs.files().into_iter().filter(|path| path.to_str().unwrap().ends_with(ending)).collect()
}

/// Repairs copies of the disk that stop at each write in turn, with each kind of crash, then repairs again.
/// `check` gets each outcome.
fn each_crash(damaged: &SimFs, check: impl Fn(&SimFs)) {
    for crash in [Crash::Kill, Crash::PowerOrdered, Crash::Power] {
        for after in 0.. {
            let fs = damaged.crash(Crash::Kill, 0);
            fs.fail(Fault::stop(after));
            // It may still return `Ok`: without names of keyspaces, the rest is repaired.
            let _ = tiny_on(&fs).repair(STORE);
            let has_struck = fs.has_struck();
            let fs = fs.crash(crash, after);
            tiny_on(&fs).repair(STORE).unwrap();
            check(&fs);
            if !has_struck {
                assert!(after > 2, "a repair without writes cannot be interrupted");
                break;
            }
        }
    }
}

/// Changes the first log. Returns it.
fn damage_log(fs: &SimFs, change: impl Fn(&mut [u8])) -> Vec<u8> {
    let log = files(fs, ".wal").remove(0);
    let mut bytes = fs.read(&log).unwrap();
    change(&mut bytes);
    fs.write(&log, bytes.clone());
    bytes
}

fn flip_middle(bytes: &mut [u8]) {
    bytes[bytes.len() / 2] ^= 1;
}

fn lose_manifest(fs: &SimFs) {
    fs::Fs::remove(fs, &PathBuf::from(STORE).join("MANIFEST")).unwrap();
    fs::Fs::sync_dir(fs, &PathBuf::from(STORE)).unwrap();
}

/// Without a manifest, a log that was never synced is read to its end, too.
#[test]
fn the_sound_part_of_a_log_survives_a_crash_at_any_write_of_the_repair() {
    let sequence = Sequence(5);
    for without_manifest in [false, true] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).memtable_bytes(1 << 20).durability(Durability::Os).open(STORE).unwrap();
        (1..=40).for_each(|i| db.write(sequence.batch(i)).unwrap());
        if !without_manifest {
            db.sync().unwrap();
        }
        let fs = fs.crash(Crash::Kill, 0);
        let bytes = if without_manifest {
            lose_manifest(&fs);
            damage_log(&fs, |bytes| bytes[2000..2600].fill(0)) // As if these pages had never been written.
        } else {
            damage_log(&fs, flip_middle)
        };
        let whole = {
            let fs = fs.crash(Crash::Kill, 0);
            tiny_on(&fs).repair(STORE).unwrap();
            contents(&tiny_on(&fs).open(STORE).unwrap())
        };
        assert!(!whole.is_empty());
        each_crash(&fs, |fs| {
            assert!(files(fs, ".damaged").iter().any(|path| fs.read(path).unwrap() == bytes));
            assert_eq!(contents(&tiny_on(fs).open(STORE).unwrap()), whole);
        });
    }
}

#[test]
fn a_repair_that_crashes_leaves_no_keyspace_without_a_name() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).memtable_bytes(1 << 20).open(STORE).unwrap();
    db.put("a", "1").unwrap();
    let name_at = fs.read(&files(&fs, ".wal")[0]).unwrap().len() + 30;
    let seen = db.create_keyspace("seen", KeyspaceOptions::new()).unwrap();
    seen.put("b", "2").unwrap();
    db.sync().unwrap();
    let fs = fs.crash(Crash::Kill, 0);
    damage_log(&fs, |bytes| bytes[name_at] ^= 1);
    each_crash(&fs, |fs| {
        let db = tiny_on(fs).open(STORE).unwrap();
        let names = db.keyspaces().unwrap();
        assert_eq!(names, ["keyspace 1"]);
        assert!(db.keyspace(&names[0]).unwrap().get("b").unwrap().is_some());
    });
}

/// The repair leaves a log with all rows, whose number is higher than that of the sound log beside it.
#[test]
fn a_manifest_that_is_lost_after_a_repair_of_logs_loses_no_row() {
    let sequence = Sequence(5);
    let fs = SimFs::new();
    let db = tiny_on(&fs).durability(Durability::Os).open(STORE).unwrap();
    let images = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&images);
    fs.watch(move |moment| {
        let image = moment.crash(Crash::Kill, 0);
        let last = files(&image, ".wal").pop().and_then(|log| image.read(&log));
        let is_flushing = !files(&image, ".segment").is_empty();
        if !is_flushing && files(&image, ".wal").len() > 1 && last.is_some_and(|bytes| bytes.len() > 300) {
            taken.lock().unwrap().push(image);
        }
    });
    (1..=200).for_each(|i| db.write(sequence.batch(i)).unwrap());
    let images = std::mem::take(&mut *images.lock().unwrap());
    assert!(!images.is_empty());
    for fs in images {
        let fs = &fs;
        damage_log(fs, flip_middle);
        tiny_on(fs).repair(STORE).unwrap();
        let repaired = contents(&tiny_on(fs).read_only(true).open(STORE).unwrap());
        lose_manifest(fs);
        tiny_on(fs).repair(STORE).unwrap();
        assert_eq!(contents(&tiny_on(fs).open(STORE).unwrap()), repaired);
    }
}

/// The rows of damaged segments survive a crash at any write of the repair.
#[test]
fn rows_of_damaged_segments_survive_a_crash_at_any_write_of_the_repair() {
    let sound = SimFs::new();
    let db = tiny_on(&sound).open(STORE).unwrap();
    fill_deep(&db, 7);
    drop(db);
    let segments = files(&sound, ".segment");
    let damaged = [&segments[0], &segments[segments.len() / 2], &segments[segments.len() - 1]];
    for path in damaged {
        let mut bytes = sound.read(path).unwrap();
        bytes[20] ^= 1; // In the first block of data, however small the segment is.
        sound.write(path, bytes);
    }
    for without_manifest in [false, true] {
        let fs = sound.crash(Crash::Kill, 0);
        if without_manifest {
            lose_manifest(&fs);
        }
        let expected = {
            let fs = fs.crash(Crash::Kill, 0);
            assert_eq!(tiny_on(&fs).repair(STORE).unwrap().lost.len(), 3);
            contents(&tiny_on(&fs).open(STORE).unwrap())
        };
        each_crash(&fs, |fs| {
            for path in damaged {
                let bytes = sound.read(path).unwrap();
                let mut aside =
                    fs.files().into_iter().filter(|path| path.to_str().unwrap().contains(".damaged"));
                assert!(aside.any(|aside| fs.read(aside).unwrap() == bytes));
            }
            assert!(contents(&tiny_on(fs).read_only(true).open(STORE).unwrap()) == expected);
        });
    }
}

/// A repair without a manifest does not bring back what was deleted under a snapshot.
#[test]
fn a_repair_without_manifest_keeps_deleted_what_a_snapshot_still_shows() {
    for kept_open in [8, 64] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).max_open_files(kept_open).open(STORE).unwrap();
        let mut expected = fill_deep(&db, 3);
        let before = expected.clone();
        let snapshot = db.snapshot();
        for key in before.keys().step_by(2) {
            db.delete(key).unwrap();
            expected.remove(key);
        }
        db.compact().unwrap();
        let of_snapshot = snapshot.iter().map(|row| row.map(|(key, value)| (key, value.to_vec())).unwrap());
        assert!(of_snapshot.eq(before.clone()), "the snapshot reads obsolete segments");
        before.iter().for_each(|(key, value)| {
            assert_eq!(snapshot.get(key).unwrap().as_deref(), Some(value.as_slice()));
        });

        let killed = fs.crash(Crash::Kill, 0);
        lose_manifest(&killed);
        let obsolete = files(&killed, ".obsolete").len();
        tiny_on(&killed).repair(STORE).unwrap();
        let repaired = tiny_on(&killed).open(STORE).unwrap();
        assert!(contents(&repaired) == expected, "deleted keys are back");
        assert!(obsolete > 0);
        assert!(files(&killed, ".obsolete").is_empty(), "opening removes them");
        drop(repaired);

        drop((snapshot, db));
        assert!(files(&fs, ".obsolete").is_empty(), "they go with the last reader");
        assert!(contents(&tiny_on(&fs).open(STORE).unwrap()) == expected);
    }
}

/// A repair without a manifest, after a kill during a compaction, does not bring back what was deleted.
#[test]
fn a_repair_after_a_kill_in_a_compaction_brings_no_deleted_key_back() {
    for seed in 0..5 {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        let mut expected = fill_deep(&db, seed);
        for key in expected.clone().keys().step_by(2) {
            db.delete(key).unwrap();
            expected.remove(key);
        }
        db.flush().unwrap();
        let killed = Arc::new(Mutex::new(Vec::new()));
        let images = Arc::clone(&killed);
        fs.watch(move |moment| {
            if moment.kind == OpKind::Rename {
                images.lock().unwrap().push(moment.crash(Crash::Kill, 0));
            }
        });
        db.compact().unwrap();
        let killed = std::mem::take(&mut *killed.lock().unwrap());
        assert!(killed.len() > 20, "{} renames", killed.len());
        let mut rng = Rng::new(seed);
        for _ in 0..sized(20, 200) {
            let killed = rng.pick(&killed).crash(Crash::Kill, 0);
            lose_manifest(&killed);
            tiny_on(&killed).repair(STORE).unwrap();
            let repaired = tiny_on(&killed).open(STORE).unwrap();
            assert!(contents(&repaired) == expected, "deleted keys are back");
        }
    }
}

/// A new store that lost power before its first log had a header, and then its manifest.
#[test]
fn a_store_with_a_log_without_a_header_alone_opens_after_a_repair() {
    for header in [&b""[..], b"S", b"SBLMWAL\n\x04\0\0\0", &[0; 40]] {
        let dir = crate::support::fast_dir();
        drop(sidebloom::Db::open(dir.path()).unwrap());
        std::fs::write(dir.path().join("000001.wal"), header).unwrap();
        std::fs::remove_file(dir.path().join("MANIFEST")).unwrap();
        for _ in 0..2 {
            let report = sidebloom::repair(dir.path()).unwrap();
            assert!(report.set_aside.is_empty() && report.lost.is_empty(), "{report:?}");
        }
        let db = sidebloom::Db::open(dir.path()).unwrap();
        db.put("a", "1").unwrap();
        assert_eq!(db.iter().count().unwrap(), 1);
    }
}

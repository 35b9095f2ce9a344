//! Repair: whatever a store has lost, everything readable comes back, and no file is removed.

use crate::support::{
    Contents, Errno, Fault, OpKind, Rng, STORE, Sequence, SimFs, assert_holds, contents, copy_store,
    fast_dir, files_with, fill_deep, fingerprints, sized, tiny, tiny_on,
};
use sidebloom::{Db, Error, Options, repair};
use std::fs;
use std::path::{Path, PathBuf};

const BATCHES: u64 = 400;

fn options() -> Options {
    tiny()
}

/// A closed store whose levels interleave in age, with tombstones and with records that are only in the log.
fn filled(dir: &Path, sequence: Sequence) -> Contents {
    let db = options().open(dir).unwrap();
    for i in 1..=BATCHES {
        db.write(sequence.batch(i)).unwrap();
        if i % 97 == 0 {
            db.compact().unwrap();
        }
    }
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    db.write(sequence.batch(BATCHES + 1)).unwrap();
    contents(&db)
}

#[track_caller]
fn open(dir: &Path) -> Db {
    options().open(dir).unwrap()
}

/// Opens the repaired store, checks it and uses it.
#[track_caller]
fn assert_works(dir: &Path, expected: &Contents) {
    let db = open(dir);
    assert_holds(&db, expected);
    assert!(db.verify().unwrap().is_ok());
    db.put(b"after the repair", b"new").unwrap();
    db.delete(b"count").unwrap();
    let mut expected = expected.clone();
    expected.insert(b"after the repair".to_vec(), b"new".to_vec());
    expected.remove(b"count".as_slice());
    assert_holds(&db, &expected);
    db.compact().unwrap();
    assert_holds(&db, &expected);
    drop(db);
    assert_holds(&open(dir), &expected);
}

/// A store without its manifest comes back whole, and deleted keys stay deleted.
#[test]
fn a_store_without_its_manifest_comes_back_whole_with_its_deletions() {
    for seed in 0..10 {
        let dir = fast_dir();
        let expected = filled(dir.path(), Sequence(seed));
        let segments = fingerprints(dir.path(), ".segment");
        fs::remove_file(dir.path().join("MANIFEST")).unwrap();
        let error = options().open(dir.path()).map(|_| ()).unwrap_err();
        assert!(matches!(&error, Error::NotAStore { what, .. } if what.contains("repair")), "{error}");

        let report = repair(dir.path()).unwrap();
        assert!(report.rebuilt && report.set_aside.is_empty(), "{report:?}");
        assert_eq!(report.segments as usize, segments.len());
        assert_eq!(fingerprints(dir.path(), ".segment"), segments);
        assert_works(dir.path(), &expected);
    }
}

/// A deep store without its manifest comes back whole, although the ages of its segments interleave.
#[test]
fn a_deep_store_without_its_manifest_comes_back_whole() {
    for seed in 0..3 {
        let dir = fast_dir();
        let db = open(dir.path());
        let expected = fill_deep(&db, seed);
        drop(db);
        fs::remove_file(dir.path().join("MANIFEST")).unwrap();
        repair(dir.path()).unwrap();
        let db = options().read_only(true).open(dir.path()).unwrap();
        assert_holds(&db, &expected);
        drop(db);
        assert_works(dir.path(), &expected);
    }
}

#[test]
fn a_damaged_manifest_is_set_aside_and_the_store_comes_back_whole() {
    let dir = fast_dir();
    let sound = dir.path().join("sound");
    let expected = filled(&sound, Sequence(3));
    let whole = fs::read(sound.join("MANIFEST")).unwrap();
    let mut rng = Rng::new(5);
    for round in 0..12 {
        let copy = dir.path().join(format!("{round}"));
        copy_store(&sound, &copy);
        let mut bytes = whole.clone();
        match round {
            0 => bytes.clear(),
            1 => bytes.fill(0),
            _ => bytes[rng.below(whole.len() as u64) as usize] ^= 1 << rng.below(8),
        }
        fs::write(copy.join("MANIFEST"), &bytes).unwrap();
        let error = options().open(&copy).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("MANIFEST"), "{error}");
        let report = repair(&copy).unwrap();
        assert!(report.rebuilt && report.set_aside.len() == 1, "{report:?}");
        assert_eq!(fs::read(copy.join("MANIFEST.damaged")).unwrap(), bytes);
        assert_works(&copy, &expected);
    }
}

/// A manifest that has lost its last edits is noticed, and the store comes back whole.
#[test]
fn a_manifest_without_its_last_edits_is_noticed_and_nothing_is_lost() {
    let dir = fast_dir();
    let sound = dir.path().join("sound");
    // Keeps the manifest's edits: opening the store would rewrite it.
    let expected = filled(&sound, Sequence(8));
    let whole = fs::read(sound.join("MANIFEST")).unwrap();
    let mut refused = 0;
    for len in (0..whole.len()).step_by(97) {
        let copy = dir.path().join(format!("{len}"));
        copy_store(&sound, &copy);
        fs::write(copy.join("MANIFEST"), &whole[..len]).unwrap();
        match options().open(&copy) {
            Ok(db) => assert_holds(&db, &expected),
            Err(Error::Corruption { what, .. }) => {
                assert!(what.contains("sidebloom repair"), "{what}");
                refused += 1;
                repair(&copy).unwrap();
                assert_works(&copy, &expected);
            }
            Err(error) => panic!("{error}"),
        }
        fs::remove_dir_all(&copy).unwrap();
    }
    assert!(refused > 10);
}

#[test]
fn repairing_a_sound_store_changes_nothing() {
    let dir = fast_dir();
    let expected = filled(dir.path(), Sequence(4));
    let before = fingerprints(dir.path(), "");
    let report = repair(dir.path()).unwrap();
    assert!(!report.rebuilt && report.set_aside.is_empty(), "{report:?}");
    assert_eq!(fingerprints(dir.path(), ""), before);
    assert_works(dir.path(), &expected);
}

/// A damaged or missing segment is set aside, and what is readable of it comes back.
#[test]
fn a_damaged_segment_is_set_aside_and_what_is_readable_comes_back() {
    let dir = fast_dir();
    let sound = dir.path().join("sound");
    // Each flush has its own keys, so the test knows what is lost with a segment.
    let db = Options::new().open(&sound).unwrap();
    let mut parts: Vec<Contents> = Vec::new();
    for part in 0..3 {
        let new: Contents =
            (0..50).map(|i| (format!("{part}/{i:02}").into_bytes(), vec![part; 100])).collect();
        new.iter().for_each(|(key, value)| db.put(key, value).unwrap());
        db.flush().unwrap();
        parts.push(new);
    }
    drop(db);
    let segments = files_with(&sound, ".segment");
    assert_eq!(segments.len(), 3);
    let len = fs::metadata(&segments[1]).unwrap().len() as usize;
    let with_manifest_or_not = [true, false];
    for (round, at) in [None, Some(0), Some(len - 1), Some(len - 40)].into_iter().enumerate() {
        for keep_manifest in with_manifest_or_not {
            let copy = dir.path().join(format!("{round}{keep_manifest}"));
            copy_store(&sound, &copy);
            let victim = copy.join(segments[1].file_name().unwrap());
            let damaged = PathBuf::from(format!("{}.damaged", victim.display()));
            match at {
                None => fs::remove_file(&victim).unwrap(),
                Some(0) => fs::write(&victim, &fs::read(&victim).unwrap()[..len / 2]).unwrap(),
                Some(at) => {
                    let mut bytes = fs::read(&victim).unwrap();
                    bytes[at] ^= 0x10;
                    fs::write(&victim, bytes).unwrap();
                }
            }
            if !keep_manifest {
                fs::remove_file(copy.join("MANIFEST")).unwrap();
            }
            let opened = options().read_only(true).open(&copy);
            assert!(!opened.is_ok_and(|db| db.verify().unwrap().is_ok()));
            let report = repair(&copy).unwrap();
            assert!(report.rebuilt, "{report:?}");
            assert_eq!(damaged.exists(), at.is_some());
            // Without the manifest, a missing file is not noticed.
            assert_eq!(report.set_aside.len(), usize::from(keep_manifest || at.is_some()), "{report:?}");
            let whole: Contents = parts.iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
            let mut expected = whole.clone();
            match at {
                None => assert_eq!(report.segments, 2, "{report:?}"),
                Some(0) => assert!(!report.lost.is_empty() && report.rows_salvaged < 50, "{report:?}"),
                Some(_) => assert!(report.lost.is_empty() && report.rows_salvaged == 50, "{report:?}"),
            }
            let kept = report.rows_salvaged as usize;
            parts[1].keys().skip(kept).for_each(|key| _ = expected.remove(key));
            assert_works(&copy, &expected);
        }
    }
}

/// A damaged log is repaired to all batches but the damaged one, and the damaged file stays.
#[test]
fn a_damaged_log_is_repaired_to_all_batches_but_the_damaged_one() {
    let dir = fast_dir();
    let sound = dir.path().join("sound");
    let sequence = Sequence(12);
    let db = Options::new().open(&sound).unwrap();
    (1..=20).for_each(|i| db.write(sequence.batch(i)).unwrap());
    db.flush().unwrap();
    (21..=60).for_each(|i| db.write(sequence.batch(i)).unwrap());
    drop(db);
    let log = files_with(&sound, ".wal").pop().unwrap();
    let whole = fs::read(&log).unwrap();
    for (round, at) in [0, 30, 60, whole.len() / 2, whole.len() * 3 / 4].into_iter().enumerate() {
        let copy = dir.path().join(format!("{round}"));
        copy_store(&sound, &copy);
        let path = copy.join(log.file_name().unwrap());
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let error = Options::new().open(&copy).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("sidebloom repair"), "{error}");

        let report = repair(&copy).unwrap();
        assert_eq!(report.set_aside.len(), 1, "{report:?}");
        assert_eq!(fs::read(format!("{}.damaged", path.display())).unwrap(), bytes);
        let logs = report.logs.unwrap();
        let header_only = at < 40;
        assert_eq!(logs.operations_lost.len(), usize::from(!header_only), "{logs:?}");
        let db = open(&copy);
        if header_only {
            assert_eq!(sequence.prefix_of(&db), 60);
        }
        assert_eq!(db.get(b"count").unwrap().as_deref(), Some(b"60".as_slice()), "the last batch");
        db.write(sequence.batch(61)).unwrap();
        let before = contents(&db);
        drop(db);
        assert_eq!(contents(&open(&copy)), before);
    }
}

#[test]
fn segments_of_another_store_are_set_aside() {
    let dir = fast_dir();
    let (mine, other) = (dir.path().join("mine"), dir.path().join("other"));
    let expected = filled(&mine, Sequence(1));
    filled(&other, Sequence(2));
    let foreign = files_with(&other, ".segment").pop().unwrap();
    let there = mine.join("900000.segment");
    fs::copy(foreign, &there).unwrap();
    fs::remove_file(mine.join("MANIFEST")).unwrap();
    let report = repair(&mine).unwrap();
    assert_eq!(report.set_aside.len(), 1, "{report:?}");
    assert!(!there.exists() && mine.join("900000.segment.damaged").exists());
    assert_works(&mine, &expected);
}

#[test]
fn what_is_no_store_is_not_repaired_and_what_is_open_is_locked() {
    let dir = fast_dir();
    for path in [dir.path().to_path_buf(), dir.path().join("nothing")] {
        assert!(matches!(repair(&path), Err(Error::NotAStore { .. })));
    }
    assert!(!dir.path().join("nothing").exists());
    let db = open(&dir.path().join("store"));
    assert!(matches!(repair(dir.path().join("store")), Err(Error::Locked { .. })));
    drop(db);
    repair(dir.path().join("store")).unwrap();
}

/// Without a manifest, all segments are in level 0 with interleaved ages, so the first one with a key need
/// not have its newest value. Read-only, so that no compaction sorts level 0 before the reads.
#[test]
fn a_get_in_a_level_0_of_any_age_finds_the_newest_value_not_the_first() {
    for seed in 0..sized(2, 6) {
        let dir = fast_dir();
        let db = open(dir.path());
        let mut expected = fill_deep(&db, seed);
        // A value that changes between compactions of other keys: newer entries in otherwise older segments.
        for round in 0..40u32 {
            let key = format!("key{:05}", round % 7 * 400).into_bytes();
            db.put(&key, round.to_be_bytes()).unwrap();
            expected.insert(key, round.to_be_bytes().to_vec());
            db.flush().unwrap();
        }
        db.wait_for_compaction().unwrap();
        drop(db);
        fs::remove_file(dir.path().join("MANIFEST")).unwrap();
        repair(dir.path()).unwrap();
        let db = options().read_only(true).open(dir.path()).unwrap();
        db.warm().unwrap();
        assert_holds(&db, &expected);
    }
}

/// Damages the last record of the last log.
fn damage_last_record(fs: &SimFs) {
    let log = fs.files().into_iter().rfind(|path| path.to_str().unwrap().ends_with(".wal")).unwrap();
    let mut bytes = fs.read(&log).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 0xff;
    fs.write(&log, bytes);
}

/// A flush right after a repair that lost the end of a log leaves a store that opens. Only the log has the
/// number after the lost operations: a flush copies it into the manifest.
#[test]
fn a_flush_after_a_repair_that_lost_a_logs_end_leaves_a_store_that_opens() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    (0..20).for_each(|n| db.put(format!("key{n:02}"), "value").unwrap());
    drop(db);
    damage_last_record(&fs);
    let report = tiny_on(&fs).repair(STORE).unwrap();
    assert_eq!(report.logs.unwrap().operations_lost, [20..=20]);
    let db = tiny_on(&fs).open(STORE).unwrap();
    db.flush().unwrap();
    drop(db);
    assert_eq!(tiny_on(&fs).open(STORE).unwrap().iter().count().unwrap(), 19);
}

/// A failed ingestion has taken a sequence number that no operation has.
#[test]
fn a_number_that_the_log_leaves_out_is_no_lost_operation() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    fs.fail(Fault { only: Some("MANIFEST"), ..Fault::once(OpKind::Append, 0).with(Errno::NoSpace) });
    db.ingest([("a", "1"), ("b", "2")].map(Ok)).unwrap_err();
    ["x", "y", "z"].into_iter().for_each(|key| db.put(key, "value").unwrap());
    drop(db);
    damage_last_record(&fs);
    let report = tiny_on(&fs).repair(STORE).unwrap();
    assert_eq!(report.logs.unwrap().operations_lost, [4..=4]);
    assert_eq!(tiny_on(&fs).open(STORE).unwrap().iter().count().unwrap(), 2);
}

fn only(fs: &SimFs, ending: &str) -> PathBuf {
    let mut found = fs.files().into_iter().filter(|path| path.to_str().unwrap().ends_with(ending));
    let path = found.next().unwrap();
    assert!(found.next().is_none(), "several {ending}");
    path
}

/// A lost log brings no deleted key back from an obsolete segment. A process killed between the publication
/// of a compaction and the removal of its inputs leaves a sound manifest and old segments.
#[test]
fn a_lost_log_brings_no_deleted_key_back_from_an_obsolete_segment() {
    let store = |later_writes: u64| {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        db.put("deleted", "old").unwrap();
        (0..later_writes).for_each(|n| db.put(format!("row{n}"), "value").unwrap());
        db.flush().unwrap();
        let path = only(&fs, ".segment");
        let old = (path.clone(), fs.read(&path).unwrap());
        db.delete("deleted").unwrap();
        db.compact().unwrap();
        db.put("in the log", "value").unwrap();
        drop(db);
        (fs, old)
    };
    let (foreign, _) = store(20);
    let (fs, (path, old)) = store(1);
    fs.write(&path, old);
    let log = only(&fs, ".wal");
    // A misdirected write: the head of another store's log, which begins at a later operation.
    let head = foreign.read(&log).expect("both logs have the same number");
    let mut bytes = fs.read(&log).unwrap();
    bytes[..40].copy_from_slice(&head[..40]);
    fs.write(&log, bytes);
    let report = tiny_on(&fs).repair(STORE).unwrap();
    assert_eq!(tiny_on(&fs).open(STORE).unwrap().get("deleted").unwrap(), None);
    let set_aside: Vec<String> = report.set_aside.iter().map(ToString::to_string).collect();
    assert!(set_aside.iter().all(|why| !why.contains("MANIFEST")), "it is sound: {set_aside:?}");
}

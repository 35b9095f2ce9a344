//! Directories crafted on purpose (I6): lengths that no content justifies, and numbers that no store assigns.

use crate::error::{Error, Result};
use crate::fs::RealFs;
use crate::id::{FileId, FileKind};
use crate::key::EntryKind;
use crate::manifest::{Manifest, ManifestState, read_state};
use crate::segment::{OpenFiles, SegmentFile, SegmentSummary, SegmentWriter, StoreIdentity, WriterOptions};
use crate::support::fast_dir;
use crate::{Db, Options, repair};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const STORE: StoreIdentity =
    StoreIdentity { store_id: 0x1357, hasher: crate::KeyHasher::siphash13([0x5e, 0x6f]) };
/// A file system allows it, and no machine has the memory.
const TERABYTE: u64 = 1 << 40;

/// A store with a segment and a log.
fn store() -> (tempfile::TempDir, PathBuf) {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let db = Db::open(&path).unwrap();
    db.put("flushed", "1").unwrap();
    db.flush().unwrap();
    db.put("logged", "2").unwrap();
    drop(db);
    (dir, path)
}

fn lengthen(path: &Path) {
    File::options().write(true).open(path).unwrap().set_len(TERABYTE).unwrap();
}

/// The file of the store with this extension.
fn file_of(store: &Path, ending: &str) -> PathBuf {
    let files = std::fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.to_string_lossy().ends_with(ending)).unwrap()
}

fn is_named<T>(outcome: Result<T>, of: &Path) -> bool {
    matches!(outcome, Err(Error::Corruption { file, .. }) if file == of)
}

/// A repaired store opens, has the rows, takes writes, and needs no second repair.
fn works(path: &Path, rows: &[&str]) {
    for round in ["first", "second"] {
        let db = Db::open(path).unwrap();
        rows.iter().for_each(|key| assert!(db.get(key).unwrap().is_some(), "{key}, {round}"));
        db.put("after", round).unwrap();
        db.flush().unwrap();
        assert!(db.verify().unwrap().is_ok());
    }
    assert!(repair(path).unwrap().set_aside.is_empty());
}

#[test]
fn i6_files_of_a_terabyte_of_holes_cost_no_memory() {
    for ending in ["MANIFEST", ".wal", ".segment", ".filter"] {
        let (_dir, path) = store();
        let file = file_of(&path, ending);
        let db = Db::open(&path).unwrap();
        lengthen(&file);
        _ = db.get("flushed");
        let verified = db.verify().unwrap().is_ok();
        assert_eq!(verified, matches!(ending, ".wal" | ".filter"), "{ending}");
        drop(db);
        match Db::open(&path) {
            Err(error) => assert!(is_named(Err::<(), _>(error), &file)),
            Ok(db) => assert!(ending == ".filter" || is_named(db.get("flushed"), &file), "{ending}"),
        }
        repair(&path).unwrap();
        works(&path, &["flushed", "logged"]);
    }
}

/// Writes a segment of the rows a, b and c.
fn segment(dir: &Path, id: FileId) -> SegmentSummary {
    let path = dir.join(id.file_name(FileKind::Segment));
    let mut writer = SegmentWriter::create(&RealFs, &path, id, STORE, WriterOptions::default()).unwrap();
    for (seq, key) in ["a", "b", "c"].iter().enumerate() {
        writer.append(key.as_bytes(), 1 + seq as u64, EntryKind::PUT, b"value").unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn i6_nobody_looks_for_edits_behind_gigabytes_of_holes() {
    let (_dir, path) = store();
    let manifest = path.join("MANIFEST");
    let (file, sound) =
        (File::options().write(true).open(&manifest).unwrap(), manifest.metadata().unwrap().len());
    for (hole, opens) in [(1 << 16, true), (3 << 30, false)] {
        file.set_len(sound + hole).unwrap();
        let opened = Options::new().read_only(true).open(&path);
        assert_eq!(opened.is_ok(), opens, "{hole}");
        assert!(opens || is_named(opened, &manifest));
    }
    repair(&path).unwrap();
    works(&path, &["flushed", "logged"]);
}

#[test]
fn repair_gives_segments_with_enormous_numbers_others() {
    for number in [u64::MAX, u64::MAX - 1, 1 << 62, FileId::LARGEST_NEW.0 + 1, FileId::LARGEST_NEW.0] {
        let dir = fast_dir();
        let path = dir.path().join("store");
        std::fs::create_dir(&path).unwrap();
        segment(&path, FileId(number));
        let report = repair(&path).unwrap();
        assert_eq!((report.rows_salvaged, report.lost.len(), report.set_aside.len()), (3, 0, 1));
        works(&path, &["a", "b", "c"]);
    }
}

#[test]
fn a_repaired_store_whose_numbers_had_nearly_run_out_opens_more_than_once() {
    let (_dir, path) = store();
    let next_id = FileId::LARGEST_NEW;
    let state = ManifestState { next_id, ..read_state(&RealFs, &path).unwrap() };
    Manifest::create(Arc::new(RealFs), &path, &state).unwrap();
    assert!(Db::open(&path).is_ok());
    repair(&path).unwrap();
    works(&path, &["flushed", "logged"]);
}

#[test]
fn a_foreign_file_with_an_enormous_number_stops_no_opening() {
    for number in [FileId::LARGEST_NEW.0 + 1, FileId::LARGEST_NEW.0, FileId::LARGEST_NEW.0 - 1] {
        let (_dir, path) = store();
        std::fs::write(path.join(FileId(number).file_name(FileKind::Filter)), "foreign").unwrap();
        works(&path, &["flushed", "logged"]);
    }
}

#[test]
fn a_manifest_whose_numbers_run_out_is_refused_and_repaired() {
    for (next_id, log_floor) in [(FileId::LARGEST, 1), (FileId(FileId::LARGEST_NEW.0 + 1), 1 << 61)] {
        let dir = fast_dir();
        let path = dir.path().join("store");
        std::fs::create_dir(&path).unwrap();
        let mut state =
            ManifestState { next_id, log_floor: FileId(log_floor), last_seq: 3, ..ManifestState::new(STORE) };
        let meta = crate::manifest::SegmentMeta {
            place: crate::manifest::Place::Level(3),
            summary: segment(&path, FileId(7)),
        };
        state.segments.insert(FileId(7), meta);
        Manifest::create(Arc::new(RealFs), &path, &state).unwrap();
        std::fs::write(path.join("LOCK"), []).unwrap();
        assert!(is_named(Db::open(&path), &path.join("MANIFEST")));
        assert!(Options::new().read_only(true).open(&path).unwrap().get("a").unwrap().is_some());
        repair(&path).unwrap();
        works(&path, &["a", "b", "c"]);
    }
}

#[test]
fn logs_with_enormous_numbers_are_refused_and_repaired() {
    let (_dir, path) = store();
    let state = read_state(&RealFs, &path).unwrap();
    let number = FileId(u64::MAX - 5);
    let log = path.join(number.file_name(FileKind::Wal));
    let (store_id, next) = (state.header.store_id, state.last_seq + 2);
    let mut writer = crate::wal::LogWriter::create(&RealFs, &log, number, store_id, next).unwrap();
    let mut batch = crate::Batch::new();
    batch.put("late", "3");
    let payload = batch.into_bytes();
    writer.append_group([crate::wal::LogRecord { first_seq: next, count: 1, payload: &payload }]).unwrap();
    drop(writer);
    assert!(is_named(Db::open(&path), &log));
    repair(&path).unwrap();
    works(&path, &["flushed", "logged", "late"]);
}

#[test]
fn i12_open_top_indexes_stay_within_their_budget() {
    let dir = fast_dir();
    let key = |n: u64| [vec![b'k'; 60_000], n.to_be_bytes().to_vec()].concat();
    let files = Arc::new(OpenFiles::new(Arc::new(RealFs), dir.path(), 0, 512, true));
    let segments: Vec<SegmentFile> = (1..=12)
        .map(|id| {
            let path = dir.path().join(FileId(id).file_name(FileKind::Segment));
            let mut writer =
                SegmentWriter::create(&RealFs, &path, FileId(id), STORE, WriterOptions::default()).unwrap();
            (0..40).for_each(|n| _ = writer.append(&key(n), 1, EntryKind::PUT, b"").unwrap());
            SegmentFile::new(Arc::clone(&files), FileId(id), writer.finish().unwrap().digest)
        })
        .collect();
    for segment in &segments {
        assert!(segment.get(&key(7), STORE.hasher.hash(&key(7))).unwrap().is_some());
        let top_bytes = 40 * 60_008;
        assert!(files.top_index_bytes() < (8 << 20) + top_bytes, "{} bytes", files.top_index_bytes());
    }
    assert!((2..=4).contains(&files.open_now()), "{} of 12 are open", files.open_now());
}

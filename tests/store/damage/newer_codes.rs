//! Codes that only a newer version knows are reported as such, in every file of a store. They are not damage:
//! nothing is set aside, dropped or rewritten, and the newer version finds it where it was. (`i2_sidecars.rs`
//! has the same for filters, which are rebuilt.)

use crate::support::{Contents, Crash, Layout, LogRecord, STORE, SimFs, contents, eventually, tiny_on};
use sidebloom::fs::Fs;
use sidebloom::{Compression, Db, Error};
use std::path::{Path, PathBuf};

const KEYS: u64 = 300;

fn numbered(i: u64) -> Vec<u8> {
    format!("key{i:05}").into_bytes()
}

fn one(fs: &SimFs, ending: &str) -> PathBuf {
    let mut files = fs.files().into_iter().filter(|path| path.to_str().unwrap().ends_with(ending));
    let path = files.next().unwrap();
    assert!(files.next().is_none(), "more than one {ending}");
    path
}

fn open(fs: &SimFs) -> sidebloom::Result<Db> {
    tiny_on(fs).memtable_bytes(1 << 20).segment_bytes(1 << 20).compression(Compression::None).open(STORE)
}

/// A closed store with these keys, in a segment or in a log.
fn filled(in_segment: bool) -> SimFs {
    let fs = SimFs::new();
    let db = open(&fs).unwrap();
    (0..KEYS).for_each(|i| db.put(numbered(i), numbered(i)).unwrap());
    if in_segment {
        db.flush().unwrap();
        drop(db);
        return fs;
    }
    db.sync().unwrap();
    let fs = fs.crash(Crash::Kill, 0); // Closing would flush.
    drop(db);
    fs
}

#[track_caller]
fn assert_newer(error: &Error, path: &Path, what: &str) {
    let text = format!("{} has {what} at offset ", path.display());
    assert!(error.to_string().starts_with(&text), "{error}");
    assert!(error.to_string().contains("it was written by a newer version of sidebloom"), "{error}");
    assert!(matches!(error, Error::UnknownCode { .. }));
}

/// A repair must not drop what it cannot read.
#[track_caller]
fn assert_left_alone_by_repair(fs: &SimFs, path: &Path, what: &str) {
    let before = fs.read(path).unwrap();
    for _ in 0..2 {
        assert_newer(&tiny_on(fs).repair(STORE).unwrap_err(), path, what);
        assert_eq!(fs.read(path).unwrap(), before);
        assert!(!fs.files().iter().any(|file| file.to_str().unwrap().ends_with(".damaged")));
    }
}

/// Gives a block of the segment another type, with a valid checksum. Returns the block's keys.
fn plant_codec(fs: &SimFs, path: &Path, codec: u8) -> Vec<Vec<u8>> {
    let mut bytes = fs.read(path).unwrap();
    let block = Layout::of(&bytes).data.swap_remove(3);
    let (start, crc_at) = (block.bytes.start, block.bytes.end - 4);
    bytes[crc_at - 1] = codec;
    let id: u64 = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let place = [id.to_le_bytes(), (start as u64).to_le_bytes()].concat();
    let crc = crc32fast::hash(&[&bytes[start..crc_at], &place].concat());
    bytes[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
    fs.write(path, bytes);
    block.rows.into_iter().map(|(key, _)| key).collect()
}

#[test]
fn i6_a_codec_of_a_newer_version_fails_reads_by_name_and_nothing_else() {
    let fs = filled(true);
    let path = one(&fs, ".segment");
    let affected = plant_codec(&fs, &path, 9);
    assert!(affected.len() > 2);
    let what = "a block of codec 9";
    let db = open(&fs).unwrap();
    for i in 0..KEYS {
        let (key, found) = (numbered(i), db.get(numbered(i)));
        if affected.contains(&key) {
            assert_newer(&found.unwrap_err(), &path, what)
        } else {
            assert_eq!(found.unwrap().unwrap().to_vec(), key)
        }
    }
    let ended = db.iter().find_map(Result::err).unwrap();
    assert_newer(&ended, &path, what);
    assert!(db.verify().unwrap().problems.iter().any(|problem| problem.to_string().contains(what)));

    // Work that reads the segment fails with that error. It neither quarantines it nor stops writers.
    (0..10).for_each(|round| {
        db.put(numbered(0), [round]).unwrap();
        db.flush().unwrap();
    });
    assert_newer(&db.wait_for_compaction().unwrap_err(), &path, what);
    assert_newer(&db.compact().unwrap_err(), &path, what);
    assert_eq!(db.stats().segments_quarantined, 0);
    assert_eq!(db.get(numbered(0)).unwrap().unwrap().to_vec(), [9]);
    drop(db);
    assert_left_alone_by_repair(&fs, &path, what);

    // Once it is readable again, everything works.
    plant_codec_back(&fs, &path);
    let db = open(&fs).unwrap();
    eventually("compactions succeed again", || db.wait_for_compaction().is_ok());
    let expected: Contents =
        (0..KEYS).map(|i| (numbered(i), if i == 0 { vec![9] } else { numbered(i) })).collect();
    assert_eq!(contents(&db), expected);
}

fn plant_codec_back(fs: &SimFs, path: &Path) {
    plant_codec(fs, path, 0);
}

#[test]
fn i6_an_operation_of_a_newer_version_in_a_log_is_named_and_stays() {
    let fs = filled(false);
    let path = one(&fs, ".wal");
    let mut bytes = fs.read(&path).unwrap();
    let mut first = LogRecord::of(&bytes[40..]);
    first.payload[0] = 9;
    bytes.splice(40..40 + first.len, first.encode());
    fs.write(&path, bytes.clone());
    let what = "a record with an operation of kind 9";
    for _ in 0..2 {
        assert_newer(&open(&fs).map(drop).unwrap_err(), &path, what);
        assert_newer(&tiny_on(&fs).read_only(true).open(STORE).map(drop).unwrap_err(), &path, what);
    }
    assert_left_alone_by_repair(&fs, &path, what);
    assert_eq!(fs.read(&path).unwrap(), bytes);
}

#[test]
fn i6_a_hash_of_a_newer_version_in_a_manifest_is_named_and_stays() {
    let fs = filled(true);
    let path = one(&fs, "MANIFEST");
    let mut bytes = fs.read(&path).unwrap();
    bytes[20] = 5;
    let crc = crc32fast::hash(&bytes[..40]).to_le_bytes();
    bytes[40..44].copy_from_slice(&crc);
    fs.write(&path, bytes);
    assert_newer(&open(&fs).map(drop).unwrap_err(), &path, "hash code 5");
    assert_left_alone_by_repair(&fs, &path, "hash code 5");
    // Without the manifest, the segment's format is newer.
    fs.remove(&path).unwrap();
    let segment = one(&fs, ".segment");
    plant_codec(&fs, &segment, 4);
    assert_left_alone_by_repair(&fs, &segment, "a block of codec 4");
}

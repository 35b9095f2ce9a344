//! Rule I14: the next release can read, write, repair and follow what a release has written. Each directory
//! of `fixtures/releases` has stores, filters and a guard of one release.
//! `SIDEBLOOM_RELEASE=0.1.0 cargo test --features zstd --test store i14_what_this_build` makes those of this
//! build.

mod filters;
mod keyspaces;
mod make;
mod pinned;

use self::make::{GUARDED, KNOWN_ABSENT, NOTE, STORES, guarded, listing, make, options};
use crate::archive::unpack;
use crate::support::{Contents, contents, fast_dir, files_with, fingerprints};
use sidebloom::Db;
use sidebloom::filter::Verdict;
use sidebloom::guard::{Guard, GuardOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const RELEASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/releases");

/// A store of a release, unpacked.
struct Store {
    _dir: TempDir,
    path: PathBuf,
    rows: Contents,
}

impl Store {
    /// Reads it without writing, and compares it with its listing.
    #[track_caller]
    fn unpack(archive: &Path) -> Self {
        let dir = fast_dir();
        unpack(archive, dir.path());
        let path = dir.path().join("store");
        let rows = contents(&options().read_only(true).open(&path).unwrap());
        let expected = std::fs::read_to_string(dir.path().join("rows.tsv")).unwrap();
        assert!(rows.len() > 300 && listing(&rows) == expected, "{}", archive.display());
        Store { _dir: dir, path, rows }
    }

    #[track_caller]
    fn assert_unchanged(&self, db: &Db) {
        assert!(contents(db) == self.rows);
        assert!(self.rows.keys().all(|key| db.may_contain(key) == Verdict::Maybe));
        let report = db.verify().unwrap();
        assert!(report.is_ok() && report.unusable_filters.is_empty(), "{report:?}");
    }
}

/// A build without Zstandard leaves out the store that needs it.
fn stores_in(release: &Path) -> Vec<PathBuf> {
    let of = |(name, ..): &(&str, _, _)| release.join(format!("{name}.tar.gz"));
    STORES.iter().map(of).collect()
}

fn each_release(check: impl Fn(&Path)) {
    let releases = files_with(Path::new(RELEASES), "");
    assert!(!releases.is_empty());
    releases.iter().for_each(|release| check(release));
}

fn each_store(release: &Path, check: impl Fn(&Store)) {
    stores_in(release).iter().for_each(|archive| check(&Store::unpack(archive)));
}

/// The versions of a store's files, by the ends of their names. A file removed at this moment has none.
fn versions(path: &Path) -> BTreeMap<&'static str, BTreeSet<u32>> {
    let of = |file: &Path, kind: &str| {
        let bytes = std::fs::read(file).ok()?;
        let at = if kind == ".segment" { bytes.len().checked_sub(16)? } else { 8 };
        Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().unwrap()))
    };
    let kinds = ["MANIFEST", ".wal", ".segment", ".filter"];
    kinds.map(|kind| (kind, files_with(path, kind).iter().filter_map(|file| of(file, kind)).collect())).into()
}

/// The versions of a store that this build has created, with a file of each kind.
fn versions_of_today() -> BTreeMap<&'static str, BTreeSet<u32>> {
    let dir = fast_dir();
    let db = options().open(dir.path()).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.put("b", "1").unwrap();
    let found = versions(dir.path());
    assert!(found.values().all(|versions| versions.len() == 1), "{found:?}");
    found
}

/// Every filter is used, and none is rebuilt.
fn is_read_with_its_filters(store: &Store) {
    let db = options().read_only(true).open(&store.path).unwrap();
    db.warm().unwrap();
    store.assert_unchanged(&db);
    (0..100).for_each(|i| assert!(db.get(format!("artist05/album1/absent{i}")).unwrap().is_none()));
    assert_eq!(db.prefix("artist05/album9/").count().unwrap(), 0);
    let stats = db.stats();
    assert!(stats.filter_negatives > 90 && stats.prefix_negatives > 0, "{stats:?}");
    assert_eq!(stats.filters_unavailable, 0);
    assert!(stats.levels.iter().all(|level| level.filters == level.segments), "{:?}", stats.levels);
}

/// Only files of this build are written to, and a compaction replaces the release's files.
fn is_written_and_rewritten(store: &Store) {
    let today = versions_of_today();
    let old_logs = fingerprints(&store.path, ".wal");
    let mut expected = store.rows.clone();
    let db = options().open(&store.path).unwrap();
    store.assert_unchanged(&db);
    for (i, key) in store.rows.keys().step_by(3).enumerate() {
        let value = [i as u8; 20].to_vec();
        db.put(key, &value).unwrap();
        expected.insert(key.clone(), value);
    }
    db.delete_range("artist03/".."artist04/").unwrap();
    expected.retain(|key, _| !key.starts_with(b"artist03/"));
    db.sync().unwrap();
    assert_eq!(versions(&store.path)["MANIFEST"], today["MANIFEST"]);
    for (path, now) in fingerprints(&store.path, ".wal") {
        assert!(old_logs.get(&path).is_none_or(|then| *then == now), "a log of the release was written");
    }
    drop(db);
    let db = options().open(&store.path).unwrap();
    assert!(contents(&db) == expected);
    db.compact().unwrap();
    db.wait_for_compaction().unwrap();
    db.put("one more", "1").unwrap(); // Into a new log.
    expected.insert(b"one more".to_vec(), b"1".to_vec());
    assert_eq!(db.stats().segments_of_earlier_formats, 0);
    assert_eq!(versions(&store.path), today);
    assert!(contents(&db) == expected && db.verify().unwrap().is_ok());
}

fn is_repaired(store: &Store) {
    for without_manifest in [false, true] {
        if without_manifest {
            std::fs::remove_file(store.path.join("MANIFEST")).unwrap();
        }
        let report = options().repair(&store.path).unwrap();
        assert!(report.set_aside.is_empty() && report.lost.is_empty() && report.logs.is_none(), "{report:?}");
        store.assert_unchanged(&options().read_only(true).open(&store.path).unwrap());
    }
    is_written_and_rewritten(store);
}

fn is_followed(store: &Store) {
    let follower = options().follow(true).open(&store.path).unwrap();
    store.assert_unchanged(&follower);
    let writer = options().open(&store.path).unwrap();
    let steps: [fn(&Db) -> sidebloom::Result<()>; 3] = [|db| db.flush(), Db::compact, |db| db.sync()];
    for step in steps {
        writer.put("artist05/album1/new", "1").unwrap();
        writer.delete_prefix("artist05/album2/").unwrap();
        step(&writer).unwrap();
        follower.catch_up().unwrap();
        assert!(contents(&follower) == contents(&writer));
    }
    assert!(follower.contains_key("artist05/album1/new").unwrap() && follower.verify().unwrap().is_ok());
}

fn is_copied(store: &Store) {
    let copy = store.path.with_file_name("copy");
    options().open(&store.path).unwrap().checkpoint(&copy).unwrap();
    store.assert_unchanged(&options().open(&copy).unwrap());
    store.assert_unchanged(&options().open(&store.path).unwrap());
}

fn guard_answers(release: &Path) {
    let dir = fast_dir();
    unpack(&release.join("guard.tar.gz"), dir.path());
    let path = dir.path().join("guard");
    let options = || GuardOptions::new().known_absent(10);
    assert_answers(&options().read_only(true).open(&path).unwrap());
    let guard = options().open(&path).unwrap();
    assert_answers(&guard);
    assert_filters(&GuardOptions::new().open_image(&guard.image().unwrap()).unwrap());
    guard.insert("new").unwrap();
    guard.remove(guarded(0)).unwrap();
    drop(guard);
    let guard = options().open(&path).unwrap();
    assert_eq!([guard.count("new").unwrap(), guard.count(guarded(0)).unwrap()], [1, 0]);
}

#[track_caller]
fn assert_answers(guard: &Guard) {
    assert_filters(guard);
    (0..GUARDED).for_each(|i| assert_eq!(guard.count(guarded(i)).unwrap(), 1 + i % 3));
    assert_eq!(guard.may_contain(KNOWN_ABSENT), Verdict::Absent);
    assert_eq!(guard.note().unwrap().as_deref(), Some(NOTE.as_bytes()));
}

#[track_caller]
fn assert_filters(guard: &Guard) {
    assert!((0..GUARDED).all(|i| guard.may_contain(guarded(i)) == Verdict::Maybe));
    let absent = (0..100).filter(|i| guard.may_contain(format!("absent{i}")) == Verdict::Absent).count();
    assert!(absent > 85, "{absent}");
}

#[test]
fn i14_stores_of_releases_are_read_with_their_filters() {
    each_release(|release| each_store(release, is_read_with_its_filters));
}

#[test]
fn i14_stores_of_releases_are_written_and_rewritten() {
    each_release(|release| each_store(release, is_written_and_rewritten));
}

#[test]
fn i14_stores_of_releases_are_repaired() {
    each_release(|release| each_store(release, is_repaired));
}

#[test]
fn i14_stores_of_releases_are_followed() {
    each_release(|release| each_store(release, is_followed));
}

#[test]
fn i14_stores_of_releases_are_copied() {
    each_release(|release| each_store(release, is_copied));
}

#[test]
fn i14_guards_of_releases_answer() {
    each_release(guard_answers);
}

#[test]
fn i14_keyspaces_and_expiring_rows_of_releases_are_read() {
    each_release(keyspaces::check);
}

#[test]
fn i14_filters_of_releases_answer_as_they_did() {
    each_release(filters::check);
}

/// So that it can become a release's: releases are made this way.
#[test]
fn i14_what_this_build_makes_passes_what_releases_must() {
    let dir = fast_dir();
    let made = match std::env::var("SIDEBLOOM_RELEASE") {
        Ok(version) => Path::new(RELEASES).join(version),
        Err(_) => dir.path().join("today"),
    };
    make(&made);
    let checks = [is_read_with_its_filters, is_written_and_rewritten, is_repaired, is_followed, is_copied];
    checks.iter().for_each(|check| each_store(&made, check));
    guard_answers(&made);
    keyspaces::check(&made);
    filters::check(&made);
}

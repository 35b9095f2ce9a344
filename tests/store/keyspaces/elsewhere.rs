//! Keyspaces in copies, followers and repairs, and in stores of an earlier format.

use crate::support::{Crash, STORE, SimFs, fast_dir, files_with, tiny, tiny_on};
use sidebloom::{Compression, Db, Error, FilterPolicy, Keyspace, KeyspaceOptions};
use std::fs;
use std::path::Path;

fn off() -> KeyspaceOptions {
    KeyspaceOptions::new().filter_policy(FilterPolicy::OFF).compression(Compression::Lz4)
}

fn fill(keyspace: &Keyspace, value: &str) {
    (0..300u32).for_each(|i| keyspace.put(i.to_be_bytes(), value.repeat(20)).unwrap());
}

/// A store with rows in three keyspaces, and one that was dropped.
fn make(db: &Db) {
    let [a, b, gone] = ["a", "b", "gone"].map(|name| db.create_keyspace(name, off()).unwrap());
    fill(&gone, "gone");
    fill(db, "default");
    fill(&a, "a");
    db.drop_keyspace("gone").unwrap();
    fill(&b, "b");
}

fn assert_made(db: &Db) {
    assert_eq!(db.keyspaces().unwrap(), ["a", "b"]);
    for (keyspace, value) in
        [(Keyspace::clone(db), "default"), (db.keyspace("a").unwrap(), "a"), (db.keyspace("b").unwrap(), "b")]
    {
        assert_eq!(keyspace.iter().count().unwrap(), 300, "{value}");
        assert_eq!(*keyspace.get(7u32.to_be_bytes()).unwrap().unwrap(), *value.repeat(20).as_bytes());
        assert!(keyspace.get(700u32.to_be_bytes()).unwrap().is_none());
        assert!(value == "default" || keyspace.options() == off());
    }
    assert!(matches!(db.keyspace("gone"), Err(Error::UnknownKeyspace { .. })));
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn checkpoints_and_read_only_openings_have_them() {
    for flushed in [false, true] {
        let dir = fast_dir();
        let (store, copy) = (dir.path().join("store"), dir.path().join("copy"));
        let db = tiny().open(&store).unwrap();
        make(&db);
        if flushed {
            db.compact().unwrap();
        }
        db.checkpoint(&copy).unwrap();
        db.drop_keyspace("a").unwrap();
        drop(db);
        assert_made(&tiny().read_only(true).open(&copy).unwrap());
        let copy = tiny().open(&copy).unwrap();
        assert_made(&copy);
        let new = copy.create_keyspace("gone", KeyspaceOptions::new()).unwrap();
        assert_eq!(new.iter().count().unwrap(), 0);
    }
}

#[test]
fn a_follower_sees_keyspaces_come_change_and_go() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    let follower = tiny().follow(true).open(dir.path()).unwrap();
    assert!(matches!(follower.keyspace("a"), Err(Error::UnknownKeyspace { .. })));
    make(&db);
    follower.catch_up().unwrap();
    assert_made(&follower);
    let followed = follower.keyspace("a").unwrap();
    for flushed in [false, true] {
        let options = KeyspaceOptions::new().block_bytes(if flushed { 512 } else { 1024 });
        db.keyspace("a").unwrap().set_options(options.clone()).unwrap();
        db.keyspace("a").unwrap().put("more", "1").unwrap();
        if flushed {
            db.flush().unwrap();
        }
        follower.catch_up().unwrap();
        assert!(followed.options() == options && followed.contains_key("more").unwrap());
    }
    let before = followed.snapshot();
    db.drop_keyspace("a").unwrap();
    db.compact().unwrap();
    let again = db.create_keyspace("a", KeyspaceOptions::new()).unwrap();
    follower.catch_up().unwrap();
    assert!(matches!(followed.get("more"), Err(Error::KeyspaceDropped { .. })));
    assert!(matches!(followed.prefix("m").next(), Some(Err(Error::KeyspaceDropped { .. }))));
    assert_eq!(before.iter().count().unwrap(), 301);
    again.put("new", "1").unwrap();
    follower.catch_up().unwrap();
    assert_eq!(follower.keyspace("a").unwrap().iter().count().unwrap(), 1);
    assert!(follower.verify().unwrap().is_ok());
}

#[test]
fn a_repair_without_a_manifest_finds_names_options_and_rows() {
    for flushed in [false, true] {
        let dir = fast_dir();
        let db = tiny().open(dir.path()).unwrap();
        make(&db);
        if flushed {
            db.compact().unwrap();
        }
        drop(db);
        fs::remove_file(dir.path().join("MANIFEST")).unwrap();
        tiny().repair(dir.path()).unwrap();
        assert_made(&tiny().open(dir.path()).unwrap());
    }
}

/// The segment with all rows of the catalog is unreadable, or missing.
#[test]
fn a_repair_names_keyspaces_again_whose_names_are_lost() {
    let cases = [false, true].into_iter().flat_map(|lost| [(lost, false), (lost, true)]);
    for (without_manifest, is_missing) in cases {
        let dir = fast_dir();
        let options = || tiny().compression(Compression::None);
        let db = options().open(dir.path()).unwrap();
        let names = ["of segments of its own", "tiny", "tiny, too", "dropped", "last"];
        let [own, tiny, also_tiny, dropped, last] =
            names.map(|name| db.create_keyspace(name, off()).unwrap());
        db.flush().unwrap();
        [&own, &dropped, &last].into_iter().for_each(|keyspace| fill(keyspace, "row"));
        [&tiny, &also_tiny].into_iter().for_each(|keyspace| keyspace.put("k", "v").unwrap());
        db.compact().unwrap();
        db.drop_keyspace("dropped").unwrap();
        db.compact().unwrap();
        drop((own, tiny, also_tiny, dropped, last, db));
        let of_catalog = |path: &&std::path::PathBuf| {
            let bytes = fs::read(path).unwrap();
            names.iter().filter(|name| bytes.windows(name.len()).any(|at| at == name.as_bytes())).count() > 1
        };
        let segments = files_with(dir.path(), ".segment");
        let damaged: Vec<_> = segments.iter().filter(of_catalog).collect();
        assert!(damaged.len() == 1 && segments.len() > 2, "{damaged:?}");
        if is_missing {
            fs::remove_file(damaged[0]).unwrap();
        } else {
            let zeros = vec![0; fs::metadata(damaged[0]).unwrap().len() as usize];
            fs::write(damaged[0], zeros).unwrap();
        }
        if without_manifest {
            fs::remove_file(dir.path().join("MANIFEST")).unwrap();
        }
        let report = options().repair(dir.path()).unwrap();
        let db = options().open(dir.path()).unwrap();
        // What shares a segment is not named there.
        let named = ["of segments of its own", "keyspace 2", "keyspace 3", "last"];
        assert_eq!(report.keyspaces_named, named);
        assert_eq!(db.keyspaces().unwrap(), ["keyspace 2", "keyspace 3", "last", "of segments of its own"]);
        let rows = named.map(|name| db.keyspace(name).unwrap().iter().count().unwrap());
        assert_eq!(rows, [300, 1, 1, 300]);
        let new = db.create_keyspace("dropped", KeyspaceOptions::new()).unwrap();
        assert_eq!(new.iter().count().unwrap(), 0);
        new.put("k", "v").unwrap();
        assert_eq!(db.keyspace("last").unwrap().iter().count().unwrap(), 300);
        drop((new, db));
        assert!(options().repair(dir.path()).unwrap().keyspaces_named.is_empty());
    }
}

/// The batch that created it is unreadable, and its rows are not in segments yet.
#[test]
fn a_repair_of_logs_names_keyspaces_again_whose_names_are_lost() {
    let dir = fast_dir();
    let db = tiny().memtable_bytes(1 << 20).open(dir.path()).unwrap();
    let lost = db.create_keyspace("its name is lost", KeyspaceOptions::new()).unwrap();
    fill(&lost, "row");
    drop((lost, db));
    let log = files_with(dir.path(), ".wal").pop().unwrap();
    let mut bytes = fs::read(&log).unwrap();
    let at = bytes.windows(16).position(|at| at == b"its name is lost").unwrap();
    bytes[at] ^= 1;
    fs::write(&log, bytes).unwrap();
    let report = tiny().repair(dir.path()).unwrap();
    assert_eq!(report.keyspaces_named, ["keyspace 1"]);
    let db = tiny().open(dir.path()).unwrap();
    assert_eq!(db.keyspace("keyspace 1").unwrap().iter().count().unwrap(), 300);
    assert_eq!(db.create_keyspace("new", KeyspaceOptions::new()).unwrap().iter().count().unwrap(), 0);
}

#[test]
fn i4_a_created_keyspace_survives_with_its_first_synced_row() {
    for crash in [Crash::Power, Crash::PowerOrdered, Crash::Kill] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        let seen = db.create_keyspace("seen", off()).unwrap();
        seen.put("k", "v").unwrap();
        db.sync().unwrap();
        let db = tiny_on(&fs.crash(crash, 3)).open(STORE).unwrap();
        let seen = db.keyspace("seen").unwrap();
        assert!(seen.contains_key("k").unwrap() && seen.options() == off());
    }
}

/// Makes the manifest one of format version 5, which has the same fields.
fn make_version_5(store: &Path) {
    let path = store.join("MANIFEST");
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 5;
    let crc = crc32fast::hash(&bytes[..40]);
    bytes[40..44].copy_from_slice(&crc.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn i14_rows_of_the_format_before_are_in_the_default_keyspace() {
    for memtable_bytes in [4096, 1 << 20] {
        for flushed in [false, true] {
            for has_ambiguous in [false, true] {
                let dir = fast_dir();
                let db = tiny().open(dir.path()).unwrap();
                fill(&db, "default");
                db.delete_range([0xfe]..).unwrap();
                if has_ambiguous {
                    db.put([0xff; 9], "this key has no head in version 5").unwrap();
                }
                if flushed {
                    db.flush().unwrap();
                }
                drop(db);
                make_version_5(dir.path());
                let options = || tiny().memtable_bytes(memtable_bytes);
                let openings = [options().read_only(true), options().follow(true), options()];
                for options in openings {
                    let before = files_with(dir.path(), "");
                    match options.open(dir.path()) {
                        Ok(db) => {
                            assert!(!has_ambiguous);
                            assert_eq!(db.iter().count().unwrap(), 300);
                        }
                        Err(error) => {
                            assert!(has_ambiguous, "{error}");
                            assert!(matches!(error, Error::AmbiguousKeys { found: 5, .. }), "{error}");
                            assert!(error.to_string().contains("keys that start with 0xff"), "{error}");
                            let after = files_with(dir.path(), "");
                            assert!(before.iter().all(|file| after.contains(file)), "no file is gone");
                        }
                    }
                }
                if !has_ambiguous {
                    let db = tiny().open(dir.path()).unwrap();
                    let seen = db.create_keyspace("seen", off()).unwrap();
                    seen.put("k", "v").unwrap();
                    db.put([0xff; 9], "with a head").unwrap();
                    db.compact().unwrap();
                    assert_eq!((db.iter().count().unwrap(), seen.iter().count().unwrap()), (301, 1));
                    drop((seen, db));
                    let db = tiny().open(dir.path()).unwrap();
                    assert!(db.contains_key([0xff; 9]).unwrap());
                }
            }
        }
    }
}

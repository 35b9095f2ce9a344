//! Bad input: keys and values beyond the limits, paths that are not stores, stores in use, invalid options.
//! Each gives a clear error and changes nothing.

use crate::support::{STORE, Sequence, SimFs, assert_holds, contents, fast_dir, fingerprints, tiny, tiny_on};
use sidebloom::{
    Batch, Compression, Db, Durability, Error, FilterPolicy, MAX_KEY_BYTES, MAX_VALUE_BYTES, Options,
};
use std::fs;
use std::path::Path;

#[track_caller]
fn error_of(options: Options, path: impl AsRef<Path>) -> Error {
    options.open(path).map(|_| ()).unwrap_err()
}

#[test]
fn the_empty_key_is_a_key_like_any_other() {
    let dir = fast_dir();
    let mut db = tiny().open(dir.path()).unwrap();
    assert_eq!(db.get(b"").unwrap(), None);
    db.put(b"", b"empty").unwrap();
    db.put(b"\0", b"").unwrap();
    for step in 0..4 {
        assert_eq!(db.get(b"").unwrap().as_deref(), Some(b"empty".as_slice()), "step {step}");
        assert_eq!(db.get(b"\0").unwrap().as_deref(), Some(b"".as_slice()));
        let keys: Vec<_> = db.iter().map(|kv| kv.unwrap().0).collect();
        assert_eq!(keys, [b"".to_vec(), b"\0".to_vec()]);
        assert_eq!(db.prefix(b"").count().unwrap(), 2);
        assert_eq!(db.range(b"".to_vec()..=b"".to_vec()).count().unwrap(), 1);
        match step {
            0 => db.flush().unwrap(),
            1 => db.compact().unwrap(),
            2 => {
                drop(db);
                db = tiny().open(dir.path()).unwrap();
            }
            _ => {}
        }
    }
    db.delete(b"").unwrap();
    db.flush().unwrap();
    assert_eq!(db.get(b"").unwrap(), None);
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn the_largest_key_and_the_largest_value_survive_reopening_and_compaction() {
    let dir = fast_dir();
    let largest_key = vec![0xff; MAX_KEY_BYTES];
    let similar_key = [&largest_key[..MAX_KEY_BYTES - 1], &[0xfe]].concat();
    let largest_value: Vec<u8> = (0..MAX_VALUE_BYTES).map(|i| ((i / 7) ^ (i >> 13)) as u8).collect();
    let db = Options::new().block_cache_bytes(0).open(dir.path()).unwrap();
    db.put(&largest_key, b"short").unwrap();
    db.put(&similar_key, &largest_value).unwrap();
    db.put(b"small", b"value").unwrap();
    let check = |db: &Db| {
        assert_eq!(db.get(&largest_key).unwrap().as_deref(), Some(b"short".as_slice()));
        assert!(db.get(&similar_key).unwrap().as_deref() == Some(largest_value.as_slice()));
        assert_eq!(db.get(b"small").unwrap().as_deref(), Some(b"value".as_slice()));
        let keys: Vec<_> = db.iter().rev().map(|kv| kv.unwrap().0).collect();
        assert!(keys == [largest_key.clone(), similar_key.clone(), b"small".to_vec()]);
    };
    check(&db);
    drop(db);
    let db = Options::new().open(dir.path()).unwrap();
    check(&db);
    db.compact().unwrap();
    check(&db);
    assert!(db.verify().unwrap().is_ok());
    drop(db);
    check(&Options::new().read_only(true).open(dir.path()).unwrap());
}

#[test]
fn one_byte_more_is_refused_with_a_named_error_and_nothing_is_written() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    db.put(b"a", b"1").unwrap();
    let writes = fs.writes();
    let (key, value) = (vec![1; MAX_KEY_BYTES + 1], vec![1; MAX_VALUE_BYTES + 1]);
    let refused = [db.put(&key, b""), db.delete(&key)];
    for error in refused.map(Result::unwrap_err) {
        assert!(matches!(error, Error::KeyTooLarge { len, max } if len == max + 1), "{error}");
    }
    let error = db.put(b"k", &value).unwrap_err();
    assert!(matches!(error, Error::ValueTooLarge { len, max } if len == max + 1), "{error}");

    // The whole batch is refused.
    let mut batch = Batch::new();
    batch.put(b"b", b"2");
    batch.put(&key, b"");
    assert!(matches!(db.write(batch), Err(Error::KeyTooLarge { .. })));
    assert_eq!(fs.writes(), writes);
    assert_eq!(db.get(b"b").unwrap(), None);
    assert_eq!(db.get(&key).unwrap(), None, "asking is fine");
    db.put(b"c", b"3").unwrap();
    assert_eq!(contents(&db).len(), 2);
}

#[test]
fn a_path_that_is_something_else_is_refused_and_left_alone() {
    let dir = fast_dir();
    let file = dir.path().join("file");
    fs::write(&file, "not a store").unwrap();
    let foreign = dir.path().join("photos");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("cat.jpg"), "meow").unwrap();
    for (path, names) in [(&file, "it is a file"), (&foreign, "cat.jpg")] {
        for options in
            [Options::new(), Options::new().read_only(true), Options::new().create_if_missing(false)]
        {
            match error_of(options, path) {
                Error::NotAStore { path: named, what } => {
                    assert_eq!(&named, path);
                    assert!(what.contains(names), "{what}");
                }
                other => panic!("{other}"),
            }
        }
    }
    assert_eq!(fs::read(&file).unwrap(), b"not a store");
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 1);
    // A file cannot contain a directory.
    let error = error_of(Options::new(), file.join("store"));
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
}

#[test]
fn files_of_a_store_without_a_manifest_are_not_taken_for_an_empty_place() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    db.put(b"k", b"v").unwrap();
    db.flush().unwrap();
    drop(db);
    fs::remove_file(dir.path().join("MANIFEST")).unwrap();
    let before = fingerprints(dir.path(), "");
    for options in [tiny(), tiny().read_only(true)] {
        let error = error_of(options, dir.path());
        assert!(
            matches!(&error, Error::NotAStore { what, .. } if what.contains("MANIFEST") && what.contains("repair")),
            "{error}"
        );
    }
    assert_eq!(fingerprints(dir.path(), ""), before);
}

#[test]
fn a_missing_store_is_created_only_when_that_is_asked_for() {
    let dir = fast_dir();
    let path = dir.path().join("deep/er/store");
    for options in [Options::new().create_if_missing(false), Options::new().read_only(true)] {
        assert!(matches!(error_of(options, &path), Error::NotAStore { .. }));
        assert!(!dir.path().join("deep").exists());
    }
    drop(Db::open(&path).unwrap());
    drop(Options::new().create_if_missing(false).open(&path).unwrap());
    // A store can be created in an empty directory, but none is there yet.
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(matches!(error_of(Options::new().create_if_missing(false), &empty), Error::NotAStore { .. }));
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    Db::open(&empty).unwrap();
}

#[test]
fn a_store_that_is_open_is_locked_until_its_last_handle_is_gone() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    db.put(b"k", b"v").unwrap();
    let another = db.clone();
    for options in [tiny(), tiny().read_only(true)] {
        let error = error_of(options, dir.path());
        assert!(matches!(&error, Error::Locked { path } if path.ends_with("LOCK")), "{error}");
    }
    drop(db);
    assert!(matches!(error_of(tiny(), dir.path()), Error::Locked { .. }));
    drop(another);

    let readers = [0; 2].map(|_| tiny().read_only(true).open(dir.path()).unwrap());
    assert!(matches!(error_of(tiny(), dir.path()), Error::Locked { .. }));
    assert!(readers.iter().all(|db| db.get(b"k").unwrap().is_some()));
    drop(readers);
    tiny().open(dir.path()).unwrap();
}

/// A read-only store shows everything, refuses every write, and writes nothing.
#[test]
fn a_read_only_store_shows_everything_and_writes_nothing() {
    let (disk, sequence) = (SimFs::new(), Sequence(3));
    let db = tiny_on(&disk).open(STORE).unwrap();
    (1..=50).for_each(|i| db.write(sequence.batch(i)).unwrap());
    let killed = disk.crash(crate::support::Crash::Kill, 0);
    drop(db);
    for fs in [disk, killed] {
        let (files, writes) = (fs.files(), fs.writes());
        let db = tiny_on(&fs).read_only(true).open(STORE).unwrap();
        assert_holds(&db, &sequence.after(50));
        assert_eq!(db.snapshot().iter().count().unwrap(), sequence.after(50).len() as u64);
        db.warm().unwrap();
        assert!(db.verify().unwrap().is_ok());
        let refused = [
            db.put(b"k", b"v"),
            db.delete(b"k"),
            db.write_with(sequence.batch(51), Durability::Sync),
            db.sync(),
            db.flush(),
            db.compact(),
            db.rebuild_filters(FilterPolicy::default()).map(|_| ()),
        ];
        for (i, outcome) in refused.into_iter().enumerate() {
            assert!(matches!(outcome, Err(Error::ReadOnly)), "write {i}: {outcome:?}");
        }
        drop(db);
        assert_eq!((fs.files(), fs.writes()), (files, writes), "{}", fs.log());
    }
}

#[test]
fn options_out_of_range_are_refused_before_anything_is_touched() {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let wrong = [
        ("memtable_bytes", Options::new().memtable_bytes(4095)),
        ("memtable_bytes", Options::new().memtable_bytes((256 << 30) + 1)),
        ("segment_bytes", Options::new().segment_bytes(0)),
        ("block_bytes", Options::new().block_bytes(255)),
        ("block_bytes", Options::new().block_bytes((1 << 20) + 1)),
        ("max_open_files", Options::new().max_open_files(7)),
        ("max_mapped_filters", Options::new().max_mapped_filters(7)),
        ("background_threads", Options::new().background_threads(1)),
        ("background_threads", Options::new().background_threads(65)),
        ("bits per key", Options::new().filter_policy(FilterPolicy::bits_per_key(1.9))),
        ("bits per key", Options::new().filter_policy(FilterPolicy::bits_per_key(65.0))),
        ("bits per key", Options::new().filter_policy(FilterPolicy::bits_per_key(f64::NAN))),
    ];
    for (names, options) in wrong {
        match error_of(options, &path) {
            Error::InvalidArgument(what) => assert!(what.contains(names), "{what}"),
            other => panic!("{other}"),
        }
        assert!(!path.exists());
    }
    if !cfg!(feature = "zstd") {
        let error = error_of(Options::new().compression(Compression::Zstd), &path);
        assert!(error.to_string().contains("zstd"), "{error}");
    }
    // The smallest allowed values work.
    let least = Options::new().memtable_bytes(4096).segment_bytes(4096).block_bytes(256);
    let db = least.filter_policy(FilterPolicy::bits_per_key(2.0)).open(&path).unwrap();
    (0..500u32).for_each(|i| db.put(i.to_be_bytes(), [0; 50]).unwrap());
    db.compact().unwrap();
    assert_eq!(db.iter().count().unwrap(), 500);
}

#[test]
fn an_empty_batch_and_a_range_that_is_none_are_fine() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    db.write(Batch::new()).unwrap();
    db.write_with(Batch::new(), Durability::Sync).unwrap();
    db.put(b"m", b"").unwrap();
    assert_eq!(db.range(b"z".to_vec()..b"a".to_vec()).count().unwrap(), 0);
    assert_eq!(db.range(b"z".to_vec()..b"a".to_vec()).rev().count(), 0);
    assert_eq!(db.range(b"m".to_vec()..b"m".to_vec()).count().unwrap(), 0);
    assert_eq!(db.multi_get::<&[u8]>(&[]).unwrap().len(), 0);
    db.compact().unwrap();
    db.compact().unwrap();
    assert_eq!(db.range(b"z".to_vec()..b"a".to_vec()).rev().count(), 0);
    db.delete(b"never there").unwrap();
    db.delete(b"m").unwrap();
    db.compact().unwrap();
    assert_eq!(db.iter().count().unwrap(), 0);
    assert_eq!(db.stats().levels.iter().map(|l| l.segments).sum::<usize>(), 0);
}

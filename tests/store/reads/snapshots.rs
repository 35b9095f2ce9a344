//! Snapshots: they show one moment for as long as they are held, and no longer.

use crate::support::{
    Contents, Errno, Fault, OpKind, STORE, Sequence, SimFs, contents, eventually, fast_dir, files_with, tiny,
    tiny_on,
};
use sidebloom::{Compression, FilterPolicy, Snapshot};
use std::path::PathBuf;

#[track_caller]
fn assert_shows(snapshot: &Snapshot, expected: &Contents) {
    let found: Contents = snapshot.iter().map(|kv| kv.map(|(k, v)| (k, v.to_vec())).unwrap()).collect();
    assert_eq!(&found, expected);
    for i in 0..60 {
        let key = format!("key{i:03}").into_bytes();
        assert_eq!(snapshot.get(&key).unwrap().as_deref(), expected.get(&key).map(Vec::as_slice));
    }
}

/// A snapshot shows its moment through writes, flushes, compactions, rebuilds and the end of the store.
#[test]
fn a_snapshot_shows_its_moment_through_everything_the_store_does() {
    let dir = fast_dir();
    let sequence = Sequence(1);
    let db = tiny().open(dir.path()).unwrap();
    let mut snapshots = Vec::new();
    for i in 1..=300 {
        db.write(sequence.batch(i)).unwrap();
        if i % 20 == 0 {
            snapshots.push((db.snapshot(), sequence.after(i)));
        }
        match i {
            100 => db.flush().unwrap(),
            150 => db.compact().unwrap(),
            200 => _ = db.rebuild_filters(FilterPolicy::bits_per_key(4.0)).unwrap(),
            250 => db.wait_for_compaction().unwrap(),
            _ => continue,
        }
        snapshots.iter().for_each(|(snapshot, then)| assert_shows(snapshot, then));
    }
    drop(db);
    snapshots.iter().for_each(|(snapshot, then)| assert_shows(snapshot, then));
    // The next opening removes files that snapshots still read; open files stay readable.
    let db = tiny().open(dir.path()).unwrap();
    db.compact().unwrap();
    snapshots.iter().for_each(|(snapshot, then)| assert_shows(snapshot, then));
    drop(snapshots);
    assert_eq!(contents(&db), sequence.after(300));
    assert!(db.verify().unwrap().is_ok());
}

#[test]
fn segments_that_only_a_snapshot_holds_go_when_it_goes() {
    let dir = fast_dir();
    let sequence = Sequence(2);
    let db = tiny().open(dir.path()).unwrap();
    (1..=150).for_each(|i| db.write(sequence.batch(i)).unwrap());
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    let (snapshot, mut iterator) = (db.snapshot(), db.iter());
    assert!(iterator.next().is_some());
    let held = files_with(dir.path(), ".segment");
    (151..=300).for_each(|i| db.write(sequence.batch(i)).unwrap());
    db.compact().unwrap();
    let is_there = |path: &PathBuf| path.exists() || path.with_extension("obsolete").exists();
    assert!(held.iter().all(is_there), "a snapshot reads from these");
    assert_shows(&snapshot, &sequence.after(150));
    drop(snapshot);
    assert_eq!(iterator.count().unwrap(), sequence.after(150).len() as u64 - 1);
    let live = || db.stats().levels.iter().map(|level| level.segments).sum::<usize>();
    eventually("only live segments are left", || files_with(dir.path(), ".segment").len() == live());
    eventually("and their filters", || files_with(dir.path(), ".filter").len() == live());
    eventually("the others are gone", || files_with(dir.path(), ".obsolete").is_empty());
    assert!(!held.iter().any(is_there));
}

#[test]
fn values_outlive_the_store_that_they_were_read_from() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    db.put(b"flushed", b"one").unwrap();
    db.flush().unwrap();
    db.put(b"fresh", b"two").unwrap();
    let (one, two) = (db.get(b"flushed").unwrap().unwrap(), db.get(b"fresh").unwrap().unwrap());
    let walk = db.iter();
    drop(db);
    std::fs::remove_dir_all(dir.path()).unwrap();
    assert_eq!((&*one, &*two), (b"one".as_slice(), b"two".as_slice()));
    assert_eq!(walk.count().unwrap(), 2);
}

/// A snapshot that is out of descriptors says so, and not that a file is missing. Its files have been renamed
/// by then. Looking for both names must not hide why the second one cannot be opened.
#[test]
fn a_snapshot_out_of_descriptors_says_so_and_not_that_a_file_is_missing() {
    let fs = SimFs::new();
    // Without compression, merged rows fill more segments than may be open, too.
    let db = tiny_on(&fs).compression(Compression::None).max_open_files(8).open(STORE).unwrap();
    let keys: Vec<_> = (0..40).map(|n| format!("key{n:02}")).collect();
    for key in &keys {
        db.put(key, [b'v'; 3000]).unwrap();
        db.flush().unwrap();
    }
    let snapshot = db.snapshot();
    keys.iter().for_each(|key| db.delete(key).unwrap());
    db.compact().unwrap();
    let everywhere = Fault { forever: true, only: Some(".obsolete"), ..Fault::once(OpKind::Open, 0) };
    fs.fail(everywhere.with(Errno::TooManyFiles));
    let errors: Vec<_> = keys.iter().filter_map(|key| snapshot.get(key).err()).collect();
    assert!(!errors.is_empty(), "every segment of the snapshot stayed open");
    for error in errors {
        let text = error.to_string();
        assert!(text.contains(".obsolete") && text.contains("os error 24"), "{text}");
    }
    fs.heal();
    assert!(keys.iter().all(|key| snapshot.get(key).unwrap().is_some()));
}

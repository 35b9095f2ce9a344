//! What a backup has, and what becomes of it.

use super::{restored, restored_on};
use crate::backup::{REPOSITORY, repository_on};
use crate::support::{
    STORE, Sequence, SimFs, TestClock, assert_holds, contents, fast_dir, fill_deep, tiny, tiny_on,
};
use sidebloom::backup::{Kind, Repository};
use sidebloom::{Db, Expiry, KeyspaceOptions, Options};
use std::time::{Duration, SystemTime};

#[test]
fn a_restored_backup_is_the_store_of_that_moment() {
    let dir = fast_dir();
    let db = tiny().open(dir.path().join("store")).unwrap();
    let expected = fill_deep(&db, 1);
    let repository = Repository::in_dir(dir.path().join("backups")).unwrap();
    let before = SystemTime::now() - Duration::from_secs(1);
    let first = db.backup(&repository).unwrap();
    db.delete_range("key01000".."key02000").unwrap();
    let second = db.backup(&repository).unwrap();
    assert_eq!((first.number, second.number), (1, 2));
    assert_eq!((first.kind, first.new_bytes), (Kind::Store, first.bytes));
    assert!(first.time > before && first.entries >= expected.len() as u64 && second.new_bytes < first.bytes);
    assert_eq!(repository.list().unwrap().backups, [first, second]);

    assert_holds(&restored(&repository, Some(1), &dir.path().join("one")), &expected);
    let newest = restored(&repository, None, &dir.path().join("two"));
    assert_eq!(contents(&newest), contents(&db));
    newest.put("only in the copy", "").unwrap();
    newest.compact().unwrap();
    // The copy goes on with the backups where the original was lost.
    drop(db);
    let third = newest.backup(&repository).unwrap();
    assert_eq!(third.number, 3);
    let again = restored(&repository, Some(3), &dir.path().join("three"));
    assert_eq!(contents(&again), contents(&newest));
    assert!(repository.verify(None).unwrap().is_ok());
}

/// Keyspaces, rows that expire, range tombstones and the store's time, in segments and in the log of a
/// follower's backup.
#[test]
fn keyspaces_expiry_and_range_tombstones_survive() {
    for is_flushed in [true, false] {
        let dir = fast_dir();
        let clock = std::sync::Arc::new(TestClock::new());
        let options = || tiny().clock(clock.clone());
        let db = options().open(dir.path().join("store")).unwrap();
        let songs = db.create_keyspace("songs", KeyspaceOptions::new()).unwrap();
        (0..300u32).for_each(|n| songs.put(n.to_be_bytes(), [7; 40]).unwrap());
        songs.delete_range(10u32.to_be_bytes()..90u32.to_be_bytes()).unwrap();
        db.put_with("short", "lived", Expiry::after(Duration::from_secs(60))).unwrap();
        db.put("\u{ff}", "a key that needs a head").unwrap();
        if is_flushed {
            db.flush().unwrap();
        }
        let repository = Repository::in_dir(dir.path().join("backups")).unwrap();
        let follower = options().follow(true).open(dir.path().join("store")).unwrap();
        follower.backup(&repository).unwrap();
        repository.restore(None, dir.path().join("copy")).unwrap();
        let copy = options().open(dir.path().join("copy")).unwrap();
        assert_eq!(contents(&copy), contents(&db));
        let rows = copy.keyspace("songs").unwrap();
        assert!(rows.iter().map(Result::unwrap).eq(songs.iter().map(Result::unwrap)));
        assert_eq!(rows.iter().count().unwrap(), 220);
        assert!(copy.contains_key("short").unwrap());
        clock.advance(Duration::from_secs(61));
        assert!(!copy.contains_key("short").unwrap());
    }
}

#[test]
fn an_empty_store_and_an_empty_follower_are_backed_up() {
    let dir = fast_dir();
    let db = Db::open(dir.path().join("store")).unwrap();
    let repository = Repository::in_dir(dir.path().join("backups")).unwrap();
    db.backup(&repository).unwrap();
    let follower = Options::new().follow(true).open(dir.path().join("store")).unwrap();
    follower.backup(&repository).unwrap();
    drop((db, follower));
    let read_only = Options::new().read_only(true).open(dir.path().join("store")).unwrap();
    read_only.backup(&repository).unwrap();
    for number in 1..=3 {
        let copy = restored(&repository, Some(number), &dir.path().join(number.to_string()));
        assert_eq!(copy.iter().count().unwrap(), 0);
        copy.put("k", "v").unwrap();
    }
}

#[test]
fn removing_old_backups_leaves_what_the_others_need() {
    let (fs, sequence) = (SimFs::new(), Sequence(2));
    let db = tiny_on(&fs).open(STORE).unwrap();
    let repository = repository_on(&fs);
    for i in 1..=240 {
        db.write(sequence.batch(i)).unwrap();
        if i % 40 == 0 {
            db.backup(&repository).unwrap();
        }
    }
    let files = || fs.files().iter().filter(|path| path.starts_with("disk/backups/files")).count();
    let before = files();
    let removed = repository.keep(2).unwrap();
    assert_eq!((removed.backups, removed.files as usize), (4, before - files()));
    assert!(removed.files > 0 && removed.bytes > 0);
    let left: Vec<u64> = repository.list().unwrap().backups.iter().map(|backup| backup.number).collect();
    assert_eq!(left, [5, 6]);
    assert!(repository.verify(None).unwrap().is_ok());
    assert_eq!(sequence.prefix_of(&restored_on(&fs, Some(5), "disk/five")), 200);
    assert_eq!(sequence.prefix_of(&restored_on(&fs, None, "disk/six")), 240);
    assert_eq!(repository.keep(2).unwrap().files, 0);
    // The next one has a number of its own, and everything again that was removed.
    db.delete_range(..).unwrap();
    assert_eq!(db.backup(&repository).unwrap().number, 7);
    repository.keep(1).unwrap();
    assert!(repository.verify(None).unwrap().is_ok());
    assert_eq!(contents(&restored_on(&fs, None, "disk/seven")).len(), 0);
    let foreign = format!("{REPOSITORY}/files/mine");
    fs.write(&foreign, "mine");
    repository.keep(1).unwrap();
    assert!(fs.read(&foreign).is_some(), "a file that no backup made is not removed (I13)");
}

/// A reader holds off removals, but no backups; a backup holds off other backups and removals.
#[test]
fn what_is_read_is_not_removed_meanwhile() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    let repository = repository_on(&fs);
    db.put("k", "v").unwrap();
    db.backup(&repository).unwrap();
    let mut tried = 0;
    let progress = |_: &sidebloom::Progress| {
        tried += 1;
        if tried == 2 {
            let error = repository.keep(1).unwrap_err();
            assert!(error.to_string().contains("restored or verified"), "{error}");
            db.backup(&repository).unwrap();
        }
    };
    repository.restore_with(None, "disk/copy", progress).unwrap();
    let mut tried = 0;
    let progress = |_: &sidebloom::Progress| {
        tried += 1;
        if tried == 1 {
            let errors = [repository.keep(1).unwrap_err(), db.backup(&repository).unwrap_err()];
            assert!(errors.iter().all(|e| e.to_string().contains("another backup")), "{errors:?}");
        }
    };
    db.put("l", "w").unwrap();
    db.backup_with(&repository, progress).unwrap();
    assert!(tried >= 1);
}

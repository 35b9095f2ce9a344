//! Backups in object stores: without locks, nothing that a listed backup needs is removed.

use crate::Bench;
use sidebloom::backup::Repository;
use sidebloom::{Db, Error};
use sidebloom_remote::backups_at;

fn repository(bench: &Bench) -> Repository {
    backups_at(bench.remote())
}

fn put(db: &Db, n: u32) {
    let rows = (n..n + 2000).map(|n| Ok((n.to_be_bytes(), [n as u8; 60])));
    db.ingest(rows).unwrap();
}

#[test]
fn backups_are_made_listed_verified_restored_and_removed() {
    for bench in [Bench::new(), Bench::on_disk()] {
        let db = bench.open("store");
        put(&db, 0);
        let first = db.backup(&repository(&bench)).unwrap();
        db.put("k", "v").unwrap();
        let second = db.backup(&repository(&bench)).unwrap();
        assert!((first.number, second.number) == (1, 2) && second.new_bytes < first.bytes / 2, "{second:?}");
        assert_eq!(repository(&bench).list().unwrap().backups, [first, second]);
        let report = repository(&bench).verify(None).unwrap();
        assert!(report.is_ok() && report.files > 3, "{report:?}");
        repository(&bench).restore(Some(1), bench.path("first")).unwrap();
        repository(&bench).restore(None, bench.path("second")).unwrap();
        let copies = ["first", "second"].map(|name| bench.open(name));
        assert_eq!(copies.map(|db| db.iter().count().unwrap()), [2000, 2001]);
        assert_eq!(repository(&bench).keep(1).unwrap().backups, 1);
        // Files stay for a day.
        assert_eq!(repository(&bench).keep(1).unwrap().files, 0);
        assert!(repository(&bench).verify(None).unwrap().is_ok());
        let other = bench.open("other");
        let error = other.backup(&repository(&bench)).unwrap_err();
        assert!(matches!(error, Error::NotARepository { .. }), "{error}");
        let objects = bench.objects();
        assert!(!objects.iter().any(|name| name.ends_with("removing")), "{objects:?}");
    }
}

#[test]
fn a_backup_and_a_removal_at_once_never_lose_a_file_that_is_needed() {
    let bench = Bench::new();
    let db = bench.open("store");
    put(&db, 0);
    db.backup(&repository(&bench)).unwrap();
    db.put("a", "b").unwrap();
    // A whole removal during a backup: nothing that the backup needs is gone.
    let mut calls = 0;
    let removed_and_added = |_: &sidebloom::Progress| {
        calls += 1;
        if calls == 2 {
            db.backup(&repository(&bench)).unwrap();
            repository(&bench).keep(1).unwrap();
        }
    };
    db.backup_with(&repository(&bench), removed_and_added).unwrap();
    assert!(calls >= 2);
    let numbers = || -> Vec<u64> {
        repository(&bench).list().unwrap().backups.iter().map(|backup| backup.number).collect()
    };
    assert_eq!(numbers(), [2, 3]);
    assert!(repository(&bench).verify(None).unwrap().is_ok());
    // A removal that is under way when a backup is complete: the backup is withdrawn.
    db.put("c", "d").unwrap();
    let mut calls = 0;
    let begun = |_: &sidebloom::Progress| {
        calls += 1;
        if calls == 2 {
            bench.put("songs/removing", Vec::new());
        }
    };
    let error = db.backup_with(&repository(&bench), begun).unwrap_err();
    assert!(matches!(&error, Error::Locked { .. }) && error.to_string().contains("being removed"), "{error}");
    assert_eq!(numbers(), [2, 3]);
    let errors = [repository(&bench).keep(1).unwrap_err(), db.backup(&repository(&bench)).unwrap_err()];
    assert!(errors.iter().all(|error| matches!(error, Error::Locked { .. })), "{errors:?}");
    bench.remove("songs/removing");
    // A file that is gone by the end, although the last backup has it.
    db.put("e", "f").unwrap();
    let mut calls = 0;
    let lost = |_: &sidebloom::Progress| {
        calls += 1;
        if calls == 2 {
            let files = bench.objects().into_iter().filter(|name| name.starts_with("songs/files"));
            let largest = files.max_by_key(|name| bench.bytes(name).len()).unwrap();
            bench.remove(&largest);
        }
    };
    let error = db.backup_with(&repository(&bench), lost).unwrap_err();
    assert!(error.to_string().contains("back up again"), "{error}");
    assert_eq!(numbers(), [2, 3]);
    db.backup(&repository(&bench)).unwrap();
    assert!(repository(&bench).verify(None).unwrap().is_ok(), "the next one heals the others");
}

#[test]
fn backups_at_once_have_numbers_of_their_own() {
    let bench = Bench::new();
    let db = bench.open("store");
    put(&db, 0);
    db.backup(&repository(&bench)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| db.backup(&repository(&bench)).unwrap());
        }
    });
    let listing = repository(&bench).list().unwrap();
    assert_eq!((listing.backups.len(), listing.problems.len()), (5, 0));
    assert!(repository(&bench).verify(None).unwrap().is_ok());
}

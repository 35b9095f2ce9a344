//! Repositories that somebody has harmed, or that are not what they seem.

use super::{REPOSITORY, repository_on};
use crate::support::{STORE, Sequence, SimFs, fast_dir, tiny_on};
use sidebloom::backup::Repository;
use sidebloom::{Db, Error};
use std::fs;
use std::os::unix::fs::symlink;

/// The backups tell whose they are, so losing 28 bytes costs nothing, and gives the place to nobody else.
#[test]
fn i6_a_lost_or_damaged_owner_costs_no_backup_and_lets_nobody_else_in() {
    let dir = fast_dir();
    let [target, other] = ["backups", "other"].map(|name| dir.path().join(name));
    let db = Db::open(dir.path().join("store")).unwrap();
    db.put("a", "1").unwrap();
    let repository = Repository::in_dir(&target).unwrap();
    db.backup(&repository).unwrap();
    let owner = target.join("REPOSITORY");
    let whole = fs::read(&owner).unwrap();
    for (n, harm) in [None, Some(vec![0; 28]), Some(Vec::new())].into_iter().enumerate() {
        match harm {
            None => fs::remove_file(&owner).unwrap(),
            Some(bytes) => fs::write(&owner, bytes).unwrap(),
        }
        let copy = dir.path().join(format!("copy-{n}"));
        repository.restore(None, &copy).unwrap();
        assert!(Db::open(&copy).unwrap().contains_key("a").unwrap());
        let report = repository.verify(None).unwrap();
        assert!(report.problems.len() == 1 && report.problems[0].to_string().contains("REPOSITORY"));
        let foreign = Db::open(&other).unwrap();
        foreign.put("b", "2").unwrap();
        let error = foreign.backup(&repository).unwrap_err();
        assert!(matches!(error, Error::NotARepository { .. }), "{error}");
        db.backup(&repository).unwrap();
        assert_eq!(fs::read(&owner).unwrap(), whole, "the next backup writes it anew");
        assert!(repository.verify(None).unwrap().is_ok());
    }
    assert_eq!(repository.list().unwrap().backups.len(), 4);
}

/// A backup of another store that was moved here is neither removed nor built upon.
#[test]
fn i13_a_backup_of_another_store_is_not_removed() {
    let dir = fast_dir();
    let [ours, theirs] = ["ours", "theirs"].map(|name| {
        let db = Db::open(dir.path().join(name)).unwrap();
        db.put(name, "1").unwrap();
        let repository = Repository::in_dir(dir.path().join(format!("{name}-backups"))).unwrap();
        db.backup(&repository).unwrap();
        (db, repository)
    });
    let [of_ours, of_theirs] =
        ["ours", "theirs"].map(|name| dir.path().join(format!("{name}-backups/backups")));
    ours.0.backup(&ours.1).unwrap();
    let first = format!("{:020}", 1);
    fs::copy(of_theirs.join(&first), of_ours.join(&first)).unwrap();
    for error in [ours.1.keep(1).unwrap_err(), ours.1.restore(Some(1), dir.path().join("new")).unwrap_err()] {
        assert!(matches!(error, Error::NotARepository { .. }), "{error}");
    }
    assert!(of_ours.join(&first).exists());
    drop(theirs);
}

#[test]
fn i13_folders_of_somebody_else_are_not_taken_for_a_repository() {
    let dir = fast_dir();
    let target = dir.path().join("mine");
    fs::create_dir_all(target.join("files")).unwrap();
    fs::write(target.join("files/thesis.txt"), "text").unwrap();
    let db = Db::open(dir.path().join("store")).unwrap();
    let error = db.backup(&Repository::in_dir(&target).unwrap()).unwrap_err();
    assert!(matches!(&error, Error::NotARepository { what, .. } if what.contains("thesis.txt")), "{error}");
}

/// What a backup has written when the disk is full, it removes: otherwise the disk would stay full.
#[test]
fn i5_a_backup_to_a_full_disk_leaves_nothing_behind() {
    let (fs, sequence) = (SimFs::new(), Sequence(7));
    let db = tiny_on(&fs).open(STORE).unwrap();
    (1..=200).for_each(|i| db.write(sequence.batch(i)).unwrap());
    db.flush().unwrap();
    let repository = repository_on(&fs);
    let kept = || fs.files().iter().filter(|path| path.starts_with(REPOSITORY.to_owned() + "/files")).count();
    for space in (200..30_000).step_by(977) {
        fs.limit_space(space);
        let outcome = db.backup(&repository);
        fs.heal();
        match outcome {
            Ok(_) => return assert!(repository.verify(None).unwrap().is_ok()),
            Err(error) => assert!(error.to_string().contains("No space left"), "{error}"),
        }
        assert_eq!(kept(), 0, "after {space} bytes");
    }
    db.backup(&repository).unwrap();
}

#[test]
fn symbolic_links_lead_neither_into_a_store_nor_into_a_repository() {
    let dir = fast_dir();
    let store = dir.path().join("store");
    let db = Db::open(&store).unwrap();
    fs::create_dir(store.join("sub")).unwrap();
    symlink(store.join("sub"), dir.path().join("link")).unwrap();
    let error = db.backup(&Repository::in_dir(dir.path().join("link/backups")).unwrap()).unwrap_err();
    assert!(matches!(error, Error::NotARepository { .. }), "{error}");
    let target = dir.path().join("backups");
    let repository = Repository::in_dir(&target).unwrap();
    db.backup(&repository).unwrap();
    symlink(&target, dir.path().join("second")).unwrap();
    let error = repository.restore(None, dir.path().join("second/copy")).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
}

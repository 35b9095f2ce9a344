//! Places, numbers and files that cannot be right: each has an error that names it.

use super::{REPOSITORY, RESTORED, repository_on};
use crate::support::{STORE, Sequence, SimFs, fast_dir, tiny, tiny_on};
use sidebloom::backup::Repository;
use sidebloom::{Db, Error, Options};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

fn refused(db: &Db, target: &Path) -> String {
    let error = db.backup(&Repository::in_dir(target).unwrap()).unwrap_err();
    assert!(matches!(&error, Error::NotARepository { .. }), "{error}");
    error.to_string()
}

#[test]
fn a_target_inside_the_store_and_a_store_inside_the_target_are_refused() {
    let dir = fast_dir();
    let above = dir.path().join("above");
    let store = above.join("store");
    let db = Db::open(&store).unwrap();
    symlink(&store, dir.path().join("link")).unwrap();
    let names = || fs::read_dir(&store).unwrap().count();
    let before = names();
    for target in [store.clone(), store.join("backups"), store.join("a/b"), dir.path().join("link/backups")] {
        let error = refused(&db, &target);
        assert!(error.contains("inside of a store's directory"), "{target:?}: {error}");
    }
    assert!(refused(&db, &above).contains("the store is inside of it"));
    // A repository first, and then a store moves into it.
    let other = Db::open(dir.path().join("other")).unwrap();
    let repository = dir.path().join("repository");
    other.backup(&Repository::in_dir(&repository).unwrap()).unwrap();
    drop(other);
    fs::rename(dir.path().join("other"), repository.join("other")).unwrap();
    symlink(repository.join("other"), dir.path().join("elsewhere")).unwrap();
    let moved = Db::open(dir.path().join("elsewhere")).unwrap();
    assert!(refused(&moved, &repository).contains("the store is inside of it"));
    assert_eq!(names(), before, "nothing was created in the store");
}

#[test]
fn other_directories_files_and_repositories_of_others_are_refused() {
    let dir = fast_dir();
    let db = Db::open(dir.path().join("store")).unwrap();
    let (full, file, others) = (dir.path().join("full"), dir.path().join("file"), dir.path().join("others"));
    fs::create_dir(&full).unwrap();
    fs::write(full.join("letter.txt"), "mine").unwrap();
    fs::write(&file, "mine").unwrap();
    assert!(refused(&db, &full).contains("holds other files (letter.txt)"));
    assert!(refused(&db, &file).contains("a file, not a directory"));
    let other = Db::open(dir.path().join("other")).unwrap();
    other.backup(&Repository::in_dir(&others).unwrap()).unwrap();
    assert!(refused(&db, &others).contains("backups of another store"));
    for (path, why) in [(&full, "no file REPOSITORY"), (&dir.path().join("none"), "no file REPOSITORY")] {
        let repository = Repository::in_dir(path).unwrap();
        let errors = [
            repository.list().unwrap_err(),
            repository.verify(None).unwrap_err(),
            repository.keep(1).unwrap_err(),
            repository.restore(None, dir.path().join("new")).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.to_string().contains(why)), "{errors:?}");
    }
    assert!(!dir.path().join("none").exists() && fs::read_dir(&full).unwrap().count() == 1);
    // An empty directory is as good as a missing one.
    fs::create_dir(dir.path().join("empty")).unwrap();
    db.backup(&Repository::in_dir(dir.path().join("empty")).unwrap()).unwrap();
}

#[test]
fn numbers_that_do_not_exist_zero_and_existing_targets_are_refused() {
    let dir = fast_dir();
    let db = Db::open(dir.path().join("store")).unwrap();
    let repository = Repository::in_dir(dir.path().join("backups")).unwrap();
    db.backup(&repository).unwrap();
    let new = dir.path().join("new");
    for number in [0, 2, u64::MAX] {
        let errors = [
            repository.restore(Some(number), &new).unwrap_err(),
            repository.verify(Some(number)).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::NoSuchBackup { number: n, .. } if n == number), "{error}");
        }
    }
    assert!(!new.exists());
    let error = repository.restore(None, dir.path().join("backups/new")).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)) && !dir.path().join("backups/new").exists());
    assert!(matches!(repository.keep(0).unwrap_err(), Error::InvalidArgument(_)));
    fs::create_dir(&new).unwrap();
    for target in [&new, &dir.path().join("store")] {
        let error = repository.restore(None, target).unwrap_err();
        assert!(matches!(&error, Error::AlreadyExists { path } if path == target), "{error}");
    }
    assert!(db.get("k").unwrap().is_none());
}

/// Another version's files are neither damage nor touched, and a damaged version number is no other version.
#[test]
fn i14_a_repository_of_a_newer_version_is_named_as_such() {
    let (fs, sequence) = (SimFs::new(), Sequence(31));
    let db = tiny_on(&fs).open(STORE).unwrap();
    (1..=50).for_each(|i| db.write(sequence.batch(i)).unwrap());
    let repository = repository_on(&fs);
    db.backup(&repository).unwrap();
    let record = format!("{REPOSITORY}/backups/{:020}", 1);
    for (path, head) in [(format!("{REPOSITORY}/REPOSITORY"), 24), (record, 92)] {
        let whole = fs.read(&path).unwrap();
        let mut newer = whole.clone();
        newer[8] = 2;
        let crc = sidebloom::filter::codec::crc32(&[&newer[..head]]);
        newer[head..head + 4].copy_from_slice(&crc.to_le_bytes());
        fs.write(&path, newer.clone());
        let errors = [
            db.backup(&repository).unwrap_err(),
            repository.restore(None, RESTORED).unwrap_err(),
            repository.keep(1).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::UnsupportedVersion { found: 2, .. }), "{error}");
            assert!(error.to_string().contains("newer version"), "{error}");
        }
        assert_eq!(fs.read(&path).unwrap(), newer);
        fs.write(&path, whole);
    }
    assert!(repository.verify(None).unwrap().is_ok());
}

/// Any flipped bit in any file of a repository fails a check and a restore, and names the file.
#[test]
fn i6_a_damaged_or_missing_file_is_named_and_never_restored() {
    let (fs, sequence) = (SimFs::new(), Sequence(32));
    let db = tiny_on(&fs).open(STORE).unwrap();
    (1..=50).for_each(|i| db.write(sequence.batch(i)).unwrap());
    let follower = tiny_on(&fs).follow(true).open(STORE).unwrap();
    let repository = repository_on(&fs);
    follower.backup(&repository).unwrap();
    let expected = sequence.after(50);
    let files = fs.files().into_iter().filter(|path| path.starts_with(REPOSITORY));
    let mut restored = 0;
    for path in files.filter(|path| path.extension().is_none()) {
        let whole = fs.read(&path).unwrap();
        for at in [0, whole.len() / 3, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            fs.write(&path, damaged);
            let name = path.file_name().unwrap().to_str().unwrap();
            match repository.verify(None) {
                Err(error) => assert!(error.to_string().contains(name), "{error}"),
                Ok(report) => {
                    let text = format!("{:?}", report.problems);
                    assert!(!report.is_ok() && text.contains(name), "{path:?}: {text}");
                }
            }
            let target = format!("{RESTORED}-{restored}");
            match repository.restore(None, &target) {
                Err(error) => {
                    assert!(matches!(error, Error::Corruption { .. }) && error.to_string().contains(name));
                    assert!(!fs.files().iter().any(|path| path.starts_with(&target)), "{path:?}");
                }
                // A filter, which the store builds anew.
                Ok(_) => {
                    let copy = tiny_on(&fs).open(&target).unwrap();
                    assert_eq!(crate::support::contents(&copy), expected);
                    restored += 1;
                }
            }
        }
        fs.write(&path, whole);
    }
    assert!(restored > 0 && repository.verify(None).unwrap().is_ok());
}

/// A damaged segment of the store fails a backup by file and offset; so does one in quarantine.
#[test]
fn i6_a_damaged_or_quarantined_segment_fails_a_backup() {
    let dir = fast_dir();
    let store = dir.path().join("store");
    let db = tiny().open(&store).unwrap();
    db.ingest((0..500u32).map(|n| Ok((n.to_be_bytes(), [n as u8; 50])))).unwrap();
    drop(db);
    let segments = crate::support::files_with(&store, ".segment");
    let whole = fs::read(&segments[1]).unwrap();
    for at in [0, whole.len() / 2, whole.len() - 100, whole.len() - 20] {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        fs::write(&segments[1], damaged).unwrap();
        let follower = tiny().follow(true).open(&store).unwrap();
        let repository = Repository::in_dir(dir.path().join("backups")).unwrap();
        let error = follower.backup(&repository).unwrap_err();
        let (file, offset) = crate::support::damage_of(&error);
        assert_eq!(Path::new(&file), segments[1], "{error}");
        assert!(offset <= at as u64 && at as u64 - offset < 1200, "{at}: {error}");
        assert!(matches!(repository.list(), Err(Error::NotARepository { .. })), "nothing is left of it");
    }
    let db = Options::new().open(&store).unwrap();
    (0..500u32).for_each(|n| db.put(n.to_be_bytes(), [1; 50]).unwrap());
    let _ = db.compact(); // Finds the damage, unless the background has.
    let error = db.backup(&Repository::in_dir(dir.path().join("backups")).unwrap()).unwrap_err();
    assert!(error.to_string().contains("in quarantine") && error.to_string().contains("repair"), "{error}");
    drop(db);
    Options::new().repair(&store).unwrap();
    let db = Options::new().open(&store).unwrap();
    db.backup(&Repository::in_dir(dir.path().join("backups")).unwrap()).unwrap();
}

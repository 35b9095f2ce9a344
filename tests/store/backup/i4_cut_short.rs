//! I4 and I5 for backups: the disk or the power fails at every operation of a backup, restore or removal.

use super::{REPOSITORY, RESTORED, repository_on, restored_on};
use crate::support::{Crash, Fault, OpKind, STORE, Sequence, SimFs, tiny_on};
use sidebloom::{Db, Error, Result};

const CRASHES: [Crash; 3] = [Crash::Kill, Crash::PowerOrdered, Crash::Power];

/// A store with two backups, after 30 and 60 batches, and 90 batches.
fn twice(sequence: Sequence) -> (SimFs, Db) {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    for i in 1..=90 {
        db.write(sequence.batch(i)).unwrap();
        if i == 30 || i == 60 {
            db.backup(&repository_on(&fs)).unwrap();
        }
    }
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    (fs, db)
}

/// Every listed backup is whole, and the next one works.
fn check(fs: &SimFs, sequence: Sequence, least: u64, what: &str) {
    let repository = repository_on(fs);
    let listing = repository.list().unwrap();
    assert!(listing.problems.is_empty(), "{what}: {:?}", listing.problems);
    let numbers: Vec<u64> = listing.backups.iter().map(|backup| backup.number).collect();
    assert!(numbers.contains(&least), "{what}: {numbers:?}");
    let report = repository.verify(None).unwrap();
    assert!(report.is_ok(), "{what}: {:?}", report.problems);
    for number in &numbers {
        let target = format!("disk/of-{number}");
        let copy = restored_on(fs, Some(*number), &target);
        assert_eq!(sequence.prefix_of(&copy), 30 * number, "{what}");
    }
    let db = tiny_on(fs).open(STORE).unwrap();
    let next = db.backup(&repository).unwrap();
    assert!(numbers.iter().all(|number| *number < next.number), "{what}");
    let copy = restored_on(fs, None, RESTORED);
    assert_eq!(sequence.prefix_of(&copy), sequence.prefix_of(&db), "{what}");
    let names = repository_names(fs);
    assert!(!names.iter().any(|name| name.ends_with(".tmp")), "{what}: {names:?}");
}

fn repository_names(fs: &SimFs) -> Vec<String> {
    let files = fs.files().into_iter().filter(|path| path.starts_with(REPOSITORY));
    files.map(|path| path.display().to_string()).collect()
}

/// Runs `work` with a disk that stops after each number of writes, and looks at what crashes leave.
fn stopped_everywhere(work: impl Fn(&SimFs, &Db) -> Result<()>, least: u64, sequence: Sequence) -> u64 {
    for stop in 0.. {
        let (fs, db) = twice(sequence);
        fs.fail(Fault::stop(stop));
        let outcome = work(&fs, &db);
        for (seed, crash) in CRASHES.into_iter().enumerate() {
            let after = fs.crash(crash, stop << 3 ^ seed as u64);
            check(&after, sequence, least, &format!("stopped after {stop} writes, {crash:?}"));
        }
        if outcome.is_ok() {
            return stop;
        }
        drop(db);
    }
    unreachable!()
}

#[test]
fn i4_a_backup_cut_short_anywhere_leaves_the_earlier_ones() {
    let sequence = Sequence(11);
    let work = |fs: &SimFs, db: &Db| db.backup(&repository_on(fs)).map(drop);
    let writes = stopped_everywhere(work, 2, sequence);
    assert!(writes > 20, "{writes}");
}

#[test]
fn i4_a_removal_cut_short_anywhere_leaves_the_newest_backup() {
    let sequence = Sequence(12);
    let work = |fs: &SimFs, _: &Db| repository_on(fs).keep(1).map(drop);
    let writes = stopped_everywhere(work, 2, sequence);
    assert!(writes > 4, "{writes}");
}

/// The record of the first backup must not be there before `REPOSITORY` and its files are.
#[test]
fn i4_a_first_backup_cut_short_anywhere_is_none_and_the_next_one_works() {
    let sequence = Sequence(13);
    for stop in 0.. {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        (1..=30).for_each(|i| db.write(sequence.batch(i)).unwrap());
        db.flush().unwrap();
        db.wait_for_compaction().unwrap();
        fs.fail(Fault::stop(stop));
        let outcome = db.backup(&repository_on(&fs));
        for (seed, crash) in CRASHES.into_iter().enumerate() {
            let after = fs.crash(crash, stop << 3 ^ seed as u64);
            let what = format!("stopped after {stop} writes, {crash:?}");
            match repository_on(&after).list() {
                Ok(listing) => {
                    assert!(
                        listing.problems.is_empty() && repository_on(&after).verify(None).unwrap().is_ok()
                    );
                    assert!(outcome.is_err() || listing.backups.len() == 1, "{what}");
                }
                Err(error) => {
                    assert!(
                        matches!(error, Error::NotARepository { .. }) && outcome.is_err(),
                        "{what}: {error}"
                    );
                }
            }
            tiny_on(&after).open(STORE).unwrap().backup(&repository_on(&after)).unwrap();
            assert_eq!(sequence.prefix_of(&restored_on(&after, None, RESTORED)), 30, "{what}");
        }
        if outcome.is_ok() {
            assert!(stop > 10);
            return;
        }
    }
}

#[test]
fn i4_a_restore_cut_short_anywhere_is_no_store_and_can_be_repeated() {
    let sequence = Sequence(14);
    for stop in 0.. {
        let (fs, db) = twice(sequence);
        drop(db);
        fs.fail(Fault::stop(stop));
        let outcome = repository_on(&fs).restore(None, RESTORED);
        for (seed, crash) in CRASHES.into_iter().enumerate() {
            let after = fs.crash(crash, stop << 3 ^ seed as u64);
            match tiny_on(&after).create_if_missing(false).open(RESTORED) {
                Ok(copy) => assert_eq!(sequence.prefix_of(&copy), 60, "stopped after {stop} writes"),
                Err(error) => {
                    assert!(matches!(error, Error::NotAStore { .. }) && outcome.is_err(), "{error}");
                    assert!(tiny_on(&after).repair(RESTORED).is_err(), "a repair makes a store of a part");
                }
            }
            assert_eq!(sequence.prefix_of(&restored_on(&after, None, "disk/other")), 60);
        }
        if outcome.is_ok() {
            assert!(stop > 10);
            return;
        }
    }
}

/// One operation of each kind fails, at every place, and the process goes on.
#[test]
fn i5_one_failed_operation_fails_a_backup_and_the_next_one_works() {
    let sequence = Sequence(15);
    let kinds = [
        OpKind::Read,
        OpKind::Open,
        OpKind::List,
        OpKind::Inspect,
        OpKind::Lock,
        OpKind::Create,
        OpKind::Append,
        OpKind::Sync,
        OpKind::Rename,
        OpKind::SyncDir,
    ];
    for kind in kinds {
        for after in (0..).map(|n| n * n / 4 + n) {
            let (fs, db) = twice(sequence);
            drop(db);
            let follower = tiny_on(&fs).follow(true).open(STORE).unwrap();
            fs.fail(Fault { only: Some("backups"), ..Fault::once(kind, after) });
            let outcome = follower.backup(&repository_on(&fs));
            let is_over = fs.faults_left() > 0;
            fs.heal();
            drop(follower);
            check(&fs, sequence, 2, &format!("{kind:?} {after} failed: {outcome:?}"));
            if is_over {
                break;
            }
        }
    }
}

/// A full disk fails a backup and a restore by name. What they had written is removed.
#[test]
fn i5_without_space_nothing_is_left_of_a_backup_or_a_restore() {
    let sequence = Sequence(16);
    for space in [0, 100, 1000, 5000] {
        let (fs, db) = twice(sequence);
        let before = repository_names(&fs);
        fs.limit_space(space);
        let errors = [
            db.backup(&repository_on(&fs)).unwrap_err(),
            repository_on(&fs).restore(None, RESTORED).unwrap_err(),
        ];
        for error in &errors {
            assert!(
                matches!(error, Error::Io { source, .. } if source.raw_os_error() == Some(28)),
                "{error}"
            );
        }
        fs.heal();
        assert!(!fs.files().iter().any(|path| path.starts_with(RESTORED)), "{:?}", fs.files());
        let left: Vec<_> = repository_names(&fs).into_iter().filter(|name| !before.contains(name)).collect();
        assert!(left.iter().all(|name| !name.ends_with(".tmp") && name.contains("/files/")), "{left:?}");
        drop(db);
        check(&fs, sequence, 2, "a full disk");
    }
}

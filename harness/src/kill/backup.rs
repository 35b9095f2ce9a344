//! Backups that the parent makes beside the child, which is killed during or after it.

use super::check::{Noted, check_copied};
use super::expected::Expected;
use crate::config;
use crate::home::Home;
use crate::support::Rng;
use sidebloom::backup::Repository;
use sidebloom::fs::RealFs;
use sidebloom::{Error, Options};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

/// A backup in progress.
pub struct Backup {
    thread: JoinHandle<sidebloom::Result<u64>>,
    repository: Repository,
    /// What was acknowledged before it began.
    acknowledged: Vec<u64>,
}

impl Backup {
    /// Follows the store and begins.
    pub fn begin(dir: &Path) -> Self {
        let acknowledged = Expected::open(&dir.join("expected")).unwrap().last_acknowledged();
        let repository = Repository::in_dir(dir.join("backups")).unwrap();
        let (store, target) = (dir.join("store"), repository.clone());
        let back_up = move || {
            let follower = Options::new().follow(true).open(store)?;
            let number = follower.backup(&target)?.number;
            target.keep(3)?;
            Ok(number)
        };
        Backup { thread: std::thread::spawn(back_up), repository, acknowledged }
    }

    /// Restores it, and checks what it has. `stayed_open` tells that the child has not closed the store
    /// since. Returns `false` if there is no backup, because the child repaired the store.
    pub fn check(self, dir: &Path, stayed_open: bool, home: Home, rng: &mut Rng, what: &str) -> bool {
        let number = match self.thread.join().unwrap() {
            Ok(number) => number,
            Err(Error::NotARepository { .. } | Error::NotAStore { .. }) if !stayed_open => return false,
            Err(Error::Corruption { .. } | Error::Io { .. }) if !stayed_open => return false,
            Err(error) => panic!("{what}: a backup beside the writer: {error}"),
        };
        let listing = self.repository.list().unwrap();
        assert!(listing.problems.is_empty(), "{what}: {:?}", listing.problems);
        let report = self.repository.verify(None).unwrap();
        assert!(report.is_ok(), "{what}: {:?}", report.problems);
        let restored = dir.join("restored");
        self.repository.restore(Some(number), &restored).unwrap();
        let what = format!("{what}: backup {number}");
        let db = config::random(rng, Arc::new(RealFs)).open(&restored).unwrap();
        if stayed_open {
            let expected = Expected::open(&dir.join("expected")).unwrap();
            check_copied(&db, home, &expected, &Noted::of(&expected, self.acknowledged), &what);
        } else {
            assert!(db.verify().unwrap().is_ok(), "{what}");
        }
        drop(db);
        std::fs::remove_dir_all(restored).unwrap();
        true
    }
}

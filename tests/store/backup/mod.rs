//! Backups: whole by themselves, cheap when little has changed, and safe from whatever interrupts them.

mod bad_input;
mod basics;
mod beside_writer;
mod i4_cut_short;
mod incremental;
mod repositories_harmed;

use crate::support::{SimFs, tiny, tiny_on};
use sidebloom::Db;
use sidebloom::backup::Repository;
use std::path::Path;
use std::sync::Arc;

/// Where the repository is on a simulated disk.
const REPOSITORY: &str = "disk/backups";
const RESTORED: &str = "disk/restored";

fn repository_on(fs: &SimFs) -> Repository {
    Repository::in_dir_on(Arc::new(fs.clone()), REPOSITORY).unwrap()
}

/// Restores a backup and opens it.
fn restored_on(fs: &SimFs, number: Option<u64>, target: &str) -> Db {
    repository_on(fs).restore(number, target).unwrap();
    let db = tiny_on(fs).create_if_missing(false).open(target).unwrap();
    assert!(db.verify().unwrap().is_ok());
    db
}

fn restored(repository: &Repository, number: Option<u64>, target: &Path) -> Db {
    repository.restore(number, target).unwrap();
    let db = tiny().create_if_missing(false).open(target).unwrap();
    let report = db.verify().unwrap();
    assert!(report.is_ok() && report.unusable_filters.is_empty(), "{report:?}");
    db
}

//! Repositories in directories and at URLs.

use crate::context::Failure;
use crate::url::url_of;
use sidebloom::backup::Repository;
use std::path::Path;

/// A repository, which need not exist.
pub fn open(target: &Path) -> Result<Repository, Failure> {
    match url_of(target.as_os_str()) {
        Some(url) => at_url(url),
        None => Ok(Repository::in_dir(target)?),
    }
}

#[cfg(feature = "remote")]
fn at_url(url: &str) -> Result<Repository, Failure> {
    Ok(sidebloom_remote::backups_at(sidebloom_remote::Remote::open(url)?))
}

#[cfg(not(feature = "remote"))]
fn at_url(_: &str) -> Result<Repository, Failure> {
    Err(Failure::not_built_in("object storage", "remote"))
}

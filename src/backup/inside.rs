//! A repository and a store must not be in each other: one would take the other's files for foreign ones, and
//! whoever removes one loses both.

use super::names::{BACKUPS, REPOSITORY};
use super::storage::Storage;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::id::LOCK;
use crate::manifest::MANIFEST;
use std::path::{Path, PathBuf};

/// A guard's settings.
const GUARD: &str = crate::guard::SETTINGS_FILE;
/// How many directories above one are looked at. The root is its own parent.
const DEPTH_MAX: usize = 64;

/// Refuses a repository inside of a store, and one that the store in `dir` is in.
///
/// # Errors
/// [`Error::NotARepository`], [`Error::Io`].
pub(super) fn check_apart(fs: &dyn Fs, storage: &dyn Storage, dir: &Path) -> Result<()> {
    let Some(target) = storage.directory() else { return Ok(()) };
    let refuse = |what: &str| Err(Error::NotARepository { path: target.to_path_buf(), what: what.into() });
    let dir = &*fs.absolute(dir)?;
    if target.starts_with(dir) || is_in(fs, target, &[MANIFEST, LOCK])? || is_in(fs, target, &[GUARD, LOCK])?
    {
        return refuse("it is inside of a store's directory: choose one outside");
    }
    if dir.starts_with(target) || is_in(fs, dir, &[REPOSITORY, BACKUPS])? {
        return refuse("the store is inside of it: choose another directory");
    }
    Ok(())
}

/// Whether a directory, or one above it, has files of all of these names: by the path as it is written, and
/// by the parents that the system finds, which differ after a symbolic link.
pub(super) fn is_in(fs: &dyn Fs, path: &Path, names: &[&str]) -> Result<bool> {
    let mut above: Vec<PathBuf> = path.ancestors().map(Path::to_path_buf).collect();
    let mut parent = path.to_path_buf();
    for _ in 0..DEPTH_MAX {
        parent.push("..");
        above.push(parent.clone());
    }
    for dir in above.iter().filter(|dir| !dir.as_os_str().is_empty()) {
        // What cannot be looked at has nothing to say.
        if names.iter().all(|name| fs.file_len(&dir.join(name)).is_ok_and(|found| found.is_some())) {
            return Ok(true);
        }
    }
    Ok(false)
}

//! What an interrupted build or refresh of a guard leaves in its directory, and its removal.

use super::format::{FRESH, GENERATION_SUFFIX, LOCK, SORT};
use crate::engine::storage::names::is_of_a_store;
use crate::error::Result;
use crate::fs::{Fs, LockMode, LockedFs, open_dir};
use std::path::Path;
use std::sync::Arc;

/// Whether an interrupted build or refresh may have left this name: a store of keys, settings not yet in
/// place, or a temporary file.
pub(super) fn is_leftover(name: &str) -> bool {
    name == FRESH || name == SORT || is_generation(name)
}

fn is_generation(name: &str) -> bool {
    let number = name.strip_suffix(GENERATION_SUFFIX);
    number.is_some_and(|number| number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Removes what an interrupted build or refresh left: everything except the live store.
pub(super) fn remove_leftovers(fs: &Arc<dyn Fs>, dir: &Path, live: &str) -> Result<()> {
    for name in fs.list(dir)?.into_iter().filter(|name| name != live && is_leftover(name)) {
        let path = dir.join(&name);
        if is_generation(&name) { remove_store(fs, &path)? } else { fs.remove(&path)? }
    }
    Ok(())
}

/// Removes the store of a generation, which nobody may have open. A file that does not belong to a store
/// stays, and so does the directory.
pub(super) fn remove_store(named: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    let fs = open_dir(named, path)?;
    let lock_path = path.join(LOCK);
    let lock = fs.lock(&lock_path, LockMode::Exclusive)?;
    let fs = LockedFs::wrap(fs, path, LOCK, &*lock);
    let (own, foreign): (Vec<_>, Vec<_>) = fs.list(path)?.into_iter().partition(|name| is_of_a_store(name));
    for name in own.iter().filter(|name| *name != LOCK) {
        fs.remove(&path.join(name))?;
    }
    fs.remove(&lock_path)?;
    if let Some(name) = foreign.first() {
        tracing::warn!(path = %path.display(), name, "a directory of old keys stays, because it has a file that is not the guard's");
        return Ok(());
    }
    named.remove_dir(path)
}

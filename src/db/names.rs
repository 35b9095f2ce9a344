//! The names of a store's files, apart from the numbered ones in [`FileKind`].

use crate::error::{Error, Result};
use crate::fs::{Fs, LockMode};
pub(crate) use crate::id::LOCK;
use crate::id::{FileKind, TEMPORARY};
use crate::manifest::{MANIFEST, MANIFEST_TMP, ManifestState};
use std::path::{Path, PathBuf};

/// Follows the name of a file that a repair has set aside.
pub(crate) const DAMAGED: &str = ".damaged";

/// The manifest of a clone or a checkpoint that is being made. It is the first file there, and gets its real name last.
pub(crate) const MANIFEST_OF_COPY: &str = "MANIFEST.copy";

/// Whether the directory `path` has a manifest. `names` were listed in it; a writer that replaced its manifest meanwhile may have hidden
/// the name.
pub(crate) fn has_manifest(fs: &dyn Fs, path: &Path, names: &[String]) -> Result<bool> {
    Ok(names.iter().any(|name| name == MANIFEST) || fs.file_len(&path.join(MANIFEST))?.is_some())
}

/// Refuses a directory in which a clone or a checkpoint was never completed: any of its segments may be missing. `names` are those in it.
pub(crate) fn refuse_unfinished_copy(fs: &dyn Fs, path: &Path, names: &[String]) -> Result<()> {
    if !names.iter().any(|name| name == MANIFEST_OF_COPY) {
        return Ok(());
    }
    let lock = fs.lock(&path.join(LOCK), LockMode::Shared);
    if has_manifest(fs, path, names)? {
        return Ok(()); // It was completed since its names were listed.
    }
    match lock {
        Err(error @ Error::Locked { .. }) => Err(error), // It is being made.
        _ => {
            let what =
                "it is a copy of a store that was never completed: remove the directory and make it again";
            Err(Error::NotAStore { path: path.to_path_buf(), what: what.to_owned() })
        }
    }
}

/// Whether a file still has its temporary name: it is a sidecar or a manifest that was never completed.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name == MANIFEST_TMP || name.strip_suffix(TEMPORARY).and_then(FileKind::parse).is_some()
}

/// Whether a store or its repair may have given a file this name.
pub(crate) fn is_of_a_store(name: &str) -> bool {
    let name = name.split_once(DAMAGED).map_or(name, |(name, _)| name);
    name == LOCK || name == MANIFEST || is_unfinished(name) || FileKind::parse(name).is_some()
}

/// The smallest file number above all that are in use or were ever reserved. Numbers of files that would leave no room are ignored.
pub(crate) fn next_free_id(state: &ManifestState, names: &[String]) -> u64 {
    let ids = names.iter().filter_map(|name| FileKind::parse(name)).map(|(id, _)| id);
    let seen = ids.filter(|id| id.leaves_room()).map(|id| id.0 + 1).max();
    seen.unwrap_or(1).max(state.next_id.0).max(1)
}

/// The error for a file whose number no store gives.
pub(crate) fn unusual_number(path: PathBuf) -> Error {
    Error::corruption(path, 0, "no store gives a file such a large number; run `sidebloom repair`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::StoreIdentity;

    #[test]
    fn files_with_enormous_numbers_leave_numbers_for_new_files() {
        let state = ManifestState::new(StoreIdentity { store_id: 1, hasher: 2.into() });
        let names = ["000041.wal", "2305843009213693953.wal", "18446744073709551615.wal"].map(String::from);
        assert_eq!(next_free_id(&state, &names), 42);
    }
}

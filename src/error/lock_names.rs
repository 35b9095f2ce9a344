//! What the name of a lock file tells of its holder.

use std::path::Path;

/// The lock file of a backup repository, for those who add to it or remove from it.
pub(crate) const REPOSITORY_LOCK: &str = "REPOSITORY.lock";
/// The one for those who read it, and must not lose what they read.
pub(crate) const REPOSITORY_READERS: &str = "REPOSITORY.readers";

/// The mark of a removal in an object store.
pub(crate) const REPOSITORY_REMOVAL: &str = "removing";

/// What a lock file says about its holder.
pub(super) fn who_locks(path: &Path) -> &'static str {
    match path.file_name().and_then(|name| name.to_str()) {
        Some(REPOSITORY_LOCK) => {
            "the repository is in use: another backup is being made or removed; wait until that ends"
        }
        Some(REPOSITORY_READERS) => {
            "the repository is in use: a backup is being restored or verified; wait until that ends"
        }
        Some(REPOSITORY_REMOVAL) => {
            "old backups are being removed; wait until that ends, or for an hour if it was killed"
        }
        _ => "the store is already open; close it first (read-only opens can share it)",
    }
}

//! The directory for what is kept of a published store or guard.

use crate::context::Failure;
use std::path::PathBuf;

/// A directory below the user's cache directory, in which each URL gets one of its own.
pub fn default_dir() -> Result<PathBuf, Failure> {
    // Relative paths do not count, says the XDG base directory specification.
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = named("XDG_CACHE_HOME").or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let caches = caches.filter(|path| path.is_absolute()).ok_or_else(|| {
        Failure::message(
            "there is no home directory: name a directory with --remote-cache, or with --cache for a guard",
        )
    })?;
    Ok(caches.join("sidebloom"))
}

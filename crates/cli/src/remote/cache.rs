//! The cache directory of published stores and guards.

use crate::context::Failure;
use std::path::PathBuf;

/// A directory below the user's cache directory. Each URL gets a subdirectory.
pub fn default_dir() -> Result<PathBuf, Failure> {
    // The XDG base directory specification says to ignore relative paths.
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = named("XDG_CACHE_HOME").or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let caches = caches.filter(|path| path.is_absolute()).ok_or_else(|| {
        Failure::message(
            "there is no home directory: choose a cache directory with --remote-cache, or with --cache for a guard",
        )
    })?;
    Ok(caches.join("sidebloom"))
}

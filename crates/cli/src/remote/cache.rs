//! The directory for what is kept of a published store or guard.

use crate::context::Failure;
use sidebloom::KeyHasher;
use std::path::PathBuf;

/// A directory below the user's cache directory, one for each URL.
pub fn default_dir(url: &str) -> Result<PathBuf, Failure> {
    // Relative paths do not count, says the XDG base directory specification.
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = named("XDG_CACHE_HOME").or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let caches = caches.filter(|path| path.is_absolute()).ok_or_else(|| {
        Failure::message(
            "there is no home directory: name a directory with --remote-cache, or with --cache for a guard",
        )
    })?;
    let hash = KeyHasher::from(0).hash_128(url.trim_end_matches('/').as_bytes());
    Ok(caches.join("sidebloom").join(format!("{hash:032x}")))
}

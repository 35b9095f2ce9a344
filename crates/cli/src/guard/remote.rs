//! What commands share that use object storage. All but the name needs a build with the feature remote.

#[cfg(feature = "remote")]
use crate::context::Failure;
use std::ffi::OsStr;
#[cfg(feature = "remote")]
use std::path::PathBuf;

/// The URL of an object store, if it is one rather than a directory.
pub fn url_of(place: &OsStr) -> Option<&str> {
    place.to_str().filter(|place| place.contains("://"))
}

/// Where the filters of a guard at a URL are kept: a directory in the user's cache.
#[cfg(feature = "remote")]
pub fn default_cache(url: &str) -> Result<PathBuf, Failure> {
    let given = std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let caches = given.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let caches = caches
        .ok_or_else(|| Failure::message("there is no home directory: name a directory with --cache"))?;
    let name: String = url.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    Ok(caches.join("sidebloom").join(name))
}

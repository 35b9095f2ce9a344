//! Arguments that may be a directory or a URL.

use std::ffi::OsStr;

/// The URL of an object store; `None` for a directory.
pub fn url_of(place: &OsStr) -> Option<&str> {
    place.to_str().filter(|place| place.contains("://"))
}

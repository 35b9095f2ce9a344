//! Errors, with the name of the database file.

use sidebloom::Error;
use std::path::Path;

/// An error of this crate.
pub fn wrong(path: &Path, what: String) -> Error {
    Error::Database { name: path.display().to_string(), what }
}

/// An error of SQLite.
pub fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    wrong(path, error.to_string())
}

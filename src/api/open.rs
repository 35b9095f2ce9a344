//! Opening a store.

use super::handle::Db;
use crate::engine::open::open;
use crate::error::Result;
use crate::options::Options;
use std::path::Path;

impl Db {
    /// Opens the store in directory `path` with default options. Creates it if it is missing.
    ///
    /// # Errors
    /// The errors of [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(path)
    }
}

impl Options {
    /// Opens the store in directory `path`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a setting out of range; [`Error::FeatureMissing`] for a compression
    /// that this build lacks; [`Error::NotAStore`] if the path is something else; [`Error::Locked`] while the
    /// store is open elsewhere; [`Error::Corruption`] for a damaged log or manifest, or a missing segment.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Db> {
        open(path.as_ref(), self).map(Db::new)
    }
}

//! What a guard needs of a database. A new database is one implementation of [`Source`].

use super::canonical::Canonical;
use crate::error::{Error, Result};

/// A change of one row's key in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'k> {
    /// A row with this key comes.
    Insert(&'k [u8]),
    /// A row with this key goes.
    Remove(&'k [u8]),
}

/// A database with a column of keys. Errors are [`Error::Database`](crate::Error::Database).
pub trait Source {
    /// Calls `visit` with the key of every row, as of one moment that is not before the call. A key of several rows comes several times.
    /// An error of `visit` ends it.
    ///
    /// # Errors
    /// The database's, or that of `visit`.
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

    /// How many rows have this key, by the database's own equality.
    ///
    /// # Errors
    /// The database's.
    fn count(&mut self, key: &[u8]) -> Result<u64>;

    /// Applies changes in one transaction of the database, committed when it returns.
    ///
    /// # Errors
    /// The database's. It may have committed all the same, as when the connection breaks at the end.
    fn apply(&mut self, changes: &[Change<'_>]) -> Result<()>;

    /// When the database itself takes two keys for one, by type and collation. A guard is built with this, unless told otherwise, and one
    /// that tells such keys apart is refused: it would say no to a key that exists in another spelling.
    fn equality(&self) -> Canonical {
        Canonical::EXACT
    }

    /// The note to store with what [`stream`](Self::stream) has delivered, as the position in a stream of changes; asked after it.
    fn note(&self) -> Option<Vec<u8>> {
        None
    }
}

/// Refuses a guard whose keys are finer than the database's.
pub(super) fn check_equality(canonical: Canonical, source: &dyn Source) -> Result<()> {
    let needed = source.equality();
    match canonical.covers(needed) {
        true => Ok(()),
        false => Err(Error::InvalidArgument(format!(
            "the keys of this guard are \"{canonical}\", but its database takes keys for one that differ by \"{needed}\": \
             build the guard with keys \"{}\"",
            canonical.and(needed)
        ))),
    }
}

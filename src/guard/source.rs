//! What a guard needs from a database. Supporting another database takes one implementation of [`Source`].

use super::canonical::Canonical;
use crate::error::{Error, Result};

/// The insertion or removal of a row in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'k> {
    /// Inserts a row with this key.
    Insert(&'k [u8]),
    /// Removes a row with this key.
    Remove(&'k [u8]),
}

/// A database with a column of keys. Errors are [`Error::Database`](crate::Error::Database).
pub trait Source {
    /// Calls `visit` with the key of every row, in one snapshot taken no earlier than this call. Visits a key
    /// once per row. Stops when `visit` fails.
    ///
    /// # Errors
    /// The database's errors, and those of `visit`.
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

    /// The number of rows with this key, by the database's own equality.
    ///
    /// # Errors
    /// The database's errors.
    fn count(&mut self, key: &[u8]) -> Result<u64>;

    /// Applies changes in one transaction of the database, and commits it before returning.
    ///
    /// # Errors
    /// The database's errors. It may have committed even so, for instance if the connection breaks.
    fn apply(&mut self, changes: &[Change<'_>]) -> Result<()>;

    /// Which keys the database itself treats as equal, by type and collation. Guards are built with this form
    /// by default. A guard that distinguishes such keys is refused, because it would say no to a key that
    /// exists in another spelling.
    fn equality(&self) -> Canonical {
        Canonical::EXACT
    }

    /// The note to store with the keys from [`stream`](Self::stream), such as a position in a stream of
    /// changes. Called after it.
    fn note(&self) -> Option<Vec<u8>> {
        None
    }
}

/// Refuses a guard that distinguishes keys which the database treats as equal.
pub(super) fn check_equality(canonical: Canonical, source: &dyn Source) -> Result<()> {
    let needed = source.equality();
    if canonical.covers(needed) {
        Ok(())
    } else {
        Err(Error::InvalidArgument(format!(
            "the keys of this guard are \"{canonical}\", but its database ignores the differences \"{needed}\": \
             build the guard with keys \"{}\"",
            canonical.and(needed)
        )))
    }
}

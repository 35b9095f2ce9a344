//! One transaction for the guard and the database.

use crate::connection::failed;
use sidebloom::Result;
use sidebloom::guard::Transaction;

/// Commits changes of a guard together with their PostgreSQL transaction, as [`Transaction::commit`] does:
/// first the insertions, then the database, then the removals.
///
/// # Errors
/// The errors of [`Transaction::commit`].
pub fn commit(changes: Transaction<'_>, tx: postgres::Transaction<'_>) -> Result<()> {
    changes.commit(|| tx.commit().map_err(|error| failed("PostgreSQL", &error)))
}

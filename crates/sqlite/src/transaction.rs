//! One transaction for the guard and the database.

use crate::error::failed;
use sidebloom::Result;
use sidebloom::guard::Transaction;
use std::path::PathBuf;

/// Commits changes of a guard together with their SQLite transaction, as [`Transaction::commit`] does: first
/// the insertions, then the database, then the removals.
///
/// # Errors
/// The errors of [`Transaction::commit`]. An error before the database commits rolls it back.
pub fn commit(changes: Transaction<'_>, mut tx: rusqlite::Transaction<'_>) -> Result<()> {
    // If the guard refuses the insertions, `tx` is dropped unused, and its rows must not be committed.
    tx.set_drop_behavior(rusqlite::DropBehavior::Rollback);
    let path = PathBuf::from(tx.path().unwrap_or_default());
    changes.commit(|| tx.commit().map_err(|e| failed(&path, &e)))
}

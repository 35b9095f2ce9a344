//! Guards a column of a SQLite table with [`sidebloom::guard`].
//!
//! Choose it if most lookups in the table are for keys that it does not have, and all writers can tell the
//! guard. A guard answers those from memory, at about one byte a key, and never denies a key that exists.
//! [Writers](#writers) has an example.
//!
//! # Keys
//! | stored value | key |
//! |---|---|
//! | TEXT | its bytes in UTF-8, even if the database is in UTF-16 |
//! | BLOB | its bytes |
//! | INTEGER | decimal digits, with a minus sign if negative |
//! | NULL | none: the row is skipped |
//! | REAL | an error: one number has many spellings |
//!
//! A column of affinity INTEGER or NUMERIC treats `'042'`, `'+42'` and `'42.0'` as 42, and so does its guard
//! ([`Canonical::integers`](sidebloom::guard::Canonical::integers)). A column of affinity REAL is refused. A
//! column without a type (affinity BLOB) converts nothing, so `'042'` and 42 are different keys: ask for an
//! integer there as SQLite prints it.
//!
//! The collations `NOCASE` and `RTRIM`, declared for the column, are part of
//! [`Source::equality`](sidebloom::guard::Source::equality): a guard that distinguishes keys the column
//! treats as equal is refused. Columns with an application-defined collation are refused, because the guard
//! cannot know which keys it treats as equal. A query with its own collation (`= ? COLLATE NOCASE`) is not
//! covered: build the guard with `fold` or `pad` for it.
//!
//! Reading all keys takes one read transaction. In rollback-journal mode it blocks writers until it ends; in
//! WAL mode it does not.
//!
//! # Writers
//! [`commit`] keeps the order that makes every "no" true:
//!
//! ```
//! use sidebloom::guard::GuardOptions;
//! use sidebloom_sqlite::{SqliteSource, rusqlite};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let (file, path) = (dir.path().join("songs.sqlite"), dir.path().join("songs.guard"));
//! let mut db = rusqlite::Connection::open(&file)?;
//! db.execute_batch("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('Zombie')")?;
//! let guard = GuardOptions::new().build_from(&path, &mut SqliteSource::open(&file, "songs", "title")?)?;
//!
//! let tx = db.transaction()?;
//! tx.execute("INSERT INTO songs VALUES (?)", ["Freebird"])?;
//! tx.execute("DELETE FROM songs WHERE title = ?", ["Zombie"])?;
//! let mut changes = guard.transaction();
//! changes.insert("Freebird")?.remove("Zombie")?;
//! sidebloom_sqlite::commit(changes, tx)?;
//! # assert!(guard.contains("Freebird")? && !guard.contains("Zombie")?);
//! # Ok(()) }
//! ```

mod column;
mod error;
mod source;
mod transaction;

/// The crate that provides the connections and transactions.
pub use rusqlite;
pub use source::SqliteSource;
pub use transaction::commit;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

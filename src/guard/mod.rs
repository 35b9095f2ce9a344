//! A guard before a slow database: it knows every key that exists, and answers "not there" from memory.
//!
//! When you would choose this: a service looks up keys that are mostly not in its database (titles, addresses, user names), and each
//! such question costs a round trip. Ask the guard first, and the database only on [`Verdict::Maybe`].
//!
//! ```
//! use sidebloom::filter::Verdict;
//! use sidebloom::guard::{Canonical, Guard, GuardOptions};
//! # fn main() -> sidebloom::Result<()> {
//! # let dir = tempfile::tempdir().map_err(|e| sidebloom::Error::io("create", "a temporary directory", e))?;
//! # let path = dir.path().join("songs.guard");
//! let titles = ["Sinnerman", "Zombie", "Gracias a la vida"];
//! let options = GuardOptions::new().canonical(Canonical::EXACT.fold_case());
//! let guard = options.build(&path, titles)?;
//!
//! if guard.may_contain("SINNERMAN") == Verdict::Maybe { /* ask the database */ }
//! assert_eq!(guard.may_contain("Freebird"), Verdict::Absent); // one cache line, no database
//!
//! // A row comes, another one goes: the order that keeps every "no" true.
//! let mut changes = guard.transaction();
//! changes.insert("Freebird")?.remove("Zombie")?;
//! changes.commit(|| /* the database's own commit */ Ok::<_, sidebloom::Error>(()))?;
//! assert_eq!(guard.may_contain("Freebird"), Verdict::Maybe);
//! # Ok(()) }
//! ```
//!
//! # How it works
//! A guard is a directory with a [`Db`](crate::Db) of key hashes, asked through its memtable and its filters only
//! ([`Db::may_contain`](crate::Db::may_contain)). So insertions and real deletions are durable through the log, and the filters follow
//! by flush and compaction. The value of a hash is the number of rows that have the key: it goes when the last row does.
//!
//! # What makes a "no" true
//! 1. A key is inserted durably *before* the database commits its row, and removed *after* the database has committed the deletion. A
//!    crash between the two leaves the guard with a key too many, never with one too few. [`Guard::transaction`] keeps the order.
//! 2. What the database has committed survives a power cut. Where it may not (SQLite in WAL mode with `synchronous` below FULL, PostgreSQL
//!    with `synchronous_commit = off`), a deletion can be undone after the guard has removed the key: refresh the guard after that.
//! 3. What counts as one key ([`Canonical`]) is declared once, and is at least as coarse as the database's own equality.
//! 4. [`Guard::refresh`] counts all rows anew beside the live guard. Each change that it may or may not have seen is decided for the
//!    "maybe": insertions in doubt are added, removals in doubt are left out. What is left too often goes with the next refresh.
//! 5. Writers that do not go through the guard must be followed; until it has caught up, the guard answers as of the change it has
//!    seen last.
//!
//! # Databases
//! Whatever has keys in a column is one implementation of [`Source`]. Two are here, each behind a cargo feature, since the crate is
//! pure Rust without them: `sqlite` gives `SqliteSource` and `Transaction::commit_sqlite`, and `postgres` gives `PostgresSource`,
//! `Transaction::commit_postgres`, and a follower for tables that others write. A source says which keys its database takes for one
//! ([`Source::equality`], from the column's collation and type), and a guard that would tell them apart is refused.
//!
//! [`Guard::reconcile`] is a refresh that also says by how much the guard and the database had come apart.
//!
//! [`Verdict::Maybe`]: crate::filter::Verdict::Maybe

mod canonical;
mod format;
mod generation;
mod handle;
mod hashed;
mod open;
mod options;
#[cfg(feature = "postgres")]
pub mod postgres;
mod refresh;
mod sort;
mod source;
mod spelling;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod stats;
mod transaction;
mod write;

pub use canonical::Canonical;
pub use format::HashWidth;
pub use handle::Guard;
pub use options::GuardOptions;
#[cfg(feature = "postgres")]
pub use postgres::PostgresSource;
pub use refresh::{ReconcileReport, RefreshReport};
pub use source::{Change, Source};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteSource;
pub use stats::GuardStats;
pub use transaction::Transaction;
pub use write::Changes;

//! A guard in front of a slow database: it knows every key, and answers lookups for missing keys from memory.
//!
//! When to use one: a service looks up keys that are mostly not in its database (titles, addresses, user
//! names), and every lookup costs a round trip. Check the guard first, and the database only on
//! [`Verdict::Maybe`].
//!
//! ```
//! use sidebloom::filter::Verdict;
//! use sidebloom::guard::Guard;
//! # fn main() -> sidebloom::Result<()> {
//! # let dir = tempfile::tempdir()
//! #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
//! # let path = dir.path().join("songs.guard");
//! let titles = ["Sinnerman", "Zombie", "Gracias a la vida"];
//! let guard = Guard::build(&path, titles)?;
//!
//! if guard.may_contain("Sinnerman") == Verdict::Maybe { /* ask the database */ }
//! assert_eq!(guard.may_contain("Freebird"), Verdict::Absent); // one cache line, no database
//!
//! // One row is inserted, another one deleted, in the order that keeps every "no" true.
//! let mut changes = guard.transaction();
//! changes.insert("Freebird")?.remove("Zombie")?;
//! changes.commit(|| /* the database's own commit */ Ok::<_, sidebloom::Error>(()))?;
//! assert_eq!(guard.may_contain("Freebird"), Verdict::Maybe);
//! # Ok(()) }
//! ```
//!
//! # How it works
//! A guard is a directory with a [`Db`](crate::Db) of key hashes. Lookups use only its memtable and filters
//! ([`Db::may_contain`](crate::Keyspace::may_contain)). The log makes insertions and deletions durable, and
//! the filters follow through flushes and compactions. The value of a hash is the number of rows with the
//! key; the hash is deleted with the last row.
//!
//! # What makes a "no" true
//! 1. A key is inserted durably *before* the database commits its row, and removed *after* the database has
//!    committed the deletion. A crash between the two leaves a surplus key in the guard, never a missing one.
//!    [`Guard::transaction`] keeps the order.
//! 2. What the database has committed survives a power failure. Where it may not (SQLite in WAL mode with
//!    `synchronous` below FULL, PostgreSQL with `synchronous_commit = off`), a deletion can be undone after
//!    the guard has removed the key: then refresh the guard.
//! 3. Key equality ([`Canonical`]) is declared once, and is at least as coarse as the database's own.
//! 4. [`Guard::refresh`] counts all rows again next to the live guard. It resolves changes that it may or may
//!    not have seen in favour of "maybe": it adds doubtful insertions and leaves out doubtful removals. The
//!    next refresh removes the surplus.
//! 5. Writers that bypass the guard must be followed. Until the follower catches up, the guard answers as of
//!    the last change that it has seen.
//!
//! # Databases
//! A database is one implementation of [`Source`]. The crate `sidebloom-sqlite` has one for SQLite;
//! `sidebloom-postgres` has one for PostgreSQL, and a follower for tables that others write. Both commit a
//! [`Transaction`] together with the database's own. A source says which keys its database treats as equal
//! ([`Source::equality`], from the column's collation and type). A guard that distinguishes them is refused.
//!
//! [`Guard::reconcile`] is a refresh that also reports how far the guard and the database had diverged.
//!
//! [`Verdict::Maybe`]: crate::filter::Verdict::Maybe

mod canonical;
mod changes;
mod copies;
mod counters;
mod expiring;
#[cfg(feature = "unicode")]
mod folding;
mod format;
#[cfg(test)]
mod format_tests;
mod generation;
mod handle;
mod hash_sorter;
mod image;
mod leftovers;
mod open;
mod options;
mod refresh;
mod shared;
mod source;
mod spelling;
mod stats;
mod stored_hash;
mod transaction;
mod write;

pub use canonical::Canonical;
pub use changes::Changes;
pub(crate) use copies::{GuardFiles, GuardFollower, make_guard};
pub use format::HashWidth;
pub(crate) use format::SETTINGS as SETTINGS_FILE;
pub use handle::Guard;
pub use image::GuardImage;
pub use options::GuardOptions;
pub use refresh::{ReconcileReport, RefreshReport};
pub use source::{Change, Source};
pub use stats::GuardStats;
pub use transaction::Transaction;

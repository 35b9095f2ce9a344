//! Guards a column of a PostgreSQL table with [`sidebloom::guard`], and follows other writers of the table.
//!
//! Choose it if most lookups in the table are for keys that it does not have, and a query takes longer than
//! you like. A guard answers those from memory, at about one byte a key, and never denies a key that exists.
//! Writers that know the guard use [`commit`]. For all others, it follows the table by triggers.
//!
//! ```no_run
//! use sidebloom::filter::Verdict;
//! use sidebloom::guard::GuardOptions;
//! use sidebloom_postgres::{FollowOptions, PostgresSource};
//! use std::ops::ControlFlow;
//!
//! # fn main() -> sidebloom::Result<()> {
//! let mut songs = PostgresSource::connect("host=/run/postgresql dbname=music", "songs", "title")?;
//! let guard = GuardOptions::new().build_from("songs.guard", &mut songs)?;
//! if guard.may_contain("Freebird") == Verdict::Maybe { /* query the server */ }
//!
//! // Keep up with other writers of the table, in a separate thread.
//! let follower = guard.clone();
//! std::thread::spawn(move || {
//!     songs.install_trigger()?;
//!     songs.follow(&follower, FollowOptions::new(), &mut |_| ControlFlow::Continue(()))
//! });
//! # Ok(()) }
//! ```
//!
//! # Keys
//! A key is the bytes of a `bytea`, or the text of a `text`, `varchar`, `char(n)` (without the padding),
//! `citext`, integer, `uuid` or enum, or of a domain over one of these. Rows with NULL are skipped. Rows that
//! row-level security hides from the connecting role are an error. Other types are refused: `numeric` treats
//! 1.0 and 1.00 as equal and has no unique text; `name` truncates long texts.
//!
//! A guard treats keys as equal when the column's type does ([`Source::equality`]): `citext` folds case,
//! `char(n)` ignores padding, and integers and uuids may have any spelling that PostgreSQL accepts. Columns
//! with a nondeterministic collation are refused.
//!
//! # TLS
//! The parameters of a connection string mean what they mean to libpq:
//!
//! | `sslmode` | TLS | the server's certificate |
//! |---|---|---|
//! | `disable` | no | |
//! | `prefer` (default) | if the server offers it | not checked: no protection from somebody in between |
//! | `require` | yes | not checked |
//! | `verify-ca` | yes | signed by a root certificate of `sslrootcert` |
//! | `verify-full` | yes | also names the host, or its address |
//!
//! `sslrootcert` names a file of root certificates in PEM format, or is `system` for the operating system's,
//! which `verify-full` also uses by default. With a file, `prefer` and `require` check certificates too, as
//! `verify-ca` does. A name must be among the certificate's *subject alternative names*. `sslcert` and
//! `sslkey` are the client's certificate and its key, without a passphrase. Missing parameters come from
//! `PGSSLMODE`, `PGSSLROOTCERT`, `PGSSLCERT` and `PGSSLKEY`, and then from the files `root.crt`,
//! `postgresql.crt` and `postgresql.key` in `~/.postgresql`. The files are read for each connection, so
//! renewed certificates need no restart. Connections through Unix sockets have no TLS. Unlike in libpq,
//! `prefer` does not retry without TLS after a failed handshake, and there is no `allow`.
//! # Writers that do not know the guard
//! [`PostgresSource::install_trigger`] makes every change of the table write its key to an *outbox*, a table
//! written in the same transaction. [`PostgresSource::follow`] applies the outbox to the guard and then waits
//! for the next `NOTIFY`.
//!
//! **A followed guard answers as of the last change that it has applied.** Until the insertion of a row
//! **A followed guard answers as of the last change that it has applied.** Until the insertion of a row
//! arrives, its key gets a "no": normally for a few milliseconds, and for as long as the follower is stopped
//! or disconnected. [`FollowEvent`] reports the lag. If that is too long, let the writers use
//! [`Guard::transaction`] with [`commit`] and do not follow: a change that arrives both ways counts twice.
//! # How each change counts once
//! 1. Outbox ids are drawn in one order and committed in another, so a position in the outbox means nothing.
//!    The follower takes every change it can see, in order of their ids. (A row is removed only after its
//!    insertion was committed, so among the changes visible at one moment this order is right for every row.)
//! 2. A batch is applied to the guard in one atomic write, together with a note of the batch's ids.
//! 3. Then these ids are deleted from the outbox. After a crash between 2 and 3, the note tells which changes
//!    the guard already has: they are deleted, not reapplied. A removal applied twice would be a wrong "no".
//! 4. A refresh reads all keys, and the ids in the outbox, in one snapshot: the keys include the effect of
//!    these changes. The ids become the note that is stored with the keys, and are deleted as in step 3.
//! 5. The note also contains the outbox's *token*, which the follower redraws at each refresh. If the two
//!    differ (the guard is new, the outbox was recreated, or another guard has followed since), changes may
//!    be missing, and the guard is refreshed before it follows. So one outbox serves one guard.
//!
//! TRUNCATE leaves a mark in the outbox that asks for a refresh.
//!
//! # Other roles
//! Everything installed belongs to the installing role and is out of reach of other roles, whatever the
//! database's default privileges. Of existing functions, tables and triggers, a follower uses only those
//! whose owner has the rights of the table's owner. [`PostgresSource::install_trigger`] replaces what other
//! roles could have used; a follower that finds it later suspends the guard. Roles without rights on the
//! table can neither add changes nor remove them. Owners of the schema can, because they can replace its
//! contents. Connections to the server look up names without a schema only in `pg_catalog`.
//!
//! # Schema changes
//! The triggers know their column by its number and look up its name, so renaming the column, the table or
//! the schema breaks no write, and a running follower continues; the next one to start needs the new names. A
//! follower checks the catalog every [`FollowOptions::check`]. If changes may have bypassed the triggers (one
//! was disabled, dropped or recreated; a partition was attached, created or detached; the column was dropped;
//! an enum label was renamed), the guard is *suspended*: it answers "maybe" to everything
//! ([`Guard::is_suspended`]) until all triggers are back and the follower has recounted all rows. The
//! database remembers what the last refresh saw, so this also covers schema changes while nobody follows.
//!
//! Until the next check, keys that bypassed the triggers get a wrong "no". The follower cannot notice that a
//! server was restored from a backup, failed over to a lagging replica, or lost commits in a crash
//! (`synchronous_commit = off`): refresh the guard after any of these. A guard without a follower does not
//! notice a renamed label either.
//!
//! [`Source::equality`]: sidebloom::guard::Source::equality
//! [`Guard::transaction`]: sidebloom::guard::Guard::transaction
//! [`Guard::is_suspended`]: sidebloom::guard::Guard::is_suspended

mod catalog;
mod connection;
mod copy;
mod event;
mod follow;
mod install;
mod location;
mod note;
mod options;
mod outbox;
mod source;
mod table;
mod tls;
mod transaction;
mod triggers;
mod trust;

pub use connection::connect;
pub use event::FollowEvent;
pub use install::Installation;
pub use options::FollowOptions;
/// The crate that provides the connections and transactions.
pub use postgres;
pub use source::PostgresSource;
pub use transaction::commit;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

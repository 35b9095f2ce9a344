//! A column of a PostgreSQL table as a guard's source, and other writers followed; with the feature `postgres`.
//!
//! # What is a key
//! The bytes of `bytea`, and the text of `text`, `varchar`, `char(n)` (without the padding), `citext`, integers, `uuid`, enums, and domains
//! over them. Rows with NULL are skipped; rows that row-level security hides from the role that connects are an error. Other types are
//! refused: `numeric` takes 1.0 and 1.00 for the same, and no text of it is the only one; `name` cuts long texts off. A guard counts keys
//! as one as the column's type does ([`Source::equality`]): `citext` folds case, `char(n)` ignores padding, integers and uuids may be
//! spelled in all the ways that PostgreSQL takes; columns whose collation is not deterministic are refused.
//!
//! # Writers that do not know the guard
//! [`PostgresSource::install_trigger`] lets every change of the table leave its key in an *outbox*, a table that is written in the same
//! transaction; [`PostgresSource::follow`] brings the guard up to date from it, and waits for the next `NOTIFY`.
//!
//! **A followed guard answers as of the change that it has seen last.** Until the insertion of a row has arrived, its key gets a "no":
//! normally for some milliseconds, and for as long as the follower is not running or not connected. [`FollowEvent`] tells the lag. Where
//! that is too long, let the writers use [`Guard::transaction`](super::Guard::transaction) themselves with [`Transaction::commit_postgres`], and do not follow: a
//! change that comes both ways counts twice.
//!
//! # How each change counts once
//! 1. The ids of an outbox are drawn in one order and committed in another, so a position in it means nothing: the follower takes
//!    whichever changes it can see, in order of their ids. (A row is removed only after its insertion was committed, so within what can
//!    be seen at one moment that order is right for every row.)
//! 2. A batch is applied to the guard in one atomic write together with a note of the batch's ids.
//! 3. Then these ids are deleted from the outbox. After a crash between 2 and 3 the note tells which changes are in the guard already:
//!    they are deleted and not applied again. A removal applied twice would be a wrong "no".
//! 4. A refresh reads all keys in one snapshot, and in the same snapshot the ids in the outbox: what these changes did is in the keys.
//!    They become the note that is stored with the keys, and are deleted as in 3.
//! 5. The note also has the outbox's *token*, which the follower draws anew at each refresh. When the two differ (the guard is new, the outbox was
//!    made anew, another guard has followed since) changes may be missing, and the guard is refreshed before it follows. So one outbox
//!    serves one guard.
//!
//! TRUNCATE leaves a mark in the outbox that asks for a refresh.
//!
//! # What happens to the table itself
//! The triggers know their column by its number and look its name up, so renaming the column, the table or the schema breaks no write,
//! and a follower goes on; when it starts again, it wants the new names. Every [`FollowOptions::check`] a follower looks at the catalogue.
//! Where changes may have got past the triggers (one was disabled, dropped, or made anew; a partition was attached, created or detached;
//! the column has gone; a label of an enum was renamed), the guard is *suspended*: it answers "maybe" to everything
//! ([`Guard::is_suspended`](super::Guard::is_suspended)), from then until all triggers are there again and all rows have been counted
//! anew, which the follower does by itself. The database remembers what the last refresh has seen, so this holds for what happens while
//! nobody follows, too.
//!
//! Until the next check, keys that came past the triggers get a wrong "no". Nobody is told of a server that was restored from a backup
//! or failed over to a replica that lagged, or that has lost commits in a crash (`synchronous_commit = off`): refresh the guard after
//! that. A guard that does not follow is told of no renamed label either.

mod copy;
mod follow;
mod installed;
mod note;
mod outbox;
mod place;
mod table;

/// The crate whose connections and transactions these are.
pub use ::postgres as driver;
pub use follow::{FollowEvent, FollowOptions};

use super::canonical::Canonical;
use super::source::{Change, Source};
use super::transaction::Transaction;
use crate::error::{Error, Result};
use ::postgres::error::SqlState;
use ::postgres::types::ToSql;
use ::postgres::{Client, Config, IsolationLevel, NoTls};
use copy::CopyError;
use std::str::FromStr;
use table::{Table, Unfit};

type Connect = dyn FnMut() -> Result<Client, ::postgres::Error> + Send;

/// A column of a table of a PostgreSQL database, version 12 or later. The documentation of the module says what is a key.
pub struct PostgresSource {
    connect: Box<Connect>,
    /// For errors: without the password.
    name: String,
    /// As the caller has named it.
    wanted: (String, String),
    table: Table,
    client: Client,
    /// Whether the next stream takes the outbox over, for the guard that is refreshed.
    is_following: bool,
    /// Whether the guard answers "maybe" to everything because changes may have got past the triggers.
    is_suspended: bool,
    note: Vec<u8>,
}

impl PostgresSource {
    /// Connects, without TLS: through a Unix socket, on a private network or through a tunnel. A password that `url` lacks is taken from
    /// the environment variable `PGPASSWORD`. `table` is TABLE (of a schema on the search path) or SCHEMA.TABLE.
    ///
    /// # Errors
    /// [`Error::Database`] for a server that does not answer, a table or column that is not there, and a column that cannot be a key.
    pub fn connect(url: &str, table: &str, column: &str) -> Result<Self> {
        let (name, config) = parse(url)?;
        Self::connect_with(&name, move || config.connect(NoTls), table, column)
    }

    /// [`remove_triggers_of`](Self::remove_triggers_of), with a connection as of [`connect`](Self::connect).
    ///
    /// # Errors
    /// As [`connect`](Self::connect), but for a table or column that is not there.
    pub fn remove_triggers_at(url: &str, table: &str, column: &str) -> Result<bool> {
        let (name, config) = parse(url)?;
        Self::remove_triggers_of(&name, || config.connect(NoTls), table, column)
    }

    /// Connects as the caller does, for instance with TLS; also anew, when a follower has lost its connection. `name` stands in errors.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_with(
        name: &str,
        mut connect: impl FnMut() -> Result<Client, ::postgres::Error> + Send + 'static,
        table: &str,
        column: &str,
    ) -> Result<Self> {
        let failed = |error: ::postgres::Error| database(name, said(&error));
        let mut client = session(&mut connect).map_err(failed)?;
        let found = Table::find(&mut client, table, column).map_err(|unfit| unfit_for(name, unfit))?;
        Ok(PostgresSource {
            connect: Box::new(connect),
            name: name.to_owned(),
            wanted: (table.to_owned(), column.to_owned()),
            table: found,
            client,
            is_following: false,
            is_suspended: false,
            note: Vec::new(),
        })
    }

    /// Removes what [`install_trigger`](Self::install_trigger) has created for a column, by the names that table and column have now or
    /// had then, and also after they were dropped. Returns whether anything was there. `connect` and `name` are as for
    /// [`connect_with`](Self::connect_with).
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn remove_triggers_of(
        name: &str,
        connect: impl FnOnce() -> Result<Client, ::postgres::Error>,
        table: &str,
        column: &str,
    ) -> Result<bool> {
        let (schema, table) = match table.split_once('.') {
            Some((schema, table)) => (Some(schema), table),
            None => (None, table),
        };
        let remove = || -> Result<bool, ::postgres::Error> {
            let mut client = connect()?;
            let found = installed::find(&mut client, schema, table, column)?;
            for (home, prefix) in &found {
                outbox::remove(&mut client, home, prefix)?;
            }
            Ok(!found.is_empty())
        };
        remove().map_err(|error| database(name, said(&error)))
    }

    fn failed(&self, error: &::postgres::Error) -> Error {
        database(&self.name, said(error))
    }

    fn wrong(&self, what: impl Into<String>) -> Error {
        database(&self.name, what)
    }

    /// All keys, as of one moment. When following, the outbox of that moment too.
    fn read(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<(), CopyOrSql> {
        let table = &self.table;
        let mut tx =
            self.client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start()?;
        // Locks come before the snapshot, which the first query takes: what rewrites a table (ALTER TABLE, TRUNCATE) leaves it empty to
        // older snapshots. A lock that must not wait for a follower's transaction keeps that follower from using what it has read before.
        if self.is_following {
            tx.batch_execute(&outbox::lock(table))?;
        }
        tx.batch_execute(&format!("LOCK TABLE {} IN ACCESS SHARE MODE", table.sql()))?;
        self.note = match self.is_following {
            true => outbox::take_over(&mut tx, table)?.encode(),
            false => Vec::new(),
        };
        let column = table.column_sql();
        let copy = format!(
            "COPY (SELECT {} FROM {} WHERE {column} IS NOT NULL) TO STDOUT (FORMAT binary)",
            table.key_sql(&column),
            table.sql()
        );
        copy::read(tx.copy_out(&copy)?, visit).map_err(CopyOrSql::Copy)?;
        Ok(tx.commit()?)
    }

    fn write(&mut self, changes: &[Change<'_>]) -> Result<(), Written> {
        let (table, column) = (self.table.sql(), self.table.column_sql());
        let (value, key) = (self.table.value_sql(&column), self.table.cast_sql("$1"));
        let mut tx = self.client.transaction()?;
        for change in changes {
            match change {
                Change::Insert(key_bytes) => {
                    let parameter = parameter(&self.table, key_bytes).ok_or(Written::NotText)?;
                    tx.execute(&format!("INSERT INTO {table} ({column}) VALUES ({key})"), &[&*parameter])?;
                }
                Change::Remove(key_bytes) => {
                    let found = match parameter(&self.table, key_bytes) {
                        None => None,
                        Some(parameter) => tx.query_opt(
                            &format!(
                                "SELECT tableoid, ctid::text FROM {table} WHERE {value} = {key} LIMIT 1 FOR UPDATE"
                            ),
                            &[&*parameter],
                        )?,
                    };
                    let Some(row) = found else {
                        return Err(Written::NoRow(key_bytes.escape_ascii().to_string()));
                    };
                    let (part, place): (u32, &str) = (row.get(0), row.get(1));
                    let delete = format!("DELETE FROM {table} WHERE ctid = $1::text::tid AND tableoid = $2");
                    tx.execute(&delete, &[&place, &part])?;
                }
            }
        }
        Ok(tx.commit()?)
    }
}

impl Source for PostgresSource {
    /// In one REPEATABLE READ transaction, by COPY.
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.read(visit).map_err(|error| match error {
            CopyOrSql::Copy(CopyError::Visit(error)) => error,
            CopyOrSql::Copy(CopyError::Stream(error)) => self.wrong(error.to_string()),
            CopyOrSql::Sql(error) => self.failed(&error),
        })
    }

    fn count(&mut self, key: &[u8]) -> Result<u64> {
        let (table, value) = (self.table.sql(), self.table.value_sql(&self.table.column_sql()));
        let count = format!("SELECT count(*) FROM {table} WHERE {value} = {}", self.table.cast_sql("$1"));
        let Some(parameter) = parameter(&self.table, key) else { return Ok(0) };
        match self.client.query_one(&count, &[&*parameter]) {
            Ok(row) => Ok(row.get::<_, i64>(0).unsigned_abs()),
            // What cannot be a value of the type is in no row.
            Err(error)
                if [SqlState::INVALID_TEXT_REPRESENTATION, SqlState::NUMERIC_VALUE_OUT_OF_RANGE]
                    .iter()
                    .any(|state| error.code() == Some(state)) =>
            {
                Ok(0)
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// A row that is inserted has its key, and the defaults of the other columns. A key that is removed must be there.
    fn apply(&mut self, changes: &[Change<'_>]) -> Result<()> {
        self.write(changes).map_err(|error| match error {
            Written::Sql(error) if error.code() == Some(&SqlState::NOT_NULL_VIOLATION) => self.wrong(format!(
                "{}: a row of \"{}\" needs more than its key; insert it yourself, within Guard::transaction",
                said(&error),
                self.table.name
            )),
            Written::Sql(error) => self.failed(&error),
            Written::NotText => self.wrong("a key that is not UTF-8, or has a NUL byte, cannot be stored as text"),
            Written::NoRow(key) => {
                self.wrong(format!("no row of \"{}\" has the key \"{key}\"; nothing was changed", self.table.name))
            }
        })
    }

    fn equality(&self) -> Canonical {
        self.table.equality
    }

    /// Where to follow from; none after an ordinary refresh, which leaves the outbox alone: then a follower begins with its own.
    fn note(&self) -> Option<Vec<u8>> {
        Some(self.note.clone())
    }
}

impl Transaction<'_> {
    /// [`commit`](Self::commit) with a transaction of PostgreSQL: its rows are committed between the insertions and the removals.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_postgres(self, tx: ::postgres::Transaction<'_>) -> Result<()> {
        self.commit(|| tx.commit().map_err(|error| database("PostgreSQL", said(&error))))
    }
}

/// Why a stream ended.
enum CopyOrSql {
    Copy(CopyError),
    Sql(::postgres::Error),
}

impl From<::postgres::Error> for CopyOrSql {
    fn from(error: ::postgres::Error) -> Self {
        CopyOrSql::Sql(error)
    }
}

/// Why changes were not applied.
enum Written {
    Sql(::postgres::Error),
    NotText,
    NoRow(String),
}

impl From<::postgres::Error> for Written {
    fn from(error: ::postgres::Error) -> Self {
        Written::Sql(error)
    }
}

/// A connection to which rows that a policy hides from its role are an error, not missing keys.
fn session(
    connect: &mut impl FnMut() -> Result<Client, ::postgres::Error>,
) -> Result<Client, ::postgres::Error> {
    let mut client = connect()?;
    client.batch_execute("SET row_security = off")?;
    Ok(client)
}

/// The name of a server for errors, and how to reach it.
fn parse(url: &str) -> Result<(String, Config)> {
    let mut config = Config::from_str(url).map_err(|error| {
        Error::InvalidArgument(format!("the address of the PostgreSQL server: {}", said(&error)))
    })?;
    if config.get_password().is_none()
        && let Some(password) = std::env::var_os("PGPASSWORD")
    {
        config.password(password.as_encoded_bytes());
    }
    let host = match (config.get_hosts().first(), config.get_ports().first()) {
        (Some(::postgres::config::Host::Tcp(host)), Some(port)) => format!("{host}:{port}"),
        (Some(::postgres::config::Host::Tcp(host)), None) => host.clone(),
        (Some(::postgres::config::Host::Unix(path)), _) => path.display().to_string(),
        (None, _) => "without a host".to_owned(),
    };
    let name = format!("{} at {host}", config.get_dbname().or(config.get_user()).unwrap_or("postgres"));
    Ok((name, config))
}

/// A key as a parameter; `None` when the column's type cannot have it.
fn parameter<'k>(table: &Table, key: &'k [u8]) -> Option<Box<dyn ToSql + Sync + 'k>> {
    if table.is_bytes {
        return Some(Box::new(key));
    }
    let text = std::str::from_utf8(key).ok().filter(|text| !text.contains('\0'))?;
    Some(Box::new(text))
}

fn database(name: &str, what: impl Into<String>) -> Error {
    Error::Database { name: name.to_owned(), what: what.into() }
}

fn unfit_for(name: &str, unfit: Unfit) -> Error {
    match unfit {
        Unfit::Database(error) => database(name, said(&error)),
        Unfit::What(what) => database(name, what),
    }
}

/// What the server said, or else what is wrong with the connection.
fn said(error: &::postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        let detail = error.detail().map_or(String::new(), |detail| format!(" ({detail})"));
        return format!("{}{detail}", error.message());
    }
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

//! The source: all keys of a column, read and changed.

use crate::connection::{Address, SearchPath, failed, message, open_session, wrong};
use crate::copy::{self, CopyError};
use crate::outbox;
use crate::table::{Kind, Table, TableError};
use bytes::BytesMut;
use postgres::error::SqlState;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, IsolationLevel, Transaction};
use sidebloom::guard::{Canonical, Change, Source};
use sidebloom::{Error, Result};

type Connect = dyn FnMut() -> Result<Client, postgres::Error> + Send;

/// A column of a table in PostgreSQL 12 or later. The [crate] documentation defines its keys.
pub struct PostgresSource {
    pub(crate) connect: Box<Connect>,
    /// The server's name for errors, without the password.
    pub(crate) name: String,
    /// Table and column as given by the caller.
    pub(crate) wanted: (String, String),
    pub(crate) table: Table,
    pub(crate) client: Client,
    pub(crate) search_path: SearchPath,
    /// Whether the next stream takes over the outbox, for the guard that is being refreshed.
    pub(crate) is_following: bool,
    /// Whether the guard answers "maybe" to everything because changes may have bypassed the triggers.
    pub(crate) is_suspended: bool,
    note: Vec<u8>,
}

impl PostgresSource {
    /// Connects to the server at `url`, a URL or `name=value` pairs. The [crate] documentation has the TLS
    /// parameters. A password missing from `url` comes from the environment variable `PGPASSWORD`. `table` is
    /// TABLE (in a schema on the search path) or SCHEMA.TABLE.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a malformed `url`; [`Error::Database`] when the server does not answer,
    /// lacks the TLS that `url` demands or is not trusted, the table or column does not exist, or the column
    /// cannot be a key.
    pub fn connect(url: &str, table: &str, column: &str) -> Result<Self> {
        let address = Address::parse(url)?;
        Self::connect_with(&address.name.clone(), move || address.connect(), table, column)
    }

    /// Connects through `connect`, for instance with another implementation of TLS; a follower that loses its
    /// connection calls it again. `name` is the server's name for errors.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub fn connect_with(
        name: &str,
        mut connect: impl FnMut() -> Result<Client, postgres::Error> + Send + 'static,
        table: &str,
        column: &str,
    ) -> Result<Self> {
        let (mut client, search_path) = open_session(&mut connect).map_err(|error| failed(name, &error))?;
        let found = Table::find(&mut client, &search_path, table, column)
            .map_err(|error| table_error(name, error))?;
        Ok(PostgresSource {
            connect: Box::new(connect),
            name: name.to_owned(),
            wanted: (table.to_owned(), column.to_owned()),
            table: found,
            client,
            search_path,
            is_following: false,
            is_suspended: false,
            note: Vec::new(),
        })
    }

    pub(crate) fn failed(&self, error: &postgres::Error) -> Error {
        failed(&self.name, error)
    }

    pub(crate) fn wrong(&self, what: impl Into<String>) -> Error {
        wrong(&self.name, what)
    }

    /// Reads all keys in one snapshot. When following, also the outbox in the same snapshot.
    fn read(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<(), ReadError> {
        let table = &self.table;
        let mut tx =
            self.client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start()?;
        // Lock before the first query, which takes the snapshot: in older snapshots, a table that is
        // rewritten (ALTER TABLE, TRUNCATE) is empty. The lock on the outbox keeps other followers from using
        // what they read before.
        if self.is_following {
            tx.batch_execute(&outbox::lock(table))?;
        }
        tx.batch_execute(&format!("LOCK TABLE {} IN ACCESS SHARE MODE", table.sql()))?;
        self.note = if self.is_following { outbox::take_over(&mut tx, table)?.encode() } else { Vec::new() };
        let column = table.column_sql();
        let copy = format!(
            "COPY (SELECT {} FROM {} WHERE {column} IS NOT NULL) TO STDOUT (FORMAT binary)",
            table.key_sql(&column),
            table.sql()
        );
        copy::read(tx.copy_out(&copy)?, visit).map_err(ReadError::Copy)?;
        Ok(tx.commit()?)
    }

    fn write(&mut self, changes: &[Change<'_>]) -> Result<(), WriteError> {
        let mut tx = self.client.transaction()?;
        // The table's own triggers may rely on it.
        tx.execute("SELECT pg_catalog.set_config('search_path', $1, true)", &[&self.search_path.setting])?;
        for change in changes {
            match change {
                Change::Insert(key) => insert(&mut tx, &self.table, key)?,
                Change::Remove(key) => remove(&mut tx, &self.table, key)?,
            }
        }
        Ok(tx.commit()?)
    }
}

impl Source for PostgresSource {
    /// Reads in one REPEATABLE READ transaction, with COPY.
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.read(visit).map_err(|error| match error {
            ReadError::Copy(CopyError::Visit(error)) => error,
            ReadError::Copy(CopyError::Stream(error)) => self.wrong(error.to_string()),
            ReadError::Sql(error) => self.failed(&error),
        })
    }

    fn count(&mut self, key: &[u8]) -> Result<u64> {
        let (table, value) = (self.table.sql(), self.table.value_sql(&self.table.column_sql()));
        let equals = &self.table.equals;
        let count =
            format!("SELECT count(*) FROM {table} WHERE {value} {equals} {}", self.table.cast_sql("$1"));
        let Some(parameter) = parameter(&self.table, key) else { return Ok(0) };
        match self.client.query_one(&count, &[&*parameter]) {
            Ok(row) => Ok(row.get::<_, i64>(0).unsigned_abs()),
            // Not a value of the type, so no row has it.
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

    /// An inserted row has its key, and defaults in the other columns. A removed key must exist.
    fn apply(&mut self, changes: &[Change<'_>]) -> Result<()> {
        self.write(changes).map_err(|error| match error {
            WriteError::Sql(error) if error.code() == Some(&SqlState::NOT_NULL_VIOLATION) => self.wrong(format!(
                "{}: a row of \"{}\" needs more than its key; insert it yourself, within Guard::transaction",
                message(&error),
                self.table.name
            )),
            WriteError::Sql(error) => self.failed(&error),
            WriteError::NotText => self.wrong("a key that is not UTF-8, or has a NUL byte, cannot be stored as text"),
            WriteError::NoRow(key) => {
                self.wrong(format!("no row of \"{}\" has the key \"{key}\"; nothing was changed", self.table.name))
            }
        })
    }

    fn equality(&self) -> Canonical {
        self.table.equality
    }

    /// Where to follow from. Empty after an ordinary refresh, which leaves the outbox alone: a follower then
    /// starts with its own refresh.
    fn note(&self) -> Option<Vec<u8>> {
        Some(self.note.clone())
    }
}

fn insert(tx: &mut Transaction<'_>, table: &Table, key: &[u8]) -> Result<(), WriteError> {
    let parameter = parameter(table, key).ok_or(WriteError::NotText)?;
    let (name, column, value) = (table.sql(), table.column_sql(), table.cast_sql("$1"));
    tx.execute(&format!("INSERT INTO {name} ({column}) VALUES ({value})"), &[&*parameter])?;
    Ok(())
}

/// Removes one row with this key. Names every schema: see [`PostgresSource::write`].
fn remove(tx: &mut Transaction<'_>, table: &Table, key: &[u8]) -> Result<(), WriteError> {
    let no_row = || WriteError::NoRow(key.escape_ascii().to_string());
    let parameter = parameter(table, key).ok_or_else(no_row)?;
    let (name, column, value) = (table.sql(), table.value_sql(&table.column_sql()), table.cast_sql("$1"));
    let select = format!(
        "SELECT tableoid, ctid::pg_catalog.text FROM {name} WHERE {column} {} {value} LIMIT 1 FOR UPDATE",
        table.equals
    );
    let row = tx.query_opt(&select, &[&*parameter])?.ok_or_else(no_row)?;
    let (partition, ctid): (u32, &str) = (row.get(0), row.get(1));
    let delete = format!(
        "DELETE FROM {name} WHERE ctid OPERATOR(pg_catalog.=) $1::pg_catalog.text::pg_catalog.tid \
         AND tableoid OPERATOR(pg_catalog.=) $2"
    );
    tx.execute(&delete, &[&ctid, &partition])?;
    Ok(())
}

/// Why a stream ended.
enum ReadError {
    Copy(CopyError),
    Sql(postgres::Error),
}

impl From<postgres::Error> for ReadError {
    fn from(error: postgres::Error) -> Self {
        ReadError::Sql(error)
    }
}

/// Why changes were not applied.
enum WriteError {
    Sql(postgres::Error),
    NotText,
    NoRow(String),
}

impl From<postgres::Error> for WriteError {
    fn from(error: postgres::Error) -> Self {
        WriteError::Sql(error)
    }
}

/// A key as a parameter; `None` if the column's type cannot hold it.
fn parameter<'k>(table: &Table, key: &'k [u8]) -> Option<Box<dyn ToSql + Sync + 'k>> {
    if table.kind == Kind::Bytes {
        return Some(Box::new(key));
    }
    let text = std::str::from_utf8(key).ok().filter(|text| !text.contains('\0'))?;
    Some(match table.kind {
        Kind::Enum => Box::new(Label(text)),
        Kind::Bytes | Kind::Base => Box::new(text),
    })
}

/// An enum's label; its binary form is its text.
#[derive(Debug)]
struct Label<'k>(&'k str);

impl ToSql for Label<'_> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Why the table cannot be guarded, as an error of the server `name`.
pub fn table_error(name: &str, error: TableError) -> Error {
    match error {
        TableError::Database(error) => failed(name, &error),
        TableError::Unusable(what) => wrong(name, what),
    }
}

//! The source: all keys of a column, read and changed.

use crate::column::{Affinity, Column};
use crate::error::{failed, wrong};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql};
use sidebloom::guard::{Canonical, Change, Source};
use sidebloom::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default of [`SqliteSource::busy_timeout`].
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A column of a table in a SQLite database. The [crate] documentation defines its keys.
pub struct SqliteSource {
    path: PathBuf,
    column: Column,
    busy_timeout: Duration,
    db: Connection,
}

/// A bound TEXT with any bytes.
struct Text<'k>(&'k [u8]);

impl ToSql for Text<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

impl SqliteSource {
    /// Opens an existing database.
    ///
    /// # Errors
    /// [`Error::Database`] when the file is missing or not a database, has no such table or column, for a
    /// view (which declares no collation), and for a column with an application-defined collation.
    pub fn open(file: impl AsRef<Path>, table: &str, column: &str) -> Result<Self> {
        let path = file.as_ref().to_path_buf();
        let db = connect(&path, BUSY_TIMEOUT)?;
        let column = Column::find(&path, &db, table, column)?;
        Ok(SqliteSource { path, column, busy_timeout: BUSY_TIMEOUT, db })
    }

    /// How long a call waits for another connection's lock before it fails. Default: 5 seconds.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn busy_timeout(mut self, timeout: Duration) -> Result<Self> {
        self.db.busy_timeout(timeout).map_err(|e| self.failed(&e))?;
        self.busy_timeout = timeout;
        Ok(self)
    }

    fn wrong(&self, what: String) -> Error {
        wrong(&self.path, what)
    }

    fn failed(&self, error: &rusqlite::Error) -> Error {
        failed(&self.path, error)
    }

    /// The column's name in errors.
    fn full_name(&self) -> String {
        format!("\"{}\".\"{}\"", self.column.table, self.column.name)
    }

    fn visit_value(&self, value: ValueRef<'_>, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match value {
            ValueRef::Null => Ok(()),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => visit(bytes),
            ValueRef::Integer(number) => visit(number.to_string().as_bytes()),
            ValueRef::Real(number) => Err(self.wrong(format!(
                "{} contains the REAL {number}, which has many spellings: keys must be TEXT, BLOB or INTEGER",
                self.full_name()
            ))),
        }
    }

    fn apply_in(&self, tx: &rusqlite::Transaction<'_>, changes: &[Change<'_>]) -> Result<()> {
        changes.iter().try_for_each(|change| match change {
            Change::Insert(key) => self.insert(tx, key),
            Change::Remove(key) => self.remove(tx, key),
        })
    }

    fn insert(&self, tx: &rusqlite::Transaction<'_>, key: &[u8]) -> Result<()> {
        let (table, column) = (self.column.table_sql(), self.column.name_sql());
        let sql = format!("INSERT INTO {table} ({column}) VALUES (?1)");
        let mut insert = tx.prepare_cached(&sql).map_err(|e| self.failed(&e))?;
        let as_text = self.column.affinity != Affinity::Blob && std::str::from_utf8(key).is_ok();
        let inserted = if as_text { insert.execute([Text(key)]) } else { insert.execute([key]) };
        inserted.map_err(|error| self.not_inserted(&error)).map(drop)
    }

    fn not_inserted(&self, error: &rusqlite::Error) -> Error {
        let code = error.sqlite_error().map(|error| error.extended_code);
        if code == Some(rusqlite::ffi::SQLITE_CONSTRAINT_NOTNULL) {
            return self.wrong(format!(
                "{error}: a row of \"{}\" needs more than its key; insert it yourself, within Guard::transaction",
                self.column.table
            ));
        }
        self.failed(error)
    }

    fn remove(&self, tx: &rusqlite::Transaction<'_>, key: &[u8]) -> Result<()> {
        let Column { table, row_id, .. } = &self.column;
        let id = row_id.as_ref().ok_or_else(|| {
            self.wrong(format!(
                "cannot delete a single row of \"{table}\": its columns hide rowid, _rowid_ and oid"
            ))
        })?;
        let (table, has_key) = (self.column.table_sql(), self.column.has_key_sql());
        let sql =
            format!("DELETE FROM {table} WHERE ({id}) = (SELECT {id} FROM {table} WHERE {has_key} LIMIT 1)");
        let mut delete = tx.prepare_cached(&sql).map_err(|e| self.failed(&e))?;
        match delete.execute((Text(key), key, integer(key))).map_err(|e| self.failed(&e))? {
            0 => Err(self.wrong(format!(
                "no row of {} has the key \"{}\"; nothing was changed",
                self.full_name(),
                key.escape_ascii()
            ))),
            _ => Ok(()),
        }
    }
}

impl Source for SqliteSource {
    /// Reads in one read transaction, on a new connection to the database now at the path.
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let db = connect(&self.path, self.busy_timeout)?;
        let failed = |e| self.failed(&e);
        let sql = format!("SELECT {} FROM {}", self.column.value_sql(), self.column.table_sql());
        let mut select = db.prepare(&sql).map_err(failed)?;
        // A single statement is its own transaction, from its first row on.
        let mut rows = select.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            self.visit_value(row.get_ref(0).map_err(failed)?, visit)?;
        }
        Ok(())
    }

    fn count(&mut self, key: &[u8]) -> Result<u64> {
        let (table, has_key) = (self.column.table_sql(), self.column.has_key_sql());
        let sql = format!("SELECT count(*) FROM {table} WHERE {has_key}");
        let mut count = self.db.prepare_cached(&sql).map_err(|e| self.failed(&e))?;
        let rows = count.query_row((Text(key), key, integer(key)), |row| row.get::<_, i64>(0));
        Ok(rows.map_err(|e| self.failed(&e))?.unsigned_abs())
    }

    /// An inserted row has only its key; a key that is not UTF-8 becomes a BLOB. A removed key must exist.
    fn apply(&mut self, changes: &[Change<'_>]) -> Result<()> {
        let tx = self.db.unchecked_transaction().map_err(|e| self.failed(&e))?;
        self.apply_in(&tx, changes)?; // An error rolls back.
        tx.commit().map_err(|e| self.failed(&e))
    }

    fn equality(&self) -> Canonical {
        self.column.equality
    }
}

/// Opens an existing file.
fn connect(path: &Path, busy_timeout: Duration) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let db = Connection::open_with_flags(path, flags)?;
        db.busy_timeout(busy_timeout)?;
        Ok(db)
    };
    open().map_err(|e| failed(path, &e))
}

/// The key as an integer, if spelled as SQLite prints one.
fn integer(key: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(key).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == key).then_some(number)
}

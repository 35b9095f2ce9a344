//! A column of a SQLite database as a guard's source; with the feature `sqlite`.
//!
//! # What is a key
//! | stored | key |
//! |---|---|
//! | TEXT | its bytes, UTF-8 (also when the database is in UTF-16) |
//! | BLOB | its bytes |
//! | INTEGER | decimal digits, with a minus sign if it has one |
//! | NULL | none: the row is skipped |
//! | REAL | an error: one number has many spellings |
//!
//! A column of affinity INTEGER or NUMERIC takes `'042'`, `'+42'` and `'42.0'` for 42, and its guard does too
//! ([`Canonical::integers`](super::Canonical::integers)). One of affinity REAL is refused. In a column of no type (affinity BLOB) nothing is
//! converted, and '042' is another key than 42: ask for an integer there as SQLite prints it. `NOCASE` and `RTRIM`, declared for the column,
//! are part of what [`Source::equality`] reports, so that a guard which tells such keys
//! apart is refused; a collation of the application's own is refused, because nobody knows what it takes for the same. A query that
//! names another collation than the column's (`= ? COLLATE NOCASE`) is not covered: build the guard with fold or pad for it.
//!
//! Reading all keys is one read transaction. In rollback-journal mode it keeps writers out as long as it lasts; in WAL mode it does not.
//!
//! # Writers
//! [`Transaction::commit_sqlite`] keeps the order that makes every "no" true:
//!
//! ```
//! use sidebloom::guard::{GuardOptions, SqliteSource, sqlite::rusqlite};
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
//! changes.commit_sqlite(tx)?;
//! # assert!(guard.exact("Freebird")? && !guard.exact("Zombie")?);
//! # Ok(()) }
//! ```

use super::canonical::Canonical;
use super::source::{Change, Source};
use super::transaction::Transaction;
use crate::error::{Error, Result};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, ToSql};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The crate whose connections and transactions these are.
pub use rusqlite;

/// How long a call waits for another connection's lock, unless told otherwise.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A column of a table of a SQLite database. The documentation of the module says what is a key.
pub struct SqliteSource {
    path: PathBuf,
    table: String,
    column: String,
    equality: Canonical,
    affinity: Affinity,
    /// The columns that tell a row from all others, quoted; empty when they are hidden.
    row_id: String,
    busy_timeout: Duration,
    db: Connection,
}

/// What SQLite makes of a text that is stored; <https://sqlite.org/datatype3.html>, section 3.1.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Affinity {
    Text,
    Blob,
    Number,
    Real,
}

/// A bound text of any bytes.
struct Text<'k>(&'k [u8]);

impl ToSql for Text<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

impl SqliteSource {
    /// Opens a database that exists.
    ///
    /// # Errors
    /// [`Error::Database`] for a file that is missing or no database, for a table or column that it does not have, for a view (whose
    /// collation nobody declares), and for a column with a collation of the application's own.
    pub fn open(file: impl AsRef<Path>, table: &str, column: &str) -> Result<Self> {
        let path = file.as_ref().to_path_buf();
        let db = connect(&path, BUSY_TIMEOUT)?;
        let opened = Opened { path: &path, db: &db };
        let (table, without_row_id) = opened.table(table)?;
        let (column, affinity) = opened.column(&table, column)?;
        let equality = opened.equality(&table, &column, affinity)?;
        let row_id = opened.row_id(&table, without_row_id)?;
        Ok(SqliteSource { table, column, equality, affinity, row_id, busy_timeout: BUSY_TIMEOUT, db, path })
    }

    /// How long a call waits for a lock of another connection before it fails. Default 5 seconds.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn busy_timeout(mut self, timeout: Duration) -> Result<Self> {
        self.db.busy_timeout(timeout).map_err(|e| failed(&self.path, &e))?;
        self.busy_timeout = timeout;
        Ok(self)
    }

    fn wrong(&self, what: String) -> Error {
        wrong(&self.path, what)
    }

    /// The rows that have the key `?1`, also given as a BLOB `?2` and, where it is one, as an integer `?3`.
    fn has_key(&self) -> String {
        let column = quoted(&self.column);
        format!("{column} = ?1 OR {column} = ?2 OR {column} = ?3")
    }

    fn key_of(&self, value: ValueRef<'_>, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match value {
            ValueRef::Null => Ok(()),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => visit(bytes),
            ValueRef::Integer(number) => visit(number.to_string().as_bytes()),
            ValueRef::Real(number) => Err(self.wrong(format!(
                "{} has the REAL {number}, which can be spelled in many ways: keys are TEXT, BLOB or INTEGER",
                self.place()
            ))),
        }
    }

    fn place(&self) -> String {
        format!("\"{}\".\"{}\"", self.table, self.column)
    }

    fn apply_in(&self, tx: &rusqlite::Transaction<'_>, changes: &[Change<'_>]) -> Result<()> {
        let (table, column) = (quoted(&self.table), quoted(&self.column));
        let insert = format!("INSERT INTO {table} ({column}) VALUES (?1)");
        let delete = match self.row_id.as_str() {
            "" => None,
            id => Some(format!(
                "DELETE FROM {table} WHERE ({id}) = (SELECT {id} FROM {table} WHERE {} LIMIT 1)",
                self.has_key()
            )),
        };
        for change in changes {
            match change {
                Change::Insert(key) => {
                    let as_text = self.affinity != Affinity::Blob && std::str::from_utf8(key).is_ok();
                    let mut insert = tx.prepare_cached(&insert).map_err(|e| failed(&self.path, &e))?;
                    let inserted = if as_text { insert.execute([Text(key)]) } else { insert.execute([key]) };
                    inserted.map_err(|error| self.not_inserted(&error))?;
                }
                Change::Remove(key) => {
                    let delete = delete.as_ref().ok_or_else(|| {
                        self.wrong(format!("the rows of \"{}\" cannot be told apart: its columns hide rowid, _rowid_ and oid", self.table))
                    })?;
                    let mut delete = tx.prepare_cached(delete).map_err(|e| failed(&self.path, &e))?;
                    let deleted = delete.execute((Text(key), key, integer(key)));
                    if deleted.map_err(|e| failed(&self.path, &e))? == 0 {
                        let key = key.escape_ascii();
                        return Err(self.wrong(format!(
                            "no row of {} has the key \"{key}\"; nothing was changed",
                            self.place()
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    fn not_inserted(&self, error: &rusqlite::Error) -> Error {
        let code = error.sqlite_error().map(|error| error.extended_code);
        if code == Some(rusqlite::ffi::SQLITE_CONSTRAINT_NOTNULL) {
            return self.wrong(format!(
                "{error}: a row of \"{}\" needs more than its key; insert it yourself, within Guard::transaction",
                self.table
            ));
        }
        failed(&self.path, error)
    }
}

impl Source for SqliteSource {
    /// In one read transaction, on a connection of its own: of whatever database is at the path now.
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let db = connect(&self.path, self.busy_timeout)?;
        let failed = |e| failed(&self.path, &e);
        let sql = format!("SELECT {} FROM {}", quoted(&self.column), quoted(&self.table));
        let mut select = db.prepare(&sql).map_err(failed)?;
        // A single statement is a transaction of its own, from its first row on.
        let mut rows = select.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            self.key_of(row.get_ref(0).map_err(failed)?, visit)?;
        }
        Ok(())
    }

    fn count(&mut self, key: &[u8]) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM {} WHERE {}", quoted(&self.table), self.has_key());
        let mut count = self.db.prepare_cached(&sql).map_err(|e| failed(&self.path, &e))?;
        let rows = count.query_row((Text(key), key, integer(key)), |row| row.get::<_, i64>(0));
        Ok(rows.map_err(|e| failed(&self.path, &e))?.unsigned_abs())
    }

    /// A row that is inserted has its key and nothing else; a key that is not UTF-8 becomes a BLOB. A key that is removed must be there.
    fn apply(&mut self, changes: &[Change<'_>]) -> Result<()> {
        let tx = self.db.unchecked_transaction().map_err(|e| failed(&self.path, &e))?;
        self.apply_in(&tx, changes)?; // An error rolls back.
        tx.commit().map_err(|e| failed(&self.path, &e))
    }

    fn equality(&self) -> Canonical {
        self.equality
    }
}

impl Transaction<'_> {
    /// [`commit`](Self::commit) with a transaction of SQLite: its rows are committed between the insertions and the removals.
    ///
    /// # Errors
    /// As [`commit`](Self::commit). After any error before the removals the transaction is rolled back.
    pub fn commit_sqlite(self, mut tx: rusqlite::Transaction<'_>) -> Result<()> {
        // Dropped unused when the guard cannot take the insertions: then its rows must not come.
        tx.set_drop_behavior(rusqlite::DropBehavior::Rollback);
        let path = PathBuf::from(tx.path().unwrap_or_default());
        self.commit(|| tx.commit().map_err(|e| failed(&path, &e)))
    }
}

/// A database that has just been opened.
struct Opened<'o> {
    path: &'o Path,
    db: &'o Connection,
}

impl Opened<'_> {
    /// The table's own name, and whether it is WITHOUT ROWID.
    fn table(&self, table: &str) -> Result<(String, bool)> {
        let found: Option<(String, String, bool)> = self.one(
            "SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main' AND name = ?1 COLLATE NOCASE",
            [table],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        match found {
            Some((_, kind, _)) if kind == "view" => Err(wrong(
                self.path,
                format!(
                    "\"{table}\" is a view, whose collation nobody declares: name the table that has the keys"
                ),
            )),
            Some((name, _, without_row_id)) => Ok((name, without_row_id)),
            None => {
                let all = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
                Err(wrong(self.path, format!("it has no table \"{table}\"; it has {}", self.list(all, [])?)))
            }
        }
    }

    /// The column's own name.
    fn column(&self, table: &str, column: &str) -> Result<(String, Affinity)> {
        let found: Option<(String, String)> = self.one(
            "SELECT name, upper(type) FROM pragma_table_xinfo(?1) WHERE name = ?2 COLLATE NOCASE",
            [table, column],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let Some((name, declared)) = found else {
            let all = self.list("SELECT name FROM pragma_table_xinfo(?1)", [table])?;
            return Err(wrong(
                self.path,
                format!("its table \"{table}\" has no column \"{column}\"; it has {all}"),
            ));
        };
        let says = |words: &[&str]| words.iter().any(|word| declared.contains(word));
        let affinity = match () {
            () if says(&["INT"]) => Affinity::Number,
            () if says(&["CHAR", "CLOB", "TEXT"]) => Affinity::Text,
            () if declared.is_empty() || says(&["BLOB"]) => Affinity::Blob,
            () if says(&["REAL", "FLOA", "DOUB"]) => Affinity::Real,
            () => Affinity::Number,
        };
        if affinity == Affinity::Real {
            return Err(wrong(
                self.path,
                format!(
                    "the column \"{table}\".\"{name}\" has the type {declared}, and one REAL can be spelled in many ways: \
                     name a column of texts, BLOBs or integers"
                ),
            ));
        }
        Ok((name, affinity))
    }

    /// From the type and the collation that the column declares.
    fn equality(&self, table: &str, column: &str, affinity: Affinity) -> Result<Canonical> {
        let equality = match affinity {
            Affinity::Number => Canonical::EXACT.integers(),
            Affinity::Text | Affinity::Blob | Affinity::Real => Canonical::EXACT,
        };
        let metadata =
            self.db.column_metadata(None::<&str>, table, column).map_err(|e| failed(self.path, &e))?;
        let collation = metadata.1.map_or(String::new(), |name| name.to_string_lossy().to_uppercase());
        match collation.as_str() {
            "" | "BINARY" => Ok(equality),
            "NOCASE" => Ok(equality.fold_case()),
            "RTRIM" => Ok(equality.trim_padding()),
            other => Err(wrong(
                self.path,
                format!(
                    "the column \"{table}\".\"{column}\" has the collation {other}: what it takes for the same is not known; \
                     name a column with BINARY, NOCASE or RTRIM"
                ),
            )),
        }
    }

    fn row_id(&self, table: &str, without_row_id: bool) -> Result<String> {
        if without_row_id {
            let all = "SELECT '\"' || replace(name, '\"', '\"\"') || '\"' FROM pragma_table_xinfo(?1) WHERE pk > 0 ORDER BY pk";
            return self.list(all, [table]);
        }
        let free = "SELECT value FROM json_each('[\"rowid\", \"_rowid_\", \"oid\"]') \
                    WHERE value NOT IN (SELECT lower(name) FROM pragma_table_xinfo(?1)) LIMIT 1";
        Ok(self.one(free, [table], |row| row.get(0))?.unwrap_or_default())
    }

    fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.db.query_row(sql, params, read).optional().map_err(|e| failed(self.path, &e))
    }

    /// Names with commas between them.
    fn list(&self, sql: &str, params: impl Params) -> Result<String> {
        let read = || -> rusqlite::Result<Vec<String>> {
            self.db.prepare(sql)?.query_map(params, |row| row.get(0))?.collect()
        };
        let names = read().map_err(|e| failed(self.path, &e))?;
        Ok(if names.is_empty() { "none".to_owned() } else { names.join(", ") })
    }
}

/// Opens a file that exists.
fn connect(path: &Path, busy_timeout: Duration) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let db = Connection::open_with_flags(path, flags)?;
        db.busy_timeout(busy_timeout)?;
        Ok(db)
    };
    open().map_err(|e| failed(path, &e))
}

/// The key as an integer, if it is spelled as SQLite prints one.
fn integer(key: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(key).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == key).then_some(number)
}

/// An identifier as SQL takes it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn wrong(path: &Path, what: String) -> Error {
    Error::Database { name: path.display().to_string(), what }
}

fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    wrong(path, error.to_string())
}

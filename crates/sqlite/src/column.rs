//! The schema of the column with the keys.

use crate::error::{failed, wrong};
use rusqlite::{Connection, OptionalExtension, Params};
use sidebloom::Result;
use sidebloom::guard::Canonical;
use std::path::Path;

/// A column of a table.
pub struct Column {
    pub table: String,
    pub name: String,
    pub affinity: Affinity,
    /// Which keys the column treats as equal.
    pub equality: Canonical,
    /// The columns that identify a row, quoted and with the table's name; `None` if other columns hide them.
    pub row_id: Option<String>,
}

/// How SQLite converts stored text; <https://sqlite.org/datatype3.html>, section 3.1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Affinity {
    Text,
    Blob,
    Number,
    Real,
}

impl Column {
    /// Looks a column up in the schema of the database at `path`.
    pub fn find(path: &Path, db: &Connection, table: &str, column: &str) -> Result<Self> {
        let schema = Schema { path, db };
        let (table, without_row_id) = schema.table(table)?;
        let (name, affinity) = schema.column(&table, column)?;
        let equality = schema.equality(&table, &name, affinity)?;
        let row_id = schema.row_id(&table, without_row_id)?;
        Ok(Column { table, name, affinity, equality, row_id })
    }

    pub fn table_sql(&self) -> String {
        quoted(&self.table)
    }

    /// The column, in a query of the table. With the table's name: SQLite takes a quoted name alone for a
    /// string if the column no longer exists, and every row would then have the column's name as its key.
    pub fn value_sql(&self) -> String {
        format!("{}.{}", quoted(&self.table), quoted(&self.name))
    }

    pub fn name_sql(&self) -> String {
        quoted(&self.name)
    }

    /// Condition for rows with the key `?1`, also bound as a BLOB `?2` and, if it is one, an integer `?3`.
    pub fn has_key_sql(&self) -> String {
        let column = self.value_sql();
        format!("{column} = ?1 OR {column} = ?2 OR {column} = ?3")
    }
}

/// Queries of the schema.
struct Schema<'s> {
    path: &'s Path,
    db: &'s Connection,
}

impl Schema<'_> {
    /// The table's name as declared, and whether it is WITHOUT ROWID.
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
                    "\"{table}\" is a view, which declares no collation: name the table that has the keys"
                ),
            )),
            Some((name, _, without_row_id)) => Ok((name, without_row_id)),
            None => {
                let all = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
                Err(wrong(
                    self.path,
                    format!("no table \"{table}\"; the tables are: {}", self.list(all, [])?),
                ))
            }
        }
    }

    /// The column's name as declared.
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
                format!("the table \"{table}\" has no column \"{column}\"; its columns are: {all}"),
            ));
        };
        let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
        let affinity = match () {
            () if has(&["INT"]) => Affinity::Number,
            () if has(&["CHAR", "CLOB", "TEXT"]) => Affinity::Text,
            () if declared.is_empty() || has(&["BLOB"]) => Affinity::Blob,
            () if has(&["REAL", "FLOA", "DOUB"]) => Affinity::Real,
            () => Affinity::Number,
        };
        if affinity == Affinity::Real {
            return Err(wrong(
                self.path,
                format!(
                    "the column \"{table}\".\"{name}\" has the type {declared}, and one REAL has many spellings: \
                     name a column of TEXT, BLOB or INTEGER"
                ),
            ));
        }
        Ok((name, affinity))
    }

    /// From the column's declared type and collation.
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
                    "the column \"{table}\".\"{column}\" has the collation {other}, and the guard cannot know which keys it treats as equal: \
                     name a column with BINARY, NOCASE or RTRIM"
                ),
            )),
        }
    }

    fn row_id(&self, table: &str, without_row_id: bool) -> Result<Option<String>> {
        if without_row_id {
            let all = "SELECT ?2 || '.\"' || replace(name, '\"', '\"\"') || '\"' FROM pragma_table_xinfo(?1) WHERE pk > 0 ORDER BY pk";
            return self.list(all, [table, &*quoted(table)]).map(Some);
        }
        let free = "SELECT value FROM json_each('[\"rowid\", \"_rowid_\", \"oid\"]') \
                    WHERE value NOT IN (SELECT lower(name) FROM pragma_table_xinfo(?1)) LIMIT 1";
        self.one(free, [table], |row| row.get(0))
    }

    fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.db.query_row(sql, params, read).optional().map_err(|e| failed(self.path, &e))
    }

    /// Names, separated by commas.
    fn list(&self, sql: &str, params: impl Params) -> Result<String> {
        let read = || -> rusqlite::Result<Vec<String>> {
            self.db.prepare(sql)?.query_map(params, |row| row.get(0))?.collect()
        };
        let names = read().map_err(|e| failed(self.path, &e))?;
        Ok(if names.is_empty() { "none".to_owned() } else { names.join(", ") })
    }
}

/// An identifier in SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

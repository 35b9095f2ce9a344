//! The column that holds the keys, and what its type means for them.

use crate::location::locate;
use postgres::Client;
use sidebloom::guard::Canonical;

/// A column of a table, with its current names.
#[derive(Debug, Clone)]
pub struct Table {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    pub column: String,
    /// The column's number, which a rename does not change.
    pub number: i16,
    /// How the names of everything installed for a follower of this column begin.
    pub prefix: String,
    /// The schema where it is installed.
    pub home: String,
    /// The type that a key given as text is cast to.
    pub type_name: String,
    /// Whether keys are the bytes of a `bytea`, rather than text.
    pub is_bytes: bool,
    pub equality: Canonical,
}

/// Why a column cannot be guarded.
pub enum TableError {
    Database(postgres::Error),
    /// In words.
    Unusable(String),
}

impl From<postgres::Error> for TableError {
    fn from(error: postgres::Error) -> Self {
        TableError::Database(error)
    }
}

/// The name of the keys' type beneath all domains, and its kind: `b` base, `e` enum.
const COLUMN: &str = "
    WITH RECURSIVE type AS (
        SELECT t.oid, t.typname, t.typtype, t.typbasetype FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
        WHERE a.attrelid = $1 AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL
        SELECT t.oid, t.typname, t.typtype, t.typbasetype FROM type JOIN pg_type t ON t.oid = type.typbasetype
        WHERE type.typtype = 'd')
    SELECT typname::text, typtype::text, format_type(oid, NULL),
        (SELECT a.attnum FROM pg_attribute a WHERE a.attrelid = $1 AND a.attname = $2),
        (SELECT c.collname::text FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation
         WHERE a.attrelid = $1 AND a.attname = $2 AND NOT c.collisdeterministic)
    FROM type WHERE typtype <> 'd'";

impl Table {
    /// Finds `TABLE` on the search path, or `SCHEMA.TABLE`; the names are those of the catalog, without quotes.
    pub fn find(client: &mut Client, table: &str, column: &str) -> Result<Self, TableError> {
        let (schema, name) = match table.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, table),
        };
        let (oid, schema) = find_table(client, schema, name, table)?;
        let Some(row) = client.query_opt(COLUMN, &[&oid, &column])? else {
            let all = client.query_one(
                "SELECT coalesce(string_agg(attname::text, ', ' ORDER BY attnum), 'none') FROM pg_attribute \
                 WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped",
                &[&oid],
            )?;
            let all: &str = all.get(0);
            return Err(TableError::Unusable(format!(
                "the table \"{table}\" has no column \"{column}\"; its columns are: {all}"
            )));
        };
        if let Some(collation) = row.get::<_, Option<&str>>(4) {
            return Err(TableError::Unusable(format!(
                "the column \"{column}\" has the collation \"{collation}\", which is not deterministic, and the guard cannot know \
                 which keys it treats as equal: add a column with the keys in one spelling, and ask the guard for that spelling"
            )));
        }
        let base: &str = row.get(0);
        let (equality, type_name) = key_type(column, base, row.get(1), row.get(2))?;
        let number: i16 = row.get(3);
        let (home, prefix) = locate(client, oid, number, [&schema, name, column])?;
        Ok(Table {
            oid,
            schema,
            name: name.to_owned(),
            column: column.to_owned(),
            number,
            prefix,
            home,
            type_name: type_name.to_owned(),
            is_bytes: base == "bytea",
            equality,
        })
    }

    /// The table's name in SQL.
    pub fn sql(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.name))
    }

    pub fn column_sql(&self) -> String {
        quoted(&self.column)
    }

    /// A row's key, given the column's name in that row.
    pub fn key_sql(&self, column: &str) -> String {
        if self.is_bytes { column.to_owned() } else { format!("{column}::text") }
    }

    /// The column cast to the type beneath its domains: a domain over an enum has no operators of its own.
    pub fn value_sql(&self, column: &str) -> String {
        format!("{column}::{}", self.type_name)
    }

    /// A parameter cast to that type.
    pub fn cast_sql(&self, parameter: &str) -> String {
        match self.is_bytes {
            true => format!("{parameter}::bytea"),
            false => format!("{parameter}::text::{}", self.type_name),
        }
    }
}

/// The number and the schema of a table that can be guarded. `given` is its name as the caller wrote it.
fn find_table(
    client: &mut Client,
    schema: Option<&str>,
    name: &str,
    given: &str,
) -> Result<(u32, String), TableError> {
    let found = client.query_opt(
        "SELECT c.oid, n.nspname::text, c.relkind::text, EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid)
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relname = $1 AND CASE WHEN $2::text IS NULL THEN pg_table_is_visible(c.oid) ELSE n.nspname = $2 END
         AND c.relkind IN ('r', 'p', 'v', 'm', 'f')",
        &[&name, &schema],
    )?;
    let unusable = |what| Err(TableError::Unusable(what));
    let Some(row) = found else {
        return unusable(format!(
            "no table \"{given}\" (names are case-sensitive; write SCHEMA.TABLE for a schema that is not on the search path)"
        ));
    };
    match (row.get::<_, &str>(2), row.get::<_, bool>(3)) {
        ("p", _) | ("r", false) => Ok((row.get(0), row.get(1))),
        ("r", true) => unusable(format!(
            "other tables inherit from \"{given}\", and their rows would not be followed: guard each table separately"
        )),
        _ => unusable(format!("\"{given}\" is not a table: name the table that has the keys")),
    }
}

/// Which keys the type treats as equal, and what a key given as text is cast to. `formatted` is the type as SQL writes it.
fn key_type<'t>(
    column: &str,
    base: &str,
    kind: &str,
    formatted: &'t str,
) -> Result<(Canonical, &'t str), TableError> {
    const KEYS: &str = "keys must be text, varchar, char, citext, bytea, an integer type, uuid or an enum";
    match (base, kind) {
        ("text" | "varchar" | "bytea", "b") | (_, "e") => Ok((Canonical::EXACT, formatted)),
        ("int2" | "int4" | "int8", "b") => Ok((Canonical::EXACT.integers(), formatted)),
        ("uuid", "b") => Ok((Canonical::EXACT.uuids(), formatted)),
        // `character` alone means one character.
        ("bpchar", "b") => Ok((Canonical::EXACT.trim_padding(), "bpchar")),
        ("citext", "b") => Ok((Canonical::EXACT.fold_case(), formatted)),
        ("name", "b") => Err(TableError::Unusable(format!(
            "the column \"{column}\" is of type name, which truncates longer texts: {KEYS}"
        ))),
        _ => Err(TableError::Unusable(format!(
            "the column \"{column}\" is of type {formatted}, whose values have more than one spelling: {KEYS}"
        ))),
    }
}

/// An identifier in SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

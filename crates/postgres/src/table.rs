//! The column with the keys, and the properties of its type.

use crate::connection::SearchPath;
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
    /// The prefix of everything installed for a follower of this column.
    pub prefix: String,
    /// The schema where it is installed.
    pub home: String,
    /// The type under all domains, with its schema.
    pub type_name: String,
    pub kind: Kind,
    /// The operator that compares two values of that type.
    pub equals: String,
    pub equality: Canonical,
}

/// How values of the key's type become text, and back. Casts are avoided if the owner of the type can define
/// them: the function would run as the follower's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Keys are the bytes of a `bytea`, rather than text.
    Bytes,
    /// A type that only superusers can create, or a domain over one.
    Base,
    Enum,
}

/// Why a column cannot be guarded or followed.
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

/// The name of the keys' type under all domains, and its kind: `b` base, `e` enum.
const COLUMN: &str = "
    WITH RECURSIVE type AS (
        SELECT t.oid, t.typname, t.typtype, t.typbasetype, t.typnamespace FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
        WHERE a.attrelid = $1 AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL
        SELECT t.oid, t.typname, t.typtype, t.typbasetype, t.typnamespace FROM type JOIN pg_type t ON t.oid = type.typbasetype
        WHERE type.typtype = 'd')
    SELECT typname::text, typtype::text, format_type(oid, NULL),
        (SELECT a.attnum FROM pg_attribute a WHERE a.attrelid = $1 AND a.attname = $2),
        (SELECT c.collname::text FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation
         WHERE a.attrelid = $1 AND a.attname = $2 AND NOT c.collisdeterministic),
        (SELECT n.nspname::text FROM pg_namespace n WHERE n.oid = typnamespace)
    FROM type WHERE typtype <> 'd'";

impl Table {
    /// Finds `TABLE` on the search path, or `SCHEMA.TABLE`, by the catalog's names, without quotes.
    pub fn find(
        client: &mut Client,
        path: &SearchPath,
        table: &str,
        column: &str,
    ) -> Result<Self, TableError> {
        let (schemas, name) = match table.split_once('.') {
            Some((schema, name)) => (&vec![schema.to_owned()], name),
            None => (&path.schemas, table),
        };
        let (oid, schema) = find_table(client, schemas, name, table)?;
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
        let equality = key_type(column, base, row.get(1), row.get(2))?;
        let type_schema: &str = row.get(5);
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
            type_name: format!("{}.{}", quoted(type_schema), quoted(base)),
            kind: match (base, row.get(1)) {
                (_, "e") => Kind::Enum,
                ("bytea", _) => Kind::Bytes,
                _ => Kind::Base,
            },
            // citext belongs to an extension, which has its operators in the same schema.
            equals: match base {
                "citext" => format!("OPERATOR({}.=)", quoted(type_schema)),
                _ => "OPERATOR(pg_catalog.=)".to_owned(),
            },
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

    /// A row's key, given the column's name in that row. Must not be NULL.
    pub fn key_sql(&self, column: &str) -> String {
        match self.kind {
            Kind::Bytes => column.to_owned(),
            Kind::Base => format!("{column}::pg_catalog.text"),
            // Its output function's text; never NULL here.
            Kind::Enum => format!("pg_catalog.concat({column})"),
        }
    }

    /// The column cast to the type under its domains: a domain over an enum has no operators of its own.
    pub fn value_sql(&self, column: &str) -> String {
        format!("{column}::{}", self.type_name)
    }

    /// A parameter cast to that type.
    pub fn cast_sql(&self, parameter: &str) -> String {
        match self.kind {
            Kind::Bytes | Kind::Enum => format!("{parameter}::{}", self.type_name),
            Kind::Base => format!("{parameter}::pg_catalog.text::{}", self.type_name),
        }
    }
}

/// The number and the schema of a table that can be guarded. `given` is the caller's name for it.
fn find_table(
    client: &mut Client,
    schemas: &[String],
    name: &str,
    given: &str,
) -> Result<(u32, String), TableError> {
    let found = client.query_opt(
        "SELECT c.oid, n.nspname::text, c.relkind::text, EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid)
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relname = $1 AND n.nspname = ANY($2) ORDER BY array_position($2::text[], n.nspname::text) LIMIT 1",
        &[&name, &schemas],
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

/// Which keys the type treats as equal. `formatted` is the type's SQL name.
fn key_type(column: &str, base: &str, kind: &str, formatted: &str) -> Result<Canonical, TableError> {
    const KEYS: &str = "keys must be text, varchar, char, citext, bytea, an integer type, uuid or an enum";
    match (base, kind) {
        ("text" | "varchar" | "bytea", "b") | (_, "e") => Ok(Canonical::EXACT),
        ("int2" | "int4" | "int8", "b") => Ok(Canonical::EXACT.integers()),
        ("uuid", "b") => Ok(Canonical::EXACT.uuids()),
        ("bpchar", "b") => Ok(Canonical::EXACT.trim_padding()),
        ("citext", "b") => Ok(Canonical::EXACT.fold_case()),
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

//! Which column of which table, and what its type means for keys.

use super::place::place_of;
use crate::guard::canonical::Canonical;
use postgres::Client;

/// A column of a table, as the server has it now.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    pub column: String,
    /// The number of the column, which a rename leaves alone.
    pub number: i16,
    /// The name that all that is made for a follower of this column begins with, and the schema that it is in.
    pub prefix: String,
    pub home: String,
    /// What a key given as text is cast to.
    pub type_name: String,
    /// Keys are the bytes of a `bytea`, and otherwise those of a text.
    pub is_bytes: bool,
    pub equality: Canonical,
}

/// Why there is no such column.
pub(super) enum Unfit {
    Database(postgres::Error),
    What(String),
}

impl From<postgres::Error> for Unfit {
    fn from(error: postgres::Error) -> Self {
        Unfit::Database(error)
    }
}

/// What the type of keys is called, beneath all domains, and its kind: `b` base, `e` enum.
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
    /// Finds `TABLE` on the search path, or `SCHEMA.TABLE`; names as they are in the catalogue, without quotes.
    pub fn find(client: &mut Client, table: &str, column: &str) -> Result<Self, Unfit> {
        let (schema, name) = match table.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, table),
        };
        let found = client.query_opt(
            "SELECT c.oid, n.nspname::text, c.relkind::text, EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid)
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE c.relname = $1 AND CASE WHEN $2::text IS NULL THEN pg_table_is_visible(c.oid) ELSE n.nspname = $2 END
             AND c.relkind IN ('r', 'p', 'v', 'm', 'f')",
            &[&name, &schema],
        )?;
        let Some(row) = found else {
            return Err(Unfit::What(format!(
                "there is no table \"{table}\" (names are taken as they are: \
                case counts, and a schema other than those of the search path stands before a dot)"
            )));
        };
        let (oid, schema): (u32, String) = (row.get(0), row.get(1));
        match (row.get::<_, &str>(2), row.get::<_, bool>(3)) {
            ("p", _) | ("r", false) => {}
            ("r", true) => {
                return Err(Unfit::What(format!(
                    "\"{table}\" has tables that inherit from it, whose rows are not followed: name each by itself"
                )));
            }
            _ => {
                return Err(Unfit::What(format!(
                    "\"{table}\" is not a table: name the table that has the keys"
                )));
            }
        }
        let Some(kind) = client.query_opt(COLUMN, &[&oid, &column])? else {
            let all = client.query_one(
                "SELECT coalesce(string_agg(attname::text, ', ' ORDER BY attnum), 'none') FROM pg_attribute \
                 WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped",
                &[&oid],
            )?;
            let all: &str = all.get(0);
            return Err(Unfit::What(format!(
                "the table \"{table}\" has no column \"{column}\"; it has {all}"
            )));
        };
        let number: i16 = kind.get(3);
        let (base, kind, formatted, loose) = (
            kind.get::<_, &str>(0),
            kind.get::<_, &str>(1),
            kind.get::<_, &str>(2),
            kind.get::<_, Option<&str>>(4),
        );
        if let Some(collation) = loose {
            return Err(Unfit::What(format!(
                "the column \"{column}\" has the collation \"{collation}\", which is not deterministic: what it takes for the same is not \
                 known; add a column with the keys in one spelling, and ask the guard with that spelling"
            )));
        }
        let (equality, type_name) = match (base, kind) {
            ("text" | "varchar" | "bytea", "b") | (_, "e") => (Canonical::EXACT, formatted.to_owned()),
            ("int2" | "int4" | "int8", "b") => (Canonical::EXACT.integers(), formatted.to_owned()),
            ("uuid", "b") => (Canonical::EXACT.uuids(), formatted.to_owned()),
            // `character` would mean one character.
            ("bpchar", "b") => (Canonical::EXACT.trim_padding(), "bpchar".to_owned()),
            ("citext", "b") => (Canonical::EXACT.fold_case(), formatted.to_owned()),
            ("name", "b") => {
                return Err(Unfit::What(format!(
                    "the column \"{column}\" is of type name, which cuts a longer text off to compare it: keys are text, varchar, char, \
                     citext, bytea, integers, uuid or an enum"
                )));
            }
            _ => {
                return Err(Unfit::What(format!(
                    "the column \"{column}\" is of type {formatted}, whose values can be spelled in more than one way: keys are text, varchar, \
                     char, citext, bytea, integers, uuid or an enum"
                )));
            }
        };
        let (home, prefix) = place_of(client, oid, number, [&schema, name, column])?;
        Ok(Table {
            oid,
            schema,
            name: name.to_owned(),
            column: column.to_owned(),
            number,
            prefix,
            home,
            type_name,
            is_bytes: base == "bytea",
            equality,
        })
    }

    /// Its name in SQL.
    pub fn sql(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.name))
    }

    pub fn column_sql(&self) -> String {
        quoted(&self.column)
    }

    /// The key of a row, given what its column is called there.
    pub fn key_sql(&self, column: &str) -> String {
        if self.is_bytes { column.to_owned() } else { format!("{column}::text") }
    }

    /// The column as the type beneath its domains: a domain over an enum has no operators of its own.
    pub fn value_sql(&self, column: &str) -> String {
        format!("{column}::{}", self.type_name)
    }

    /// A parameter as that type.
    pub fn cast_sql(&self, parameter: &str) -> String {
        match self.is_bytes {
            true => format!("{parameter}::bytea"),
            false => format!("{parameter}::text::{}", self.type_name),
        }
    }
}

/// An identifier as SQL takes it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

//! What of a follower's triggers is in the catalogue: found by the table's and the column's numbers, which no rename changes.

use super::table::Table;
use postgres::{Client, Error, GenericClient};

/// The schema that the triggers' function is in now; `None` without triggers.
pub(super) fn home(client: &mut Client, table: &Table) -> Result<Option<String>, Error> {
    let home = "SELECT n.nspname::text FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
                JOIN pg_namespace n ON n.oid = p.pronamespace WHERE t.tgrelid = $1 AND p.proname = $2 LIMIT 1";
    Ok(client.query_opt(home, &[&table.oid, &table.prefix])?.map(|row| row.get(0)))
}

/// The catalogue's state at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Catalogue {
    /// Why changes get past the outbox, if they do.
    pub gap: Option<String>,
    /// Changes whenever changes may have got past it: with a trigger that is disabled, enabled or made anew, with a partition that comes
    /// or goes, and with the labels of an enum, which rename the keys of rows that nobody touches.
    pub version: String,
    /// What schema, table and column are called now; `None` when one of them has gone.
    pub names: Option<[String; 3]>,
}

/// A trigger's row changes its `xmin` with every change. Row triggers are cloned to partitions, where those before version 15 are made
/// to fire at the origin only.
const CATALOGUE: &str = "
    WITH RECURSIVE tree AS (
        SELECT $1::oid AS relid
        UNION SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.relid),
    mine AS (
        SELECT t.tgrelid, t.oid, t.xmin::text AS version, t.tgenabled, t.tgname, t.tgattr
        FROM tree JOIN pg_trigger t ON t.tgrelid = tree.relid
        JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE p.proname = $2 AND n.nspname = $3),
    type AS (
        SELECT atttypid AS oid FROM pg_attribute WHERE attrelid = $1 AND attnum = $4
        UNION SELECT t.typbasetype FROM type JOIN pg_type t ON t.oid = type.oid WHERE t.typtype = 'd')
    SELECT
        (SELECT count(*) FROM mine WHERE tgrelid = $1 AND tgenabled = 'A'
         AND (tgname <> $2 || '_rows' OR tgattr[0] = $4)) = 3,
        (SELECT min(tree.relid::regclass::text) FROM tree WHERE tree.relid <> $1
         AND (SELECT count(*) FROM mine WHERE tgrelid = tree.relid AND tgenabled IN ('A', 'O')) < 2),
        (SELECT md5(string_agg(concat_ws(' ', tree.relid, mine.oid, mine.version, mine.tgenabled), ','
                               ORDER BY tree.relid, mine.oid))
         FROM tree LEFT JOIN mine ON mine.tgrelid = tree.relid)
        || coalesce((SELECT md5(string_agg(concat_ws(' ', e.oid, e.enumlabel), ',' ORDER BY e.oid))
                     FROM type JOIN pg_enum e ON e.enumtypid = type.oid), ''),
        names.*
    FROM (SELECT) AS always LEFT JOIN (
        SELECT n.nspname::text, c.relname::text, a.attname::text
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = $4 AND NOT a.attisdropped
        WHERE c.oid = $1) AS names ON true";

/// Looks at the triggers of a table and of all its partitions.
pub(super) fn look(client: &mut impl GenericClient, table: &Table) -> Result<Catalogue, Error> {
    let row = client.query_one(CATALOGUE, &[&table.oid, &table.prefix, &table.home, &table.number])?;
    let names: [Option<String>; 3] = [row.get(3), row.get(4), row.get(5)];
    let names = match names {
        [Some(schema), Some(name), Some(column)] => Some([schema, name, column]),
        _ => None,
    };
    let has_triggers: bool = row.get(0);
    let bare_part: Option<String> = row.get(1);
    let gap = match (&names, has_triggers, bare_part) {
        (None, ..) => Some(format!("\"{}\".\"{}\" has been dropped", table.name, table.column)),
        (_, false, _) => Some(format!("the triggers on \"{}\" are missing or disabled", table.name)),
        (_, true, Some(part)) => {
            Some(format!("the triggers on {part}, a part of \"{}\", are missing or disabled", table.name))
        }
        (_, true, None) => None,
    };
    Ok(Catalogue { gap, version: row.get(2), names })
}

/// What is installed for a column that is, or was at that time, called so: the schemas and prefixes. `schema` may be left open.
pub(super) fn find(
    client: &mut Client,
    schema: Option<&str>,
    table: &str,
    column: &str,
) -> Result<Vec<(String, String)>, Error> {
    let rows = client.query(
        "SELECT DISTINCT n.nspname::text, p.proname::text
         FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
         LEFT JOIN pg_trigger t ON t.tgfoid = p.oid AND t.tgname = p.proname || '_rows'
         LEFT JOIN pg_class c ON c.oid = t.tgrelid LEFT JOIN pg_namespace tn ON tn.oid = c.relnamespace
         LEFT JOIN pg_attribute a ON a.attrelid = t.tgrelid AND a.attnum = t.tgattr[0]
         WHERE p.proname ~ '^sidebloom_[0-9a-f]{16}$' AND (
            c.relname = $2 AND a.attname = $3 AND coalesce(tn.nspname = $1::text, true)
            AND NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_trigger whole ON whole.tgrelid = i.inhparent
                            WHERE i.inhrelid = t.tgrelid AND whole.tgfoid = t.tgfoid)
            OR right(obj_description(p.oid, 'pg_proc'), length($4::text)) = $4::text)",
        &[&schema, &table, &column, &described(schema, table, column)],
    )?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// How a function's comment ends: with the names that the column had when it was made.
pub(super) fn described(schema: Option<&str>, table: &str, column: &str) -> String {
    use super::table::quoted;
    let schema = schema.map(quoted).unwrap_or_default();
    format!("{schema}.{}.{}", quoted(table), quoted(column))
}

//! A follower's triggers in the catalog, found by the numbers of table and column, which survive renames.

use crate::table::{Table, quoted};
use crate::trust;
use postgres::{Client, Error, GenericClient};

/// The schema that now has the triggers' function; `None` without triggers. A role that may create triggers
/// on the table has its own functions.
pub fn home(client: &mut Client, table: &Table) -> Result<Option<String>, Error> {
    let home = "SELECT n.nspname::text FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
                JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_class c ON c.oid = t.tgrelid
                WHERE t.tgrelid = $1 AND p.proname = $2 AND pg_has_role(p.proowner, c.relowner, 'MEMBER')
                ORDER BY t.oid LIMIT 1";
    Ok(client.query_opt(home, &[&table.oid, &table.prefix])?.map(|row| row.get(0)))
}

/// A snapshot of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    /// Why changes bypass the outbox, or others write to it, and what to do about it.
    pub gap: Option<String>,
    /// Changes whenever changes may have bypassed the outbox: when a trigger is disabled, enabled or
    /// recreated, a partition is added or removed, or an enum label is renamed, which renames keys without
    /// touching their rows.
    pub version: String,
    /// The names of schema, table and column now; `None` when one of them was dropped.
    pub names: Option<[String; 3]>,
}

/// Every change to a trigger changes its row's `xmin`. Row triggers are cloned to partitions; before version
/// 15, the clones fire only in the replication roles `origin` and `local`.
const CATALOG: &str = "
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

/// Inspects the triggers of a table and of all its partitions.
pub fn look(client: &mut impl GenericClient, table: &Table) -> Result<Catalog, Error> {
    let row = client.query_one(CATALOG, &[&table.oid, &table.prefix, &table.home, &table.number])?;
    let names: [Option<String>; 3] = [row.get(3), row.get(4), row.get(5)];
    let names = match names {
        [Some(schema), Some(name), Some(column)] => Some([schema, name, column]),
        _ => None,
    };
    let has_triggers: bool = row.get(0);
    let bare_partition: Option<String> = row.get(1);
    let version = row.get(2);
    let enable = "enable them (ENABLE ALWAYS TRIGGER), or restart the follower, which installs new ones";
    let gap = match (&names, has_triggers, bare_partition) {
        (None, ..) => Some(format!("\"{}\".\"{}\" has been dropped: {enable}", table.name, table.column)),
        (_, false, _) => Some(format!("the triggers on \"{}\" are missing or disabled: {enable}", table.name)),
        (_, true, Some(partition)) => Some(format!(
            "the triggers on {partition}, a partition of \"{}\", are missing or disabled: {enable}",
            table.name
        )),
        (_, true, None) => trust::fault(client, table)?.map(|fault| {
            format!(
                "the triggers on \"{}\" cannot be trusted: {fault}; restart the follower as the table's owner, which replaces them",
                table.name
            )
        }),
    };
    Ok(Catalog { gap, version, names })
}

/// The schemas and prefixes of what is installed for a column that has this name, or had it when installed.
/// `schema` is optional.
pub fn find(
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
         WHERE p.proname ~ '^sidebloom_[0-9a-f]{16}$' AND pg_has_role(current_user, p.proowner, 'MEMBER')
         AND NOT pg_is_other_temp_schema(n.oid) AND coalesce(pg_has_role(p.proowner, c.relowner, 'MEMBER'), true) AND (
            c.relname = $2 AND a.attname = $3 AND coalesce(tn.nspname = $1::text, true)
            AND NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_trigger whole ON whole.tgrelid = i.inhparent
                            WHERE i.inhrelid = t.tgrelid AND whole.tgfoid = t.tgfoid)
            OR right(obj_description(p.oid, 'pg_proc'), length($4::text)) = $4::text)",
        &[&schema, &table, &column, &described(schema, table, column)],
    )?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// The end of a function's comment: the column's names at installation.
pub fn described(schema: Option<&str>, table: &str, column: &str) -> String {
    let schema = schema.map(quoted).unwrap_or_default();
    format!("{schema}.{}.{}", quoted(table), quoted(column))
}

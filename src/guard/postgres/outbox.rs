//! The outbox: what the triggers write, and what a follower takes out of it.

use super::installed;
use super::note::{Ids, Note};
use super::table::{Table, quoted};
use crate::hash::random_u64;
use postgres::types::{FromSql, Type};
use postgres::{Client, Error, GenericClient, Transaction};

/// Changes taken at once.
const BATCH: i64 = 4096;

/// Changes that could be seen at one moment, in the order of their ids.
pub(super) struct Batch {
    pub token: u64,
    pub changes: Vec<(Op, Vec<u8>)>,
    pub ids: Ids,
    /// Age of the oldest change, in seconds.
    pub lag_seconds: f64,
}

/// What happened to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Insert,
    Remove,
    /// All rows have gone.
    Truncate,
}

/// A field's bytes, whatever its type.
struct Raw(Vec<u8>);

impl<'r> FromSql<'r> for Raw {
    fn from_sql(_: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Raw(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn outbox(table: &Table) -> String {
    format!("{}.{}", quoted(&table.home), quoted(&format!("{}_outbox", table.prefix)))
}

fn follower(table: &Table) -> String {
    format!("{}.{}", quoted(&table.home), quoted(&format!("{}_follower", table.prefix)))
}

fn function(table: &Table) -> String {
    format!("{}.{}", quoted(&table.home), quoted(&table.prefix))
}

/// What the triggers notify.
pub(super) fn channel(table: &Table) -> String {
    table.prefix.clone()
}

/// Creates the outbox and the triggers, unless all of it is there. A guard that has followed before is refreshed afterwards: changes
/// may have got past.
pub(super) fn install(client: &mut Client, table: &Table) -> Result<(), Error> {
    let mut tx = client.transaction()?;
    if is_installed(&mut tx, table)? {
        return Ok(());
    }
    let (prefix, on, column) = (&table.prefix, table.sql(), table.column_sql());
    let (outbox, follower, function) = (outbox(table), follower(table), function(table));
    let [new, old] = ["NEW", "OLD"].map(|row| table.key_sql(&format!("{row}.{column}")));
    let [new_value, old_value] = ["NEW", "OLD"].map(|row| table.value_sql(&format!("{row}.{column}")));
    let renamed = table.key_sql("($1).%I");
    let [home, name] = [&table.home, &table.column].map(|name| literal(name));
    let comment = literal(&format!(
        "sidebloom guard: writes the changes of {}",
        installed::described(Some(&table.schema), &table.name, &table.column)
    ));
    let key = if table.is_bytes { "bytea" } else { "text" };
    let [rows, update, truncate] =
        ["rows", "update", "truncate"].map(|name| quoted(&format!("{prefix}_{name}")));
    tx.batch_execute(&format!(
        "CREATE TABLE IF NOT EXISTS {outbox} (
            id bigserial PRIMARY KEY,
            op \"char\" NOT NULL,
            key {key},
            at timestamptz NOT NULL DEFAULT clock_timestamp());
        COMMENT ON TABLE {outbox} IS 'sidebloom guard: changes of a column that its follower has not taken yet';
        CREATE TABLE IF NOT EXISTS {follower} (token bigint NOT NULL, catalogue text);
        COMMENT ON TABLE {follower} IS 'sidebloom guard: which guard takes the changes';
        DELETE FROM {follower};
        INSERT INTO {follower} VALUES (0);
        CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql
        SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $sidebloom$
        DECLARE
            home name;
            col name;
            add text;
        BEGIN
            -- This trigger is called for UPDATE OF only so that the catalogue knows its column by number. The other one has the changes.
            IF TG_OP = 'UPDATE' AND TG_NAME = '{prefix}_rows' THEN
                RETURN NULL;
            END IF;
            -- What the schema and the column are called now.
            SELECT n.nspname, a.attname INTO home, col
            FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_namespace n ON n.oid = p.pronamespace
            LEFT JOIN pg_attribute a ON a.attrelid = t.tgrelid AND a.attnum = t.tgattr[0] AND NOT a.attisdropped
            WHERE t.tgrelid = TG_RELID AND t.tgname = '{prefix}_rows';
            IF TG_OP <> 'TRUNCATE' AND home = {home} AND col = {name} THEN
                IF TG_OP <> 'DELETE' THEN
                    IF NEW.{column} IS NOT NULL THEN
                        INSERT INTO {outbox} (op, key) VALUES ('+', {new});
                    END IF;
                END IF;
                IF TG_OP <> 'INSERT' THEN
                    IF OLD.{column} IS NOT NULL THEN
                        INSERT INTO {outbox} (op, key) VALUES ('-', {old});
                    END IF;
                END IF;
            ELSE
                add := format('INSERT INTO %I.%I (op, key) ', coalesce(home, {home}), '{prefix}_outbox');
                IF TG_OP = 'TRUNCATE' OR col IS NULL THEN
                    EXECUTE add || 'VALUES (''T'', NULL)';
                ELSE
                    add := add || format('SELECT $2, {renamed} WHERE ($1).%I IS NOT NULL', col, col);
                    IF TG_OP <> 'DELETE' THEN
                        EXECUTE add USING NEW, '+'::\"char\";
                    END IF;
                    IF TG_OP <> 'INSERT' THEN
                        EXECUTE add USING OLD, '-'::\"char\";
                    END IF;
                END IF;
            END IF;
            PERFORM pg_notify('{prefix}', '');
            RETURN NULL;
        END $sidebloom$;
        COMMENT ON FUNCTION {function}() IS {comment};
        DROP TRIGGER IF EXISTS {rows} ON {on};
        DROP TRIGGER IF EXISTS {update} ON {on};
        DROP TRIGGER IF EXISTS {truncate} ON {on};
        CREATE TRIGGER {rows} AFTER INSERT OR DELETE OR UPDATE OF {column} ON {on}
            FOR EACH ROW EXECUTE FUNCTION {function}();
        CREATE TRIGGER {update} AFTER UPDATE ON {on} FOR EACH ROW
            WHEN ({old_value} IS DISTINCT FROM {new_value}) EXECUTE FUNCTION {function}();
        CREATE TRIGGER {truncate} AFTER TRUNCATE ON {on} FOR EACH STATEMENT EXECUTE FUNCTION {function}();
        ALTER TABLE {on} ENABLE ALWAYS TRIGGER {rows};
        ALTER TABLE {on} ENABLE ALWAYS TRIGGER {update};
        ALTER TABLE {on} ENABLE ALWAYS TRIGGER {truncate};"
    ))?;
    tx.commit()
}

/// Text as SQL takes it.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Removes the triggers and the outbox with this prefix, wherever the triggers are.
pub(super) fn remove(client: &mut Client, home: &str, prefix: &str) -> Result<(), Error> {
    let [function, outbox, follower] = ["", "_outbox", "_follower"]
        .map(|end| format!("{}.{}", quoted(home), quoted(&format!("{prefix}{end}"))));
    client.batch_execute(&format!(
        "BEGIN; DROP FUNCTION IF EXISTS {function}() CASCADE; DROP TABLE IF EXISTS {outbox}, {follower}; COMMIT"
    ))
}

/// Whether the outbox is there and every change of the table goes into it.
pub(super) fn is_installed(client: &mut impl GenericClient, table: &Table) -> Result<bool, Error> {
    let found = client.query_one(
        "SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL",
        &[&outbox(table), &follower(table)],
    )?;
    Ok(found.get(0) && installed::look(client, table)?.gap.is_none())
}

/// The version of the catalogue that the guard's keys were counted with.
pub(super) fn counted_version(
    client: &mut impl GenericClient,
    table: &Table,
) -> Result<Option<String>, Error> {
    let row = client.query_opt(&format!("SELECT catalogue FROM {}", follower(table)), &[])?;
    Ok(row.and_then(|row| row.get(0)))
}

/// SQL that keeps every other follower out until the transaction ends.
pub(super) fn lock(table: &Table) -> String {
    format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", follower(table))
}

/// Makes the outbox that of the caller alone: a token of its own, and the ids of the changes that the transaction's snapshot has.
pub(super) fn take_over(tx: &mut Transaction<'_>, table: &Table) -> Result<Note, Error> {
    let token = random_u64() | 1; // Never that of a new outbox, 0.
    let version = installed::look(tx, table)?.version;
    let take = format!("UPDATE {} SET token = $1, catalogue = $2", follower(table));
    tx.execute(&take, &[&token.cast_signed(), &version])?;
    let mut ids = Ids::default();
    let none: [&str; 0] = [];
    let mut rows = tx.query_raw(&format!("SELECT id FROM {} ORDER BY id", outbox(table)), none)?;
    while let Some(row) = postgres::fallible_iterator::FallibleIterator::next(&mut rows)? {
        ids.push(row.get(0));
    }
    Ok(Note { token, ids })
}

/// Whose the outbox is.
pub(super) fn token(client: &mut impl GenericClient, table: &Table) -> Result<u64, Error> {
    let row = client.query_one(&format!("SELECT token FROM {}", follower(table)), &[])?;
    Ok(row.get::<_, i64>(0).cast_unsigned())
}

/// The changes that can be seen now, or the first of them; `None` when there are none.
pub(super) fn read(client: &mut Client, table: &Table) -> Result<Option<Batch>, Error> {
    // One statement has one snapshot.
    let rows = client.query(
        &format!(
            "SELECT id, op::text, key, extract(epoch FROM clock_timestamp() - at)::float8, (SELECT token FROM {}) \
             FROM {} ORDER BY id LIMIT {BATCH}",
            follower(table),
            outbox(table)
        ),
        &[],
    )?;
    let Some(first) = rows.first() else { return Ok(None) };
    let token = first.get::<_, i64>(4).cast_unsigned();
    let mut batch =
        Batch { token, changes: Vec::with_capacity(rows.len()), ids: Ids::default(), lag_seconds: 0.0 };
    for row in &rows {
        let op = match row.get::<_, &str>(1) {
            "+" => Op::Insert,
            "-" => Op::Remove,
            // A mark of a later version: a refresh is right whatever it means.
            _ => Op::Truncate,
        };
        batch.ids.push(row.get(0));
        batch.changes.push((op, row.get::<_, Option<Raw>>(2).map_or(Vec::new(), |key| key.0)));
        batch.lag_seconds = batch.lag_seconds.max(row.get(3));
    }
    Ok(Some(batch))
}

/// Deletes the changes that a guard's note names, if the outbox is still the guard's. Returns whether it is.
pub(super) fn delete(client: &mut Client, table: &Table, note: &Note) -> Result<bool, Error> {
    let mut tx = client.transaction()?;
    // Waits for one who takes the outbox over, and lets him wait: the token stays what it is until the end.
    tx.batch_execute(&format!("LOCK TABLE {} IN ACCESS SHARE MODE", follower(table)))?;
    if token(&mut tx, table)? != note.token {
        return Ok(false);
    }
    if !note.ids.is_empty() {
        let (first, last) = note.ids.columns();
        tx.execute(
            &format!(
                "DELETE FROM {} o USING unnest($1::bigint[], $2::bigint[]) AS taken (first, last) \
                 WHERE o.id BETWEEN taken.first AND taken.last",
                outbox(table)
            ),
            &[&first, &last],
        )?;
    }
    tx.commit()?;
    Ok(true)
}

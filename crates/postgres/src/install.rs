//! Creating the outbox of a column and the triggers that fill it.

use crate::outbox::{follower, function, is_installed, outbox};
use crate::table::{Kind, Table, TableError, quoted};
use crate::{catalog, location, trust};
use postgres::{Client, Error, GenericClient};

/// The result of [`PostgresSource::install_trigger`](crate::PostgresSource::install_trigger).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Installation {
    /// Everything existed.
    Found,
    /// Something was missing or disabled; it is now in place.
    Created,
    /// Other roles could have added changes to the outbox, or removed changes. It was replaced, and the
    /// follower will refresh the guard. Grants by the owner on the old tables must be repeated.
    Mended {
        /// What was wrong.
        reason: String,
    },
}

impl std::fmt::Display for Installation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Installation::Found => f.write_str("the triggers are installed"),
            Installation::Created => f.write_str("the triggers have been installed"),
            Installation::Mended { reason } => write!(
                f,
                "the triggers and their outbox were not safe from other roles and have been replaced ({reason}); all rows will be counted again"
            ),
        }
    }
}

/// Creates the outbox and the triggers, unless all of them exist and are out of reach of roles that may not
/// change the table at will. A guard that followed the column before will be refreshed: changes may have
/// bypassed the old triggers, or been forged.
pub fn install(client: &mut Client, table: &Table) -> Result<Installation, TableError> {
    let mut tx = client.transaction()?;
    if is_installed(&mut tx, table)? {
        return Ok(Installation::Found);
    }
    if let Some(taken) = location::taken(&mut tx, &table.home, &table.prefix, table.oid)? {
        return Err(TableError::Unusable(format!(
            "a follower's triggers on \"{}\" cannot be installed: {taken}, which lacks the rights of the table's owner; remove it first",
            table.name
        )));
    }
    let fault = trust::fault(&mut tx, table)?;
    let [has_function, has_tables] = existing(&mut tx, table)?;
    let keeps_tables = has_tables && fault.is_none();
    if !keeps_tables {
        tx.batch_execute(&tables(table))?;
    }
    let body = body(&mut tx, table)?;
    let triggers = triggers(&mut tx, table, has_function, &body)?;
    tx.batch_execute(&triggers)?;
    let revoke = strangers(&mut tx, table, !keeps_tables)?;
    tx.batch_execute(&revoke)?;
    tx.commit()?;
    Ok(fault.map_or(Installation::Created, |reason| Installation::Mended { reason }))
}

/// Whether the function exists, and both tables.
fn existing(client: &mut impl GenericClient, table: &Table) -> Result<[bool; 2], Error> {
    let row = client.query_one(
        "SELECT to_regprocedure($1 || '()') IS NOT NULL, to_regclass($2) IS NOT NULL AND to_regclass($3) IS NOT NULL",
        &[&function(table), &outbox(table), &follower(table)],
    )?;
    Ok([row.get(0), row.get(1)])
}

/// SQL string literals, quoted by the server: valid with any `standard_conforming_strings`.
fn literals<const N: usize>(client: &mut impl GenericClient, texts: [&str; N]) -> Result<[String; N], Error> {
    let rows = client.query(
        "SELECT quote_literal(given.text) FROM unnest($1::text[]) WITH ORDINALITY AS given (text, number) ORDER BY number",
        &[&texts.as_slice()],
    )?;
    let mut rows = rows.iter().map(|row| row.get::<_, String>(0));
    Ok(std::array::from_fn(|_| rows.next().unwrap_or_default()))
}

/// Recreates the tables.
fn tables(table: &Table) -> String {
    let (outbox, follower) = (outbox(table), follower(table));
    let key = if table.kind == Kind::Bytes { "bytea" } else { "text" };
    format!(
        "DROP TABLE IF EXISTS {outbox}, {follower};
        CREATE TABLE {outbox} (
            id bigserial PRIMARY KEY,
            op \"char\" NOT NULL,
            key {key},
            at timestamptz NOT NULL DEFAULT clock_timestamp());
        COMMENT ON TABLE {outbox} IS 'sidebloom guard: changes of a column that its follower has not taken yet';
        CREATE TABLE {follower} (token bigint NOT NULL, catalogue text);
        COMMENT ON TABLE {follower} IS 'sidebloom guard: which guard takes the changes'"
    )
}

/// The function's body.
fn body(client: &mut impl GenericClient, table: &Table) -> Result<String, Error> {
    let (mark, oid, prefix, column, outbox) =
        (trust::mark(table), table.oid, &table.prefix, table.column_sql(), outbox(table));
    let [new, old] = ["NEW", "OLD"].map(|row| table.key_sql(&format!("{row}.{column}")));
    let [home, name, renamed] = literals(
        client,
        [
            &table.home,
            &table.column,
            &format!("SELECT $2, {} WHERE ($1).%I IS NOT NULL", table.key_sql("($1).%I")),
        ],
    )?;
    Ok(format!(
        "{mark}DECLARE
            home name;
            col name;
            add text;
        BEGIN
            -- A role that could put this trigger on a table of its own would choose what the guard denies.
            IF TG_RELID <> {oid}::oid
            AND NOT EXISTS (SELECT FROM pg_partition_ancestors(TG_RELID) AS a WHERE a.relid = {oid}::oid) THEN
                RETURN NULL;
            END IF;
            -- This trigger names UPDATE OF only so that the catalog records its column's number. The other one handles updates.
            IF TG_OP = 'UPDATE' AND TG_NAME = '{prefix}_rows' THEN
                RETURN NULL;
            END IF;
            -- The current names of the schema and the column.
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
                    add := add || format({renamed}, col, col);
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
        END"
    ))
}

/// Creates the function and the triggers, and forgets which guard followed.
fn triggers(
    client: &mut impl GenericClient,
    table: &Table,
    has_function: bool,
    body: &str,
) -> Result<String, Error> {
    let (prefix, on, column) = (&table.prefix, table.sql(), table.column_sql());
    let (follower, function) = (follower(table), function(table));
    let [new_value, old_value] = ["NEW", "OLD"].map(|row| table.value_sql(&format!("{row}.{column}")));
    let comment = format!(
        "sidebloom guard: writes the changes of {}",
        catalog::described(Some(&table.schema), &table.name, &table.column)
    );
    let [comment, body] = literals(client, [&comment, body])?;
    let [rows, update, truncate] =
        ["rows", "update", "truncate"].map(|name| quoted(&format!("{prefix}_{name}")));
    // Without OR REPLACE, a function that another role has just created is an error.
    let create = if has_function { "CREATE OR REPLACE" } else { "CREATE" };
    Ok(format!(
        "DELETE FROM {follower};
        INSERT INTO {follower} VALUES (0);
        {create} FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql
        SECURITY DEFINER SET search_path = {path} AS {body};
        REVOKE ALL ON FUNCTION {function}() FROM PUBLIC;
        COMMENT ON FUNCTION {function}() IS {comment};
        DROP TRIGGER IF EXISTS {rows} ON {on};
        DROP TRIGGER IF EXISTS {update} ON {on};
        DROP TRIGGER IF EXISTS {truncate} ON {on};
        CREATE TRIGGER {rows} AFTER INSERT OR DELETE OR UPDATE OF {column} ON {on}
            FOR EACH ROW EXECUTE FUNCTION {function}();
        CREATE TRIGGER {update} AFTER UPDATE ON {on} FOR EACH ROW
            WHEN (NOT coalesce({old_value} {equals} {new_value}, {old_value} IS NULL AND {new_value} IS NULL))
            EXECUTE FUNCTION {function}();
        CREATE TRIGGER {truncate} AFTER TRUNCATE ON {on} FOR EACH STATEMENT EXECUTE FUNCTION {function}();
        ALTER TABLE {on} ENABLE ALWAYS TRIGGER {rows};
        ALTER TABLE {on} ENABLE ALWAYS TRIGGER {update};
        ALTER TABLE {on} ENABLE ALWAYS TRIGGER {truncate};",
        path = trust::SEARCH_PATH,
        equals = table.equals,
    ))
}

/// SQL that revokes what default privileges granted to others. Existing tables keep their owner's grants.
fn strangers(client: &mut impl GenericClient, table: &Table, are_tables_new: bool) -> Result<String, Error> {
    let row = client.query_one(
        "SELECT coalesce(string_agg(format('REVOKE ALL ON %s FROM %s CASCADE', object,
                         CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END), ';'), '')
         FROM (
            SELECT DISTINCT 'FUNCTION ' || p.oid::regprocedure AS object, a.grantee
            FROM pg_proc p, aclexplode(p.proacl) a WHERE p.oid = to_regprocedure($1 || '()') AND a.grantee <> p.proowner
            UNION SELECT DISTINCT 'TABLE ' || c.oid::regclass, a.grantee FROM pg_class c, aclexplode(c.relacl) a
            WHERE $4 AND c.oid IN (to_regclass($2), to_regclass($3)) AND a.grantee <> c.relowner
            UNION SELECT DISTINCT 'SEQUENCE ' || c.oid::regclass, a.grantee FROM pg_class c, aclexplode(c.relacl) a
            WHERE $4 AND c.oid = to_regclass(pg_get_serial_sequence($2, 'id')) AND a.grantee <> c.relowner) AS granted",
        &[&function(table), &outbox(table), &follower(table), &are_tables_new],
    )?;
    Ok(row.get(0))
}

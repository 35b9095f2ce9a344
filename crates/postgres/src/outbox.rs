//! The outbox: triggers fill it, a follower empties it.

use crate::catalog;
use crate::note::{Ids, Note};
use crate::table::{Table, quoted};
use postgres::types::{FromSql, Type};
use postgres::{Client, Error, GenericClient, Transaction};
use std::hash::{BuildHasher, RandomState};

/// Changes read at once.
const BATCH: i64 = 4096;

/// Changes visible at one moment, in order of their ids.
pub struct Batch {
    pub token: u64,
    pub changes: Vec<(RowChange, Vec<u8>)>,
    pub ids: Ids,
    /// Age of the oldest change, in seconds.
    pub lag_seconds: f64,
}

/// What happened to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowChange {
    Insert,
    Remove,
    /// All rows were removed.
    Truncate,
}

/// The bytes of a field of any type.
struct Raw(Vec<u8>);

impl<'r> FromSql<'r> for Raw {
    fn from_sql(_: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Raw(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

pub fn outbox(table: &Table) -> String {
    format!("{}.{}", quoted(&table.home), quoted(&format!("{}_outbox", table.prefix)))
}

pub fn follower(table: &Table) -> String {
    format!("{}.{}", quoted(&table.home), quoted(&format!("{}_follower", table.prefix)))
}

pub fn function(table: &Table) -> String {
    format!("{}.{}", quoted(&table.home), quoted(&table.prefix))
}

/// The channel that the triggers notify.
pub fn channel(table: &Table) -> String {
    table.prefix.clone()
}

/// Removes the outbox with this prefix and all its triggers.
pub fn remove(client: &mut Client, home: &str, prefix: &str) -> Result<(), Error> {
    let [function, outbox, follower] = ["", "_outbox", "_follower"]
        .map(|end| format!("{}.{}", quoted(home), quoted(&format!("{prefix}{end}"))));
    client.batch_execute(&format!(
        "BEGIN; DROP FUNCTION IF EXISTS {function}() CASCADE; DROP TABLE IF EXISTS {outbox}, {follower}; COMMIT"
    ))
}

/// Whether the outbox exists and receives exactly the changes of the table.
pub fn is_installed(client: &mut impl GenericClient, table: &Table) -> Result<bool, Error> {
    let found = client.query_one(
        "SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL",
        &[&outbox(table), &follower(table)],
    )?;
    Ok(found.get(0) && catalog::look(client, table)?.gap.is_none())
}

/// The version of the catalog when the guard's keys were counted.
pub fn counted_version(client: &mut impl GenericClient, table: &Table) -> Result<Option<String>, Error> {
    let row = client.query_opt(&format!("SELECT catalogue FROM {}", follower(table)), &[])?;
    Ok(row.and_then(|row| row.get(0)))
}

/// SQL that excludes every other follower until the transaction ends.
pub fn lock(table: &Table) -> String {
    format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", follower(table))
}

/// Takes over the outbox under a new token. Returns the note with the change ids of the snapshot.
pub fn take_over(tx: &mut Transaction<'_>, table: &Table) -> Result<Note, Error> {
    let token = RandomState::new().hash_one(std::time::SystemTime::now()) | 1; // A new outbox has 0.
    let version = catalog::look(tx, table)?.version;
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

/// The token of the guard that follows the outbox.
pub fn token(client: &mut impl GenericClient, table: &Table) -> Result<u64, Error> {
    let row = client.query_one(&format!("SELECT token FROM {}", follower(table)), &[])?;
    Ok(row.get::<_, i64>(0).cast_unsigned())
}

/// The changes visible now, or the first of them; `None` when there are none.
pub fn read(client: &mut Client, table: &Table) -> Result<Option<Batch>, Error> {
    // A single statement sees a single snapshot.
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
            "+" => RowChange::Insert,
            "-" => RowChange::Remove,
            // A later version's mark: a refresh is right whatever its meaning.
            _ => RowChange::Truncate,
        };
        batch.ids.push(row.get(0));
        batch.changes.push((op, row.get::<_, Option<Raw>>(2).map_or(Vec::new(), |key| key.0)));
        batch.lag_seconds = batch.lag_seconds.max(row.get(3));
    }
    Ok(Some(batch))
}

/// Deletes the changes named in a guard's note, if the guard still owns the outbox. Returns whether it does.
pub fn delete(client: &mut Client, table: &Table, note: &Note) -> Result<bool, Error> {
    let mut tx = client.transaction()?;
    // Excludes a follower that takes over the outbox: the token cannot change before this transaction ends.
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

//! Rows that live for milliseconds, in a keyspace next to those of a harness. Each says when it expires: who
//! sees it later has found a mistake.

use crate::support::Rng;
use sidebloom::{Db, Error, Expiry, KeyspaceOptions, Result};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub const NAME: &str = "brief";
const KEYS: u64 = 8;
/// How long they live at most, in milliseconds.
const LIFETIME_MAX: u64 = 30;

/// Writes one of the rows.
pub fn write(db: &Db, rng: &mut Rng) -> Result<()> {
    let rows = match db.keyspace(NAME) {
        Err(Error::UnknownKeyspace { .. }) => db.create_keyspace(NAME, KeyspaceOptions::new()),
        found => found,
    };
    let rows = match rows {
        Err(Error::KeyspaceExists { .. }) => db.keyspace(NAME)?, // Another thread was faster.
        rows => rows?,
    };
    let until = now() + rng.below(LIFETIME_MAX);
    let expiry = Expiry::at(UNIX_EPOCH + Duration::from_millis(until));
    rows.put_with(rng.below(KEYS).to_be_bytes(), until.to_be_bytes(), expiry)
}

/// Looks for rows that have expired, by a walk and by their keys. The store may lack the keyspace.
pub fn check(db: &Db) -> std::result::Result<(), String> {
    let failed = |e| format!("a brief row: {e}");
    let rows = match db.keyspace(NAME) {
        Err(Error::UnknownKeyspace { .. }) => return Ok(()),
        rows => rows.map_err(failed)?,
    };
    let asked = now();
    for row in rows.iter() {
        check_value(&row.map_err(failed)?.1, asked)?;
    }
    for key in 0..KEYS {
        let asked = now();
        let value = rows.get(key.to_be_bytes()).map_err(failed)?;
        value.map_or(Ok(()), |value| check_value(&value, asked))?;
    }
    Ok(())
}

fn check_value(value: &[u8], asked: u64) -> std::result::Result<(), String> {
    let until = u64::from_be_bytes(*value.first_chunk().ok_or("a brief row without its moment")?);
    if until > asked { Ok(()) } else { Err(format!("a row that expired at {until} was there at {asked}")) }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

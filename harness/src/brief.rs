//! Rows that live for milliseconds, in a keyspace next to those of a harness. Each says when it expires: who
//! sees it later has found a mistake.

use crate::support::Rng;
use sidebloom::{Db, Error, Expiry, KeyspaceOptions, Result};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub const NAME: &str = "brief";
const KEYS: u64 = 8;
/// How long they live at most, in milliseconds.
const LIFETIME_MAX: u64 = 30;
/// The window of every other keyspace of them. They live shorter than they would by themselves.
const WINDOW: Duration = Duration::from_secs(1);

/// Writes one of the rows.
pub fn write(db: &Db, rng: &mut Rng) -> Result<()> {
    let rows = match db.keyspace(NAME) {
        Err(Error::UnknownKeyspace { .. }) => {
            let options = KeyspaceOptions::new();
            db.create_keyspace(NAME, if rng.percent(50) { options.window(WINDOW) } else { options })
        }
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

/// Fails if there are rows that have expired.
pub fn check(db: &Db) -> std::result::Result<(), String> {
    match find_expired(db) {
        Ok(found) => found.map_or(Ok(()), Err),
        Err(error) => Err(format!("a brief row: {error}")),
    }
}

/// Looks for rows that have expired, by a walk and by their keys. The store may lack the keyspace. Returns
/// what is wrong.
pub fn find_expired(db: &Db) -> Result<Option<String>> {
    let rows = match db.keyspace(NAME) {
        Err(Error::UnknownKeyspace { .. }) => return Ok(None),
        rows => rows?,
    };
    let asked = now();
    for row in rows.iter() {
        if let Some(wrong) = objection(&row?.1, asked) {
            return Ok(Some(wrong));
        }
    }
    for key in 0..KEYS {
        let asked = now();
        if let Some(wrong) = rows.get(key.to_be_bytes())?.and_then(|value| objection(&value, asked)) {
            return Ok(Some(wrong));
        }
    }
    Ok(None)
}

fn objection(value: &[u8], asked: u64) -> Option<String> {
    let Some(until) = value.first_chunk() else { return Some("a brief row without its moment".into()) };
    let until = u64::from_be_bytes(*until);
    (until <= asked).then(|| format!("a row that expired at {until} was there at {asked}"))
}

/// Milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

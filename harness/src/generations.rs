//! A keyspace that comes and goes next to the rows of a harness. Each time it is filled anew, it has the rows
//! of another generation.

use crate::home;
use sidebloom::{Batch, Db, Error, Keyspace, KeyspaceOptions, Result};

pub const NAME: &str = "generations";
/// The rows of a generation, written as one batch.
pub const ROWS: u64 = 20;

/// What a store has of the keyspace: nothing, or the rows of a generation. Generation 0 has none.
pub type State = Option<u64>;

/// The options of the keyspace: every other one has a window that outlives the harness.
pub fn options(generation: u64) -> KeyspaceOptions {
    let options = KeyspaceOptions::new();
    if generation.is_multiple_of(2) { options.window(home::LONG) } else { options }
}

/// The batch that fills the new keyspace.
pub fn rows(keyspace: &Keyspace, generation: u64) -> Batch {
    let mut batch = Batch::new();
    (0..ROWS).for_each(|n| batch.keyspace(keyspace).put(n.to_be_bytes(), generation.to_be_bytes()));
    batch
}

/// What a store has of the keyspace. Fails if that is not what any batch has written.
pub fn find(db: &Db) -> Result<State> {
    let keyspace = match db.keyspace(NAME) {
        Err(Error::UnknownKeyspace { .. }) => return Ok(None),
        found => found?,
    };
    let found = keyspace.iter().map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())));
    let found = found.collect::<Result<Vec<_>>>()?;
    let generation =
        found.first().map_or(0, |(_, value)| u64::from_be_bytes(value.as_slice().try_into().unwrap()));
    let all = if generation == 0 { 0 } else { ROWS };
    let right = (0..all).map(|n| (n.to_be_bytes().to_vec(), generation.to_be_bytes().to_vec()));
    assert!(right.eq(found.iter().cloned()), "not the rows of one generation: {found:?}");
    Ok(Some(generation))
}

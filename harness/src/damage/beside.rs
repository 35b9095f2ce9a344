//! A keyspace next to the rows, with a row of its own in the catalog. It comes and goes in some stores.

use super::workload::Op;
use crate::contents::Change;
use sidebloom::{Batch, Db, Error, KeyspaceOptions, Result};

const NAME: &str = "beside";
/// Rows of a generation.
const ROWS: u64 = 12;
/// What creating a keyspace writes: its name, and the state of the catalog.
const OPS_OF_CREATE: usize = 2;
/// The name is deleted, all rows are deleted as one range, and the catalog has another state.
const OPS_OF_DROP: usize = 3;

/// Not there, or there with the rows of a generation.
type State = Option<u64>;

/// What the keyspace was, by the number of operations of the whole store.
#[derive(Debug, Default, Clone)]
pub struct Beside(Vec<(usize, State)>);

impl Beside {
    /// Creates the keyspace with its rows, or drops it, and counts the operations.
    pub fn change(&mut self, db: &Db, ops: &mut Vec<Op>) {
        let mut count = |n: usize| {
            ops.extend(
                (0..n).map(|_| Change::Delete(b"takes the number of another keyspace's row".to_vec())),
            );
            ops.len()
        };
        if self.0.last().is_some_and(|(_, state)| state.is_some()) {
            db.drop_keyspace(NAME).unwrap();
            self.0.push((count(OPS_OF_DROP), None));
            return;
        }
        let keyspace = db.create_keyspace(NAME, KeyspaceOptions::new()).unwrap();
        self.0.push((count(OPS_OF_CREATE), Some(0)));
        let (mut batch, generation) = (Batch::new(), self.0.len() as u64);
        (0..ROWS).for_each(|n| batch.keyspace(&keyspace).put(n.to_be_bytes(), generation.to_be_bytes()));
        db.write(batch).unwrap();
        self.0.push((count(ROWS as usize), Some(generation)));
    }

    /// Its state after the first `n` operations.
    fn after(&self, n: usize) -> State {
        self.0.iter().take_while(|(ops, _)| *ops <= n).last().and_then(|(_, state)| *state)
    }

    /// Checks what a store has of it after the first `n` operations. `Err` if that cannot be read.
    #[track_caller]
    pub fn check(&self, db: &Db, n: usize) -> Result<()> {
        let (expected, found) = (self.after(n), find(db)?);
        assert!(found == expected, "the keyspace is {found:?}, not {expected:?}");
        Ok(())
    }
}

fn find(db: &Db) -> Result<State> {
    let keyspace = match db.keyspace(NAME) {
        Err(Error::UnknownKeyspace { .. }) => return Ok(None),
        found => found?,
    };
    let rows = keyspace.iter().collect::<Result<Vec<_>>>()?;
    let generation = rows.first().map_or(0, |(_, value)| u64::from_be_bytes((**value).try_into().unwrap()));
    let right =
        (0..if generation == 0 { 0 } else { ROWS }).map(|n| (n.to_be_bytes(), generation.to_be_bytes()));
    assert!(
        right
            .eq(rows.iter().map(|(key, value)| ((**key).try_into().unwrap(), (**value).try_into().unwrap()))),
        "rows of several generations, or not all: {rows:?}"
    );
    Ok(Some(generation))
}

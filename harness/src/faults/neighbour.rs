//! A keyspace that comes and goes next to the writers' rows.

use super::judge::Call;
use super::shared::Shared;
use sidebloom::{Batch, Db, Durability, Error, KeyspaceOptions, Result};
use std::collections::BTreeSet;

const NAME: &str = "neighbour";
/// The rows of a generation, written as one batch.
const ROWS: u64 = 30;

/// Not there, or there with the rows of a generation; generation 0 has none.
type State = Option<u64>;

/// What is known of the keyspace.
#[derive(Debug, Clone)]
pub struct Neighbour {
    /// More than one after an error, until the next opening decides.
    possible: BTreeSet<State>,
    generation: u64,
}

impl Neighbour {
    /// Of a new store.
    pub fn new() -> Self {
        Neighbour { possible: BTreeSet::from([None]), generation: 0 }
    }

    /// Creates and fills the keyspace, or drops it.
    pub fn change(&mut self, db: &Db, shared: &Shared) {
        if self.possible.contains(&None) && self.possible.len() == 1 {
            self.fill(db, shared)
        } else {
            self.drop(db, shared)
        }
    }

    fn fill(&mut self, db: &Db, shared: &Shared) {
        self.generation += 1;
        self.possible.insert(Some(0));
        let created = db.create_keyspace(NAME, KeyspaceOptions::new());
        let Some(keyspace) = created.inspect_err(|error| shared.explain(Call::Transact, error)).ok() else {
            return;
        };
        self.possible.insert(Some(self.generation));
        let mut batch = Batch::new();
        let value = self.generation.to_be_bytes();
        (0..ROWS).for_each(|n| batch.keyspace(&keyspace).put(n.to_be_bytes(), value));
        match db.write_with(batch, Durability::Sync) {
            Ok(()) => self.possible = BTreeSet::from([Some(self.generation)]),
            Err(error) => shared.explain(Call::Write, &error),
        }
    }

    fn drop(&mut self, db: &Db, shared: &Shared) {
        let is_known = !self.possible.contains(&None);
        self.possible.insert(None);
        match db.drop_keyspace(NAME) {
            Ok(()) => self.possible = BTreeSet::from([None]),
            Err(Error::UnknownKeyspace { .. }) if !is_known => {}
            // Segments of the keyspace alone are removed, too.
            Err(error) => shared.explain(Call::Compact, &error),
        }
    }

    /// Checks what a store has of the keyspace.
    #[track_caller]
    pub fn check(&self, found: State, what: &str) {
        assert!(
            self.possible.contains(&found),
            "{what}: the keyspace is {found:?}, none of {:?}",
            self.possible
        );
    }

    /// Checks what an opened store has; it stays so from here on.
    #[track_caller]
    pub fn settle(&mut self, found: State, what: &str) {
        self.check(found, what);
        self.possible = BTreeSet::from([found]);
    }
}

/// What a store has of the keyspace.
pub fn find(db: &Db) -> Result<State> {
    let keyspace = match db.keyspace(NAME) {
        Err(Error::UnknownKeyspace { .. }) => return Ok(None),
        found => found?,
    };
    let (mut rows, mut generations) = (0, BTreeSet::new());
    for row in keyspace.iter() {
        let (key, value) = row?;
        assert_eq!(*key, u64::to_be_bytes(rows), "the keyspace has a row that it never had");
        generations.insert(u64::from_be_bytes((*value).try_into().unwrap()));
        rows += 1;
    }
    let generation = generations.pop_first().unwrap_or(0);
    assert!(generations.is_empty(), "the keyspace has rows of {generation} and of {generations:?}");
    assert!(rows == if generation == 0 { 0 } else { ROWS }, "{rows} rows of generation {generation}");
    Ok(Some(generation))
}

//! A keyspace that comes and goes next to the writers' rows.

use super::judge::Call;
use super::shared::Shared;
use crate::generations::{self, NAME, State};
use sidebloom::{Db, Durability, Error};
use std::collections::BTreeSet;

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
        let created = db.create_keyspace(NAME, generations::options(self.generation));
        let Some(keyspace) = created.inspect_err(|error| shared.explain(Call::Transact, error)).ok() else {
            return;
        };
        self.possible.insert(Some(self.generation));
        match db.write_with(generations::rows(&keyspace, self.generation), Durability::Sync) {
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

//! A keyspace next to the rows, with a row of its own in the catalog. It comes and goes in some stores, and
//! has a window of time in some of them.

use crate::contents::Change;
use crate::generations::{self, NAME, ROWS, State};
use sidebloom::{Db, KeyspaceOptions, Result};
use std::time::Duration;

/// What creating a keyspace writes: its name, and the state of the catalog.
const OPS_OF_CREATE: usize = 2;
/// The name is deleted, all rows are deleted as one range, and the catalog has another state.
const OPS_OF_DROP: usize = 3;

/// No row has expired when the store is read.
const WINDOW: Duration = Duration::from_secs(1);

/// What the keyspace was, by the number of operations of the whole store.
#[derive(Debug, Default, Clone)]
pub struct Beside {
    states: Vec<(usize, State)>,
    options: KeyspaceOptions,
}

impl Beside {
    /// None yet.
    pub fn new(has_window: bool) -> Self {
        let options = KeyspaceOptions::new();
        let options = if has_window { options.window(WINDOW) } else { options };
        Beside { states: Vec::new(), options }
    }

    /// Creates the keyspace with its rows, or drops it, and counts the operations.
    pub fn change(&mut self, db: &Db, ops: &mut Vec<Change>) {
        let mut count = |n: usize| {
            ops.extend(
                (0..n).map(|_| Change::Delete(b"takes the number of another keyspace's row".to_vec())),
            );
            ops.len()
        };
        if self.states.last().is_some_and(|(_, state)| state.is_some()) {
            db.drop_keyspace(NAME).unwrap();
            self.states.push((count(OPS_OF_DROP), None));
            return;
        }
        let keyspace = db.create_keyspace(NAME, self.options.clone()).unwrap();
        self.states.push((count(OPS_OF_CREATE), Some(0)));
        let generation = self.states.len() as u64;
        db.write(generations::rows(&keyspace, generation)).unwrap();
        self.states.push((count(ROWS as usize), Some(generation)));
    }

    /// Its state after the first `n` operations.
    fn after(&self, n: usize) -> State {
        self.states.iter().take_while(|(ops, _)| *ops <= n).last().and_then(|(_, state)| *state)
    }

    /// Checks what a store has of it after the first `n` operations. `Err` if that cannot be read.
    #[track_caller]
    pub fn check(&self, db: &Db, n: usize) -> Result<()> {
        self.check_any(db, &[n])
    }

    /// [`check`](Self::check), if any of these numbers of operations may be right.
    #[track_caller]
    pub fn check_any(&self, db: &Db, n: &[usize]) -> Result<()> {
        let allowed: Vec<State> = n.iter().map(|n| self.after(*n)).collect();
        let found = generations::find(db)?;
        assert!(allowed.contains(&found), "the keyspace is {found:?}, not one of {allowed:?}");
        Ok(())
    }
}

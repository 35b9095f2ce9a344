//! A keyspace that is created, filled and dropped while everything else goes on.

use super::threads::Shared;
use crate::generations::{self, NAME, ROWS};
use crate::support::Rng;
use sidebloom::{Db, Durability, Error, Result};

/// Runs in one thread: nobody else changes the keyspace.
pub fn come_and_go(shared: &Shared, db: &Db, mut rng: Rng) {
    for generation in 1..=2 + rng.below(3) {
        let durability = *rng.pick(&[Durability::Os, Durability::Sync]);
        if let Err(error) = live(db, generation, durability) {
            return shared.allow(&error, "a keyspace");
        }
    }
}

fn live(db: &Db, generation: u64, durability: Durability) -> Result<()> {
    let keyspace = db.create_keyspace(NAME, generations::options(generation))?;
    db.write_with(generations::rows(&keyspace, generation), durability)?;
    assert_eq!(generations::find(db)?, Some(generation), "after filling");
    let walk = keyspace.iter();
    db.drop_keyspace(NAME)?;
    let late = keyspace.put("late", "");
    assert!(matches!(late, Err(Error::KeyspaceDropped { .. })), "a row after the drop: {late:?}");
    assert_eq!(walk.count()?, ROWS, "a walk that began before the drop");
    assert_eq!(generations::find(db)?, None, "after the drop");
    Ok(())
}

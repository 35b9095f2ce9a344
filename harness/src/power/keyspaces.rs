//! Creates, fills and drops keyspaces next to the writers' rows.

use super::fates::{Fate, ROWS};
use super::promises::Promises;
use crate::support::Rng;
use sidebloom::{Batch, Db, Durability, KeyspaceOptions};

/// Creates a keyspace and fills it; mostly drops it, and makes another one of the same name.
pub fn change(promises: &Promises, db: &Db, name: &str, rng: &mut Rng) {
    fill(promises, db, name);
    if rng.percent(70) {
        drop_one(promises, db, name);
        if rng.percent(50) {
            fill(promises, db, name);
        }
    }
    let fates = promises.keyspaces.now();
    let older = fates.of.iter().find(|(older, fate)| **fate == Fate::Filled && !older.starts_with(name));
    if let Some((older, _)) = older.filter(|(older, _)| older.ends_with(name.rsplit('.').next().unwrap())) {
        drop_one(promises, db, older);
    }
}

fn fill(promises: &Promises, db: &Db, name: &str) {
    promises.keyspaces.set(name, Fate::Begun);
    let filled = db.create_keyspace(name, KeyspaceOptions::new()).and_then(|keyspace| {
        let mut batch = Batch::new();
        (0..ROWS).for_each(|n| batch.keyspace(&keyspace).put(n.to_be_bytes(), name));
        db.write_with(batch, Durability::Sync)
    });
    filled.unwrap_or_else(|e| panic!("filling keyspace {name}: {e}"));
    promises.keyspaces.set(name, Fate::Filled);
}

fn drop_one(promises: &Promises, db: &Db, name: &str) {
    promises.keyspaces.set(name, Fate::Dropping);
    db.drop_keyspace(name).unwrap_or_else(|e| panic!("dropping keyspace {name}: {e}"));
    promises.keyspaces.set(name, Fate::Dropped);
}

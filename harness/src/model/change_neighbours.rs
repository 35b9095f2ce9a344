//! Creates other keyspaces, writes to them, drops them and creates them again.

use super::blob::Model;
use super::neighbours::NAMES;
use super::player::Player;
use super::program::Span;
use super::rows::Walk;
use crate::config;
use crate::support::Rng;
use sidebloom::{Batch, Error, Keyspace, KeyspaceOptions};

fn options(rng: &mut Rng) -> KeyspaceOptions {
    let options = KeyspaceOptions::new();
    let options = if rng.percent(50) { options.filter_policy(config::policy(rng)) } else { options };
    if rng.percent(30) { options.prefixes(config::prefixes(rng)) } else { options }
}

impl Player<'_> {
    /// Whether the store has, or had, a keyspace besides the default one.
    pub fn has_keyspaces(&self) -> bool {
        self.home.name().is_some() || self.neighbours.existed
    }

    /// An action on another keyspace.
    pub fn change_neighbours(&mut self) {
        let name = *self.rng.pick(&NAMES);
        if !self.neighbours.open.contains_key(name) {
            let options = options(&mut self.rng);
            self.ok("create_keyspace", self.db().create_keyspace(name, options));
            self.neighbours.open.insert(name, Model::new());
            self.neighbours.existed = true;
        }
        let keyspace = self.ok("keyspace", self.db().keyspace(name));
        if self.rng.percent(30) {
            self.flush_neighbours_together();
        } else {
            self.write_to_neighbour(name, &keyspace, 60);
        }
        match self.rng.below(6) {
            0 | 1 => self.drop_neighbour(name, &keyspace),
            2 => self.ok("flush", self.db().flush()),
            3 => self.ok("compact a keyspace", keyspace.compact()),
            4 => {
                let options = options(&mut self.rng);
                self.ok("set_options", keyspace.set_options(options));
                self.ok("rebuild_filters of a keyspace", keyspace.rebuild_filters());
            }
            _ => {}
        }
        self.neighbours.check(self.db(), &self.what());
        self.calls += 5;
    }

    /// Keys of the program, with other values; if they are many, together with one that the program's rows
    /// have.
    fn write_to_neighbour(&mut self, name: &'static str, keyspace: &Keyspace, most: u64) {
        let mut batch = Batch::new();
        let model = self.neighbours.open.get_mut(name).unwrap();
        let mut rows = model.clone();
        for _ in 0..self.rng.below(most) {
            let (key, value) = (self.program.keys.pick(&mut self.rng), self.neighbours.value());
            batch.keyspace(keyspace).put(&key, &value);
            rows.insert(key, value);
        }
        // The same bytes, but another write: it may fail a transaction, which must not depend on this.
        if self.transactions.is_empty()
            && most > 10
            && let Some((key, value)) = self.model.iter().next()
        {
            let (key, value) = (key.clone(), value.until(value.expiry()));
            batch.keyspace(self.rows()).put_with(&key, &value, value.to_expiry());
            self.model.insert(key, value);
        }
        match self.rng.below(10) {
            0 => {
                batch.keyspace(keyspace).delete_range(..);
                rows.clear();
            }
            1 => {
                let from = self.program.keys.pick(&mut self.rng);
                batch.keyspace(keyspace).delete_range(from.clone()..);
                rows.retain(|key, _| *key < from);
            }
            _ => {}
        }
        self.ok("a batch across keyspaces", self.db().write(batch));
        self.neighbours.open.insert(name, rows);
    }

    /// Small ones share a segment, without rows of the program.
    fn flush_neighbours_together(&mut self) {
        self.ok("flush", self.db().flush());
        for name in self.neighbours.names().collect::<Vec<_>>() {
            let keyspace = self.ok("keyspace", self.db().keyspace(name));
            self.write_to_neighbour(name, &keyspace, 5);
        }
        self.ok("flush", self.db().flush());
    }

    /// Iterators and snapshots go on, handles do not. A new keyspace of the name is empty.
    fn drop_neighbour(&mut self, name: &'static str, keyspace: &Keyspace) {
        let model = self.neighbours.open.remove(name).unwrap();
        let walk = Walk::new(keyspace.iter(), &Span::All, &model);
        let snapshot = self.db().snapshot();
        self.ok("drop_keyspace", self.db().drop_keyspace(name));
        let refused = [keyspace.put("k", "v"), keyspace.get("k").map(|_| ())];
        let is_dropped = |found: &sidebloom::Result<()>| matches!(found, Err(Error::KeyspaceDropped { .. }));
        assert!(refused.iter().all(is_dropped), "{}: {refused:?}", self.what());
        if self.rng.percent(50) {
            let again = self.ok("create it again", self.db().create_keyspace(name, KeyspaceOptions::new()));
            self.same("rows of a new keyspace", self.ok("count", again.iter().count()), 0);
            self.neighbours.open.insert(name, Model::new());
            self.write_to_neighbour(name, &again, 60);
        }
        if self.rng.percent(50) {
            self.ok("compact", self.db().compact());
        }
        let turns = self.rng.next();
        walk.finish(turns, || self.what(), |_| ());
        let before = self.ok("a dropped keyspace in a snapshot", snapshot.keyspace(keyspace));
        Walk::new(before.iter(), &Span::All, &model).finish(turns, || self.what(), |_| ());
    }
}

//! The other keyspaces of a store, next to the program's rows.

use super::blob::{Blob, Model};
use super::program::Span;
use super::rows::Walk;
use sidebloom::Db;
use std::collections::BTreeMap;

pub const NAMES: [&str; 3] = ["a", "rows of somebody else", "z"];

/// The keyspaces besides the program's, by name, with their rows.
#[derive(Default)]
pub struct Neighbours {
    pub open: BTreeMap<&'static str, Model>,
    /// Whether there has ever been one.
    pub existed: bool,
    writes: u64,
}

impl Neighbours {
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.open.keys().copied()
    }

    /// The number of their rows.
    pub fn rows(&self) -> usize {
        self.open.values().map(Model::len).sum()
    }

    /// An opening of the store has exactly these keyspaces, with these rows.
    pub fn check(&self, db: &Db, what: &str) {
        let mut named = db.keyspaces().unwrap_or_else(|e| panic!("{what}: keyspaces: {e}"));
        named.retain(|name| NAMES.contains(&name.as_str()));
        assert_eq!(named, self.names().collect::<Vec<_>>(), "{what}: names of keyspaces");
        for (name, model) in &self.open {
            let rows = db.keyspace(name).unwrap_or_else(|e| panic!("{what}: {name}: {e}"));
            Walk::new(rows.iter(), &Span::All, model).finish(0, || format!("{what}: in {name}"), |_| ());
        }
    }

    /// A value that nothing else has.
    pub fn value(&mut self) -> Blob {
        self.writes += 1;
        Blob::from(format!("of a neighbour, {}", self.writes).into_bytes())
    }
}

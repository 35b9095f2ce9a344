//! The keyspaces that a benchmark spreads its keys over.

use super::keys::{KeySpace, Rng};
use crate::context::Failure;
use sidebloom::{Batch, Db, Error, Keyspace, KeyspaceOptions};

/// The keyspaces; index `i` belongs to number `i` modulo their count.
pub struct Keyspaces {
    default: Keyspace,
    /// Empty if all keys are in the default keyspace.
    named: Vec<Keyspace>,
}

impl Keyspaces {
    /// Opens this many keyspaces; `None` is the default one. With `create`, creates those that are missing.
    pub fn open(db: &Db, count: Option<u64>, create: bool) -> Result<Self, Failure> {
        let open = |i| {
            let name = format!("bench{i}");
            match db.keyspace(&name) {
                Err(Error::UnknownKeyspace { .. }) if create => {
                    db.create_keyspace(&name, KeyspaceOptions::new())
                }
                opened => opened,
            }
        };
        let named = (0..count.unwrap_or(0)).map(open).collect::<Result<_, _>>()?;
        Ok(Keyspaces { default: Keyspace::clone(db), named })
    }

    /// The one that an index belongs to.
    #[inline]
    pub fn of(&self, index: u64) -> &Keyspace {
        let number = index.checked_rem(self.named.len() as u64).unwrap_or(0);
        self.named.get(number as usize).unwrap_or(&self.default)
    }

    /// Writes a batch across keyspaces.
    #[inline]
    pub fn write(&self, batch: Batch) -> sidebloom::Result<()> {
        self.default.write(batch)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Keyspace> {
        self.named.iter().chain(self.named.is_empty().then_some(&self.default))
    }

    /// A random choice of a keyspace, for [`random_index`](Self::random_index).
    #[inline]
    pub fn choose(&self, rng: &mut Rng) -> u64 {
        if self.named.is_empty() { 0 } else { rng.below(self.named.len() as u64) }
    }

    /// A random index of the chosen keyspace. There are at least as many indexes as keyspaces.
    #[inline]
    pub fn random_index(&self, chosen: u64, keys: &KeySpace, rng: &mut Rng) -> u64 {
        let count = self.named.len().max(1) as u64;
        rng.below(keys.num() / count) * count + chosen
    }
}

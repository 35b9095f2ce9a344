//! The transaction that is timed: it reads four keys and writes two of them.

use super::kind::StoreKind;
use crate::error::Result;
use crate::keys::ValueGenerator;

/// Keys that a transaction reads.
pub const READS: usize = 4;
/// Keys that it writes: the first ones of those that it has read.
pub const WRITES: usize = 2;

/// The keys of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picked {
    /// Their indexes, all different.
    pub indexes: [u64; READS],
    /// The keys.
    pub keys: [Vec<u8>; READS],
}

/// A transaction. The generation of each value that it writes is one more than that of the value it has read.
/// So a lost update shows.
pub struct Change<'a> {
    values: &'a ValueGenerator,
    picked: &'a Picked,
    new: [Vec<u8>; WRITES],
}

impl<'a> Change<'a> {
    /// A transaction of these keys.
    pub fn new(values: &'a ValueGenerator, picked: &'a Picked) -> Self {
        Change { values, picked, new: Default::default() }
    }

    /// The keys to read, in order.
    pub fn keys(&self) -> &'a [Vec<u8>] {
        &self.picked.keys
    }

    /// Takes the value that was read for the key at this place.
    pub fn see(&mut self, kind: StoreKind, at: usize, found: Option<&[u8]>) -> Result<()> {
        let index = self.picked.indexes[at];
        let generation = found.and_then(|value| self.values.generation(index, value));
        let Some(generation) = generation else {
            return Err(format!("WRONG ANSWER: {}: a transaction read a wrong value", kind.name()).into());
        };
        if let Some(new) = self.new.get_mut(at) {
            self.values.write(index, generation + 1, new);
        }
        Ok(())
    }

    /// The rows to write, after all keys were read.
    pub fn writes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.picked.keys.iter().map(Vec::as_slice).zip(self.new.iter().map(Vec::as_slice))
    }
}

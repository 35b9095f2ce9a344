//! The keys and values of all passes. Every store gets the same ones in the same order.

use super::change::{Picked, READS, WRITES};
use super::store::Row;
use crate::keys::{KeyGenerator, KeyPresence, SplitMix64, ValueGenerator, YcsbZipf};
use std::collections::HashMap;

/// Length of a key in bytes.
pub const KEY_BYTES: usize = 24;
/// Length of a value in bytes.
pub const VALUE_BYTES: usize = 100;
/// The generation of values that no store may keep: their keys are there already.
pub const REFUSED: u64 = u32::MAX as u64;

/// Generates rows and transactions.
pub struct RowGenerator {
    keys: KeyGenerator,
    /// The values.
    pub values: ValueGenerator,
    /// Keys loaded.
    pub num: u64,
}

/// The rows of a pass of inserts.
#[derive(Debug, Clone, Copy)]
pub struct InsertPlan {
    /// The index of the first new key.
    pub first: u64,
    /// Rows.
    pub rows: u64,
    /// Whether every second row, at random, has a key that was loaded.
    pub half: bool,
    /// Selects these rows.
    pub seed: u64,
}

/// A row of a pass of inserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedRow {
    /// The index of its key.
    pub index: u64,
    /// Whether the key is new.
    pub is_new: bool,
}

impl InsertPlan {
    /// The rows, in order.
    pub fn planned(self, num: u64) -> impl Iterator<Item = PlannedRow> {
        let (mut rng, mut next) = (SplitMix64::new(self.seed), self.first);
        (0..self.rows).map(move |_| {
            if self.half && rng.below(2) == 0 {
                return PlannedRow { index: rng.below(num), is_new: false };
            }
            next += 1;
            PlannedRow { index: next - 1, is_new: true }
        })
    }
}

/// How often each key was written by transactions.
pub type Written = HashMap<u64, u64>;

impl RowGenerator {
    /// Generates rows of stores with this many keys.
    pub fn new(num: u64, seed: u64) -> Self {
        RowGenerator {
            keys: KeyGenerator::new(KEY_BYTES, seed),
            values: ValueGenerator::new(VALUE_BYTES, seed),
            num,
        }
    }

    /// The key of an index.
    pub fn key(&self, index: u64) -> Vec<u8> {
        self.key_with(index, KeyPresence::Present)
    }

    /// A key that no store has, from among those of the loaded keys.
    pub fn missing_key(&self, index: u64) -> Vec<u8> {
        self.key_with(index, KeyPresence::Missing)
    }

    fn key_with(&self, index: u64, presence: KeyPresence) -> Vec<u8> {
        let mut key = Vec::with_capacity(KEY_BYTES);
        self.keys.write(self.keys.rank(index, presence), presence, &mut key);
        key
    }

    /// Fills the rows of these indexes.
    pub fn fill(&self, planned: &[PlannedRow], rows: &mut Vec<Row>) {
        rows.resize_with(planned.len(), Default::default);
        for (planned, (key, value)) in planned.iter().zip(rows) {
            let presence = KeyPresence::Present;
            self.keys.write(self.keys.rank(planned.index, presence), presence, key);
            self.values.write(planned.index, if planned.is_new { 0 } else { REFUSED }, value);
        }
    }

    /// Transactions of a thread, of keys that were loaded.
    pub fn transactions(&self, count: u64, zipf: Option<&YcsbZipf>, seed: u64) -> Vec<Picked> {
        let mut rng = SplitMix64::new(seed);
        let mut pick = || match zipf {
            Some(zipf) => zipf.scrambled(&mut rng),
            None => rng.below(self.num),
        };
        let mut one = || {
            let mut indexes = [u64::MAX; READS];
            for at in 0..READS {
                let mut index = pick();
                while indexes.contains(&index) {
                    index = pick();
                }
                indexes[at] = index;
            }
            Picked { indexes, keys: indexes.map(|index| self.key(index)) }
        };
        (0..count).map(|_| one()).collect()
    }
}

/// Adds what transactions write, once each of them is committed.
pub fn add_writes(written: &mut Written, transactions: &[Picked]) {
    for picked in transactions {
        picked.indexes[..WRITES].iter().for_each(|index| *written.entry(*index).or_default() += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn half_of_the_rows_are_loaded_keys_and_the_others_are_new_ones() {
        let plan = InsertPlan { first: 1000, rows: 2000, half: true, seed: 3 };
        let rows: Vec<_> = plan.planned(1000).collect();
        let new: Vec<u64> = rows.iter().filter(|row| row.is_new).map(|row| row.index).collect();
        assert_eq!(new, (1000..1000 + new.len() as u64).collect::<Vec<_>>());
        assert!((900..1100).contains(&new.len()), "{}", new.len());
        assert!(rows.iter().all(|row| row.is_new == (row.index >= 1000)));
        assert_eq!(rows, plan.planned(1000).collect::<Vec<_>>());
        let all_new = InsertPlan { half: false, ..plan };
        assert!(all_new.planned(1000).all(|row| row.is_new));
    }

    #[test]
    fn a_transaction_has_different_keys_and_each_seed_its_own() {
        let rows = RowGenerator::new(1000, 1);
        let zipf = YcsbZipf::new(1000);
        let picked = rows.transactions(500, Some(&zipf), 7);
        for picked in &picked {
            assert_eq!(picked.indexes.iter().collect::<HashSet<_>>().len(), READS);
            assert!(picked.indexes.iter().all(|index| *index < 1000));
            assert_eq!(picked.keys[3], rows.key(picked.indexes[3]));
        }
        assert_eq!(picked, rows.transactions(500, Some(&zipf), 7));
        assert_ne!(picked, rows.transactions(500, Some(&zipf), 8));
        let mut written = Written::new();
        add_writes(&mut written, &picked);
        assert_eq!(written.values().sum::<u64>(), 1000);
    }
}

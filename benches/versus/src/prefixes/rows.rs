//! Rows and lookups: row `r` of prefix `p` has the key `p/r`, `r` in two digits. Even `r` are written.

use crate::keys::{KeyGenerator, KeyPresence, MIN_KEY_BYTES, SplitMix64, ValueGenerator};

/// Length of a prefix in bytes.
pub const PREFIX_BYTES: usize = MIN_KEY_BYTES;
/// Length of a key in bytes.
pub const KEY_BYTES: usize = PREFIX_BYTES + 3;
/// Length of a value in bytes.
pub const VALUE_BYTES: usize = 100;
/// The most rows of a prefix: every second two-digit number.
pub const ROWS_MAX: u64 = 50;

/// Generates the rows of a store.
pub struct RowGenerator {
    keys: KeyGenerator,
    values: ValueGenerator,
    prefixes: u64,
    rows: u64,
}

impl RowGenerator {
    /// Generates rows of this many prefixes, at most [`ROWS_MAX`] for each.
    pub fn new(prefixes: u64, rows: u64, seed: u64) -> Self {
        let (keys, values) = (KeyGenerator::new(PREFIX_BYTES, seed), ValueGenerator::new(VALUE_BYTES, seed));
        RowGenerator { keys, values, prefixes, rows }
    }

    /// All rows of a prefix, in order.
    pub fn of_prefix(&self, index: u64) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
        let prefix = self.prefix(index, KeyPresence::Present);
        (0..self.rows).map(move |row| {
            let mut value = Vec::new();
            self.values.write(index * self.rows + row, 0, &mut value);
            (key(&prefix, 2 * row), value)
        })
    }

    fn prefix(&self, index: u64, presence: KeyPresence) -> Vec<u8> {
        let mut prefix = Vec::new();
        self.keys.write(self.keys.rank(index, presence), presence, &mut prefix);
        prefix
    }

    /// Every written prefix, in order.
    pub fn present(&self) -> impl Iterator<Item = Vec<u8>> {
        self.keys.sorted(self.prefixes).into_iter().map(|rank| {
            let mut prefix = Vec::new();
            self.keys.write(rank, KeyPresence::Present, &mut prefix);
            prefix
        })
    }

    /// Prefixes without rows, spread evenly among prefixes with rows.
    pub fn absent(&self, count: u64, seed: u64) -> Vec<Vec<u8>> {
        let mut rng = SplitMix64::new(seed);
        (0..count).map(|_| self.prefix(rng.next() >> 2, KeyPresence::Missing)).collect()
    }

    /// Missing keys whose prefixes have rows.
    pub fn missing_keys(&self, count: u64, seed: u64) -> Vec<Vec<u8>> {
        let mut rng = SplitMix64::new(seed);
        let missing = |_| {
            let prefix = self.prefix(rng.below(self.prefixes), KeyPresence::Present);
            key(&prefix, 2 * rng.below(self.rows) + 1)
        };
        (0..count).map(missing).collect()
    }
}

fn key(prefix: &[u8], row: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(KEY_BYTES);
    key.extend_from_slice(prefix);
    key.extend_from_slice(format!("/{row:02}").as_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Absent prefixes and missing keys have no row, and lie among prefixes and keys that have some.
    #[test]
    fn absent_prefixes_and_missing_keys_lie_among_those_that_have_rows() {
        for rows in [1, 10, ROWS_MAX] {
            let generator = RowGenerator::new(300, rows, 7);
            let keys: BTreeSet<Vec<u8>> =
                (0..300).flat_map(|index| generator.of_prefix(index)).map(|(key, _)| key).collect();
            assert_eq!(keys.len() as u64, 300 * rows);
            assert!(keys.iter().all(|key| key.len() == KEY_BYTES));
            let prefixes: BTreeSet<Vec<u8>> = keys.iter().map(|key| key[..PREFIX_BYTES].to_vec()).collect();
            assert_eq!(prefixes.iter().cloned().collect::<Vec<_>>(), generator.present().collect::<Vec<_>>());
            let absent = generator.absent(1000, 3);
            assert!(absent.iter().all(|prefix| prefix.len() == PREFIX_BYTES && !prefixes.contains(prefix)));
            let (first, last) = (prefixes.first().unwrap(), prefixes.last().unwrap());
            let inside = absent.iter().filter(|prefix| first < *prefix && *prefix < last).count();
            assert!(inside > 980, "{inside}");
            for key in generator.missing_keys(1000, 3) {
                assert!(key.len() == KEY_BYTES && !keys.contains(&key));
                assert!(prefixes.contains(&key[..PREFIX_BYTES]));
            }
        }
    }
}

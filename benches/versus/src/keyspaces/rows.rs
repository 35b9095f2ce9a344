//! The rows of the keyspaces. Each keyspace has keys of its own, and its number is in its values, so an
//! answer of another keyspace is noticed.

use crate::keys::{self, KeyGenerator, KeyPresence, SplitMix64, ValueGenerator};

/// Length of keys.
pub const KEY_BYTES: usize = 24;
/// Length of values.
pub const VALUE_BYTES: usize = 100;
/// Rows of a batch while loading.
pub const BATCH: u64 = 100;

/// A row of a keyspace.
#[derive(Debug, Clone, Default)]
pub struct SpaceRow {
    /// The number of the keyspace.
    pub space: usize,
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

/// A key to get.
#[derive(Debug, Clone, Copy)]
pub struct AskedKey {
    /// The index of its row.
    pub index: u64,
    /// The key.
    pub key: [u8; KEY_BYTES],
}

/// Generates rows.
pub struct RowGenerator {
    keys: Vec<KeyGenerator>,
    values: ValueGenerator,
}

impl RowGenerator {
    /// Generates the rows of this many keyspaces.
    pub fn new(spaces: usize, seed: u64) -> Self {
        RowGenerator {
            keys: (0..spaces as u64).map(|space| KeyGenerator::new(KEY_BYTES, seed ^ space << 32)).collect(),
            values: ValueGenerator::new(VALUE_BYTES, seed),
        }
    }

    /// Writes a row of a keyspace.
    pub fn fill(&self, space: usize, index: u64, row: &mut SpaceRow) {
        let keys = &self.keys[space];
        row.space = space;
        keys.write(keys.rank(index, KeyPresence::Present), KeyPresence::Present, &mut row.key);
        self.values.write(index, space as u64, &mut row.value);
    }

    /// A key of a keyspace.
    pub fn asked(&self, space: usize, index: u64, presence: KeyPresence) -> AskedKey {
        let (keys, mut key) = (&self.keys[space], Vec::with_capacity(KEY_BYTES));
        keys.write(keys.rank(index, presence), presence, &mut key);
        let mut asked = AskedKey { index, key: [0; KEY_BYTES] };
        asked.key.copy_from_slice(&key);
        asked
    }

    /// Keys of a keyspace of `num` rows, in random order.
    pub fn random(
        &self,
        space: usize,
        num: u64,
        presence: KeyPresence,
        count: u64,
        seed: u64,
    ) -> Vec<AskedKey> {
        let mut rng = SplitMix64::new(seed);
        (0..count).map(|_| self.asked(space, rng.below(num), presence)).collect()
    }

    /// Whether this is the value of a row.
    pub fn is_value(&self, space: usize, index: u64, value: &[u8]) -> bool {
        self.values.generation(index, value) == Some(space as u64)
    }
}

/// Whether a value says that it is of this row. Reads only its header.
pub fn has_header(space: usize, index: u64, value: &[u8]) -> bool {
    value.len() == VALUE_BYTES && keys::header(value) == Some((index, space as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyspaces_have_different_keys_and_values() {
        let rows = RowGenerator::new(2, 1);
        let (mut one, mut other) = (SpaceRow::default(), SpaceRow::default());
        rows.fill(0, 7, &mut one);
        rows.fill(1, 7, &mut other);
        assert!(one.key != other.key && one.value != other.value);
        assert!(rows.is_value(0, 7, &one.value) && has_header(0, 7, &one.value));
        assert!(!rows.is_value(0, 7, &other.value) && !has_header(0, 7, &other.value));
        assert_eq!(rows.asked(1, 7, KeyPresence::Present).key.as_slice(), other.key);
        assert_ne!(rows.asked(1, 7, KeyPresence::Missing).key.as_slice(), other.key);
    }
}

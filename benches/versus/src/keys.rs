//! The keys and values of every workload. Index and seed determine them, so every answer can be checked.
//!
//! Present key `i` is the decimal form of a 64-bit permutation of `2 i`, missing key `i` of `2 i + 1`. So
//! missing keys are as long as present keys, spread evenly among them, and never equal to one.

/// Minimum key length: one letter and 20 digits.
pub const MIN_KEY_BYTES: usize = 21;
/// Minimum value length: the header.
pub const MIN_VALUE_BYTES: usize = 16;
const POOL_BYTES: usize = 1 << 20;

/// A permutation of the 64-bit numbers (the finalizer of SplitMix64).
pub fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Which of the keys of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPresence {
    /// The key that was written.
    Present,
    /// A missing key between the keys that were written.
    Missing,
    /// A missing key before the first or after the last key that was written.
    Outside,
}

/// Generates the keys of an execution.
#[derive(Debug, Clone)]
pub struct KeyGenerator {
    key_bytes: usize,
    seed: u64,
}

impl KeyGenerator {
    /// Generates keys of this length, at least [`MIN_KEY_BYTES`].
    pub fn new(key_bytes: usize, seed: u64) -> Self {
        KeyGenerator { key_bytes, seed: mix(seed) }
    }

    /// The rank of a key. Keys sort by rank.
    pub fn rank(&self, index: u64, presence: KeyPresence) -> u64 {
        mix((2 * index + u64::from(presence != KeyPresence::Present)) ^ self.seed)
    }

    /// Writes the key of a rank.
    pub fn write(&self, rank: u64, presence: KeyPresence, key: &mut Vec<u8>) {
        use std::io::Write;
        let first = match presence {
            KeyPresence::Outside if rank.is_multiple_of(2) => b't',
            KeyPresence::Outside => b'v',
            _ => b'u',
        };
        key.clear();
        key.push(first);
        key.extend(b"ser".iter().cycle().take(self.key_bytes - MIN_KEY_BYTES));
        // Writing to a vector cannot fail.
        let _ = write!(key, "{rank:020}");
    }

    /// The ranks of the first `count` keys, sorted.
    pub fn sorted(&self, count: u64) -> Vec<u64> {
        let mut ranks: Vec<u64> = (0..count).map(|index| self.rank(index, KeyPresence::Present)).collect();
        ranks.sort_unstable();
        ranks
    }
}

/// Generates values: index and generation, then bytes derived from both. Half are zeros, so values compress.
#[derive(Debug)]
pub struct ValueGenerator {
    value_bytes: usize,
    pool: Vec<u8>,
}

impl ValueGenerator {
    /// Generates values of this length, at least [`MIN_VALUE_BYTES`].
    pub fn new(value_bytes: usize, seed: u64) -> Self {
        let words = (0..(POOL_BYTES + value_bytes) as u64 / 16 + 2).flat_map(|i| [mix(i ^ seed), 0]);
        ValueGenerator { value_bytes, pool: words.flat_map(u64::to_le_bytes).collect() }
    }

    fn filling(&self, index: u64, generation: u64) -> &[u8] {
        let start = mix(index ^ generation << 40) as usize % POOL_BYTES;
        &self.pool[start..start + self.value_bytes - MIN_VALUE_BYTES]
    }

    /// Writes the value of an index in a generation.
    pub fn write(&self, index: u64, generation: u64, value: &mut Vec<u8>) {
        value.clear();
        value.extend_from_slice(&index.to_le_bytes());
        value.extend_from_slice(&generation.to_le_bytes());
        value.extend_from_slice(self.filling(index, generation));
    }

    /// The generation of a value of this index; `None` if the bytes are not such a value.
    pub fn generation(&self, index: u64, value: &[u8]) -> Option<u64> {
        let (found, generation) = header(value)?;
        let whole = found == index
            && value.len() == self.value_bytes
            && value[MIN_VALUE_BYTES..] == *self.filling(index, generation);
        whole.then_some(generation)
    }
}

/// The index and the generation in a value's header.
pub fn header(value: &[u8]) -> Option<(u64, u64)> {
    let word = |at: usize| value.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    Some((word(0)?, word(8)?))
}

/// A fast, reproducible random number generator.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Each seed gives its own stream.
    pub fn new(seed: u64) -> Self {
        SplitMix64(mix(seed))
    }

    /// A random number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A random number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// A random number from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The Zipf distribution with exponent 0.99, sampled as in YCSB (Gray et al., "Quickly generating
/// billion-record synthetic databases", 1994).
#[derive(Debug)]
pub struct YcsbZipf {
    n: u64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl YcsbZipf {
    const THETA: f64 = 0.99;

    /// A distribution over `n` items.
    pub fn new(n: u64) -> Self {
        let zeta = |n: u64| (1..=n).map(|i| (i as f64).powf(-Self::THETA)).sum::<f64>();
        let all = zeta(n);
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - Self::THETA)) / (1.0 - zeta(2) / all);
        YcsbZipf { n, zeta: all, alpha: 1.0 / (1.0 - Self::THETA), eta }
    }

    /// A random popularity rank. Rank 0 is the most frequent.
    pub fn rank(&self, rng: &mut SplitMix64) -> u64 {
        let u = rng.unit();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5f64.powf(Self::THETA) {
            return 1;
        }
        ((self.n as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64).min(self.n - 1)
    }

    /// A random item. The popular items are spread over the whole range.
    pub fn scrambled(&self, rng: &mut SplitMix64) -> u64 {
        mix(self.rank(rng)) % self.n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_keys_have_the_length_and_range_of_present_keys_and_equal_none() {
        let keys = KeyGenerator::new(24, 7);
        let key = |index, presence| {
            let mut key = Vec::new();
            keys.write(keys.rank(index, presence), presence, &mut key);
            key
        };
        let present: std::collections::BTreeSet<_> =
            (0..2000).map(|i| key(i, KeyPresence::Present)).collect();
        assert_eq!(present.len(), 2000);
        let (first, last) = (present.first().unwrap(), present.last().unwrap());
        for i in 0..2000 {
            let missing = key(i, KeyPresence::Missing);
            assert!(missing.len() == 24 && !present.contains(&missing));
            let outside = key(i, KeyPresence::Outside);
            assert!(outside.len() == 24 && (&outside < first || &outside > last));
        }
    }

    #[test]
    fn a_value_has_a_generation_unless_its_index_is_wrong_or_a_bit_flipped() {
        let values = ValueGenerator::new(100, 3);
        let mut value = Vec::new();
        values.write(5, 9, &mut value);
        assert_eq!(values.generation(5, &value), Some(9));
        assert_eq!(values.generation(6, &value), None);
        value[60] ^= 1;
        assert_eq!(values.generation(5, &value), None);
    }

    #[test]
    fn zipf_favors_low_ranks_and_stays_in_range() {
        let (zipf, mut rng) = (YcsbZipf::new(1000), SplitMix64::new(1));
        let mut counts = [0u32; 1000];
        (0..100_000).for_each(|_| counts[zipf.rank(&mut rng) as usize] += 1);
        assert!(counts[0] > counts[1] && counts[1] > counts[10] && counts[10] > counts[500]);
    }
}

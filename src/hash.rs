//! The key hash: one 64-bit xxh3 per operation, shared by every filter that is asked.
//!
//! The function is frozen: filters on disk hold its output, so the golden vectors below may never change.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed, xxh3_128_with_seed};

/// Hashes a key with the store's seed (drawn at creation and kept in its manifest, so that nobody can prepare keys that collide).
#[inline]
pub fn hash_key(key: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(key, seed)
}

/// Both halves, low first, of a key's seeded 128-bit xxh3: for filters that draw many positions from one hash. Frozen as well.
#[inline]
pub fn hash_key_128(key: &[u8], seed: u64) -> (u64, u64) {
    let both = xxh3_128_with_seed(key, seed);
    (both as u64, (both >> 64) as u64)
}

/// Checksum of large byte ranges: the lines of a filter, the digest of a segment. 64 bits, unseeded xxh3.
pub fn digest(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The streaming form of [`digest`].
#[derive(Clone, Default)]
pub struct Digest(xxhash_rust::xxh3::Xxh3);

impl Digest {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far.
    pub fn finish(&self) -> u64 {
        self.0.digest()
    }
}

/// An unpredictable number, for ids and seeds: the standard library's own source of hash keys, which the operating system seeds.
pub fn random_u64() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::time::SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_vectors_are_frozen() {
        let long: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let found: Vec<u64> = [(&b""[..], 0), (b"a", 0), (b"a", 1), (b"sidebloom", 42), (&long, 7)]
            .map(|(key, seed)| hash_key(key, seed))
            .to_vec();
        assert_eq!(found, GOLDEN);
    }

    const GOLDEN: [u64; 5] = [
        0x2d06_8005_38d3_94c2, // xxHash's own published value for the empty input
        16629034431890738719,
        15201566949650179872,
        8677045340567232977,
        18117574356104367755,
    ];

    #[test]
    fn golden_vector_of_the_128_bit_hash_is_xxhash_s_own() {
        // XXH3_128bits of the empty input: high 99aa06d3014798d8, low 6001c324468d497f.
        assert_eq!(hash_key_128(b"", 0), (0x6001_c324_468d_497f, 0x99aa_06d3_0147_98d8));
    }

    #[test]
    fn streamed_digest_equals_the_whole() {
        let bytes: Vec<u8> = (0..5000u32).map(|i| (i * 7) as u8).collect();
        let mut digest_of_parts = Digest::default();
        bytes.chunks(333).for_each(|part| digest_of_parts.update(part));
        assert_eq!(digest_of_parts.finish(), digest(&bytes));
    }
}

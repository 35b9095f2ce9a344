//! The key hash: one 64-bit hash per operation, shared by every filter that is asked, and the hashes that a guard stores.
//!
//! XXH3 is fast but no keyed function that resists chosen keys: in its seeded mode, keys of 17 to 240 bytes are mixed by products of
//! (word ^ (secret + seed)) and (word ^ (secret - seed)), whose structure does not depend on the seed. About 2^17 keys can be chosen,
//! without knowing the seed, so that some two of them collide in 64 and 128 bits for most seeds: `tests/guard/chosen_keys.rs` does it.
//! XXH3 therefore serves only where a collision costs time, never where it decides an answer. SipHash-1-3 under a secret 128-bit key
//! (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012) is a pseudorandom function: without the key, chosen keys collide no
//! more often than random ones.
//!
//! The functions are frozen: filters on disk hold their output, so the golden vectors below may never change.

use crate::error::{Error, Result};
use siphasher::{sip, sip128};
use std::fmt;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed, xxh3_128_with_seed};

/// Which function hashes the keys of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyHash {
    /// XXH3 with a random 64-bit seed. Somebody who chooses keys can make some of them collide without knowing the seed; in a store that
    /// costs a read of a block, and changes no answer.
    #[default]
    Xxh3,
    /// SipHash-1-3 under a secret random 128-bit key: nobody without the key can choose keys that collide. For a key of 24 bytes
    /// 10.0 ns against 1.9, and 13.5 against 3.3 for 128 bits (Intel Xeon, Sapphire Rapids; the fastest samples of
    /// `cargo bench -p micro --bench parts -- hash`).
    SipHash13,
}

impl KeyHash {
    /// Its name for people: "xxh3-64".
    pub fn name(self) -> &'static str {
        match self {
            KeyHash::Xxh3 => "xxh3-64",
            KeyHash::SipHash13 => "siphash-1-3",
        }
    }
}

/// A function from keys to hashes: which one, and its seed or secret key. `42.into()` is XXH3 with the seed 42.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHasher {
    function: KeyHash,
    /// XXH3 has its seed in the first, and zero in the second.
    key: [u64; 2],
}

impl KeyHasher {
    /// With a secret key, or seed, from the operating system's random numbers.
    ///
    /// # Errors
    /// [`Error::Io`] when the operating system gives none.
    pub fn random(function: KeyHash) -> Result<Self> {
        let [seed, second] = random_key()?;
        Ok(match function {
            KeyHash::Xxh3 => KeyHasher::from(seed),
            KeyHash::SipHash13 => KeyHasher::siphash13([seed, second]),
        })
    }

    /// SipHash-1-3 under a key: its 16 bytes as two little-endian words.
    pub const fn siphash13(key: [u64; 2]) -> Self {
        KeyHasher { function: KeyHash::SipHash13, key }
    }

    /// Which function.
    pub fn function(&self) -> KeyHash {
        self.function
    }

    /// The seed, of XXH3; SipHash's key stays secret.
    pub fn seed(&self) -> Option<u64> {
        let [seed, _] = self.key;
        (self.function == KeyHash::Xxh3).then_some(seed)
    }

    /// The 64-bit hash of a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        match self.function {
            KeyHash::Xxh3 => hash_key(key, self.key[0]),
            KeyHash::SipHash13 => self.siphash(key),
        }
    }

    /// Out of line, so that the default's path stays small.
    #[inline(never)]
    fn siphash(&self, key: &[u8]) -> u64 {
        sip::SipHasher13::new_with_keys(self.key[0], self.key[1]).hash(key)
    }

    /// The 128-bit hash of a key; of SipHash, not an extension of the 64-bit one.
    #[inline]
    pub fn hash_128(&self, key: &[u8]) -> u128 {
        match self.function {
            KeyHash::Xxh3 => xxh3_128_with_seed(key, self.key[0]),
            KeyHash::SipHash13 => {
                sip128::SipHasher13::new_with_keys(self.key[0], self.key[1]).hash(key).as_u128()
            }
        }
    }

    /// What files keep of it: the code of the function, and the key.
    pub fn to_code(self) -> (u8, [u64; 2]) {
        let code = match self.function {
            KeyHash::Xxh3 => XXH3_64,
            KeyHash::SipHash13 => SIPHASH_1_3,
        };
        (code, self.key)
    }

    /// `None` for a code of no function here, or a key that the function does not have.
    pub fn from_code(code: u8, key: [u64; 2]) -> Option<Self> {
        match (code, key) {
            (XXH3_64, [seed, 0]) => Some(KeyHasher::from(seed)),
            (SIPHASH_1_3, key) => Some(KeyHasher::siphash13(key)),
            _ => None,
        }
    }
}

/// The codes of the functions in every file format. 2 and 3 are those of filters that stand alone: `format/kind.rs`.
pub const XXH3_64: u8 = 1;
/// SipHash-1-3, 64 or 128 bits.
pub const SIPHASH_1_3: u8 = 4;

impl From<u64> for KeyHasher {
    fn from(seed: u64) -> Self {
        KeyHasher { function: KeyHash::Xxh3, key: [seed, 0] }
    }
}

impl fmt::Debug for KeyHasher {
    /// Without the key, which a log must not tell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyHasher({})", self.function.name())
    }
}

/// The 64-bit XXH3 of a key.
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

/// As [`digest`], of bytes that are right in one place only: the place is hashed as well.
pub fn digest_at(bytes: &[u8], place: u64) -> u64 {
    xxh3_64_with_seed(bytes, place)
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

/// A number for ids, that no other store has: 64 bits of the standard library's own hash keys, which the operating system seeds.
pub fn random_u64() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::time::SystemTime::now())
}

/// 128 random bits of the operating system, for secrets.
fn random_key() -> Result<[u64; 2]> {
    let draw = || Ok([getrandom::u64()?, getrandom::u64()?]);
    draw().map_err(|e: getrandom::Error| Error::io("read", "the operating system's random numbers", e.into()))
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

    /// The reference's key 00 01 … 0f and its input 00 01 … 0e. The values are those of another implementation, which gives SipHash-2-4 the
    /// published a129ca6149be45e5 (64 bits, 15 bytes) and a3817f04ba25a8e66df67214c7550293 (128 bits, empty).
    #[test]
    fn golden_vectors_of_siphash_are_frozen() {
        let hasher = KeyHasher::siphash13([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        let input: Vec<u8> = (0..15).collect();
        assert_eq!([hasher.hash(b""), hasher.hash(&input)], [0xabac_0158_050f_c4dc, 0xd320_d86d_2a51_9956]);
        assert_eq!(
            [hasher.hash_128(b""), hasher.hash_128(&input)],
            [0x0130_30dd_6adb_62fd_bea5_8827_b2bc_7ee7, 0x0901_7e1e_eccd_2129_6c52_bdb2_0555_7ec1]
        );
    }

    #[test]
    fn codes_come_back_and_others_are_refused() {
        for hasher in [KeyHasher::from(7), KeyHasher::siphash13([7, 8])] {
            let (code, key) = hasher.to_code();
            assert_eq!(KeyHasher::from_code(code, key), Some(hasher));
        }
        assert_eq!(KeyHasher::from_code(XXH3_64, [7, 8]), None);
        assert!([0, 2, 3, 5].iter().all(|&code| KeyHasher::from_code(code, [7, 0]).is_none()));
    }

    #[test]
    fn random_hashers_differ_in_both_words_and_keep_their_key_to_themselves() {
        let [a, b] = [(); 2].map(|()| KeyHasher::random(KeyHash::SipHash13).unwrap());
        assert!(a.key[0] != b.key[0] && a.key[1] != b.key[1] && a.key[0] != a.key[1]);
        assert_eq!(format!("{a:?}"), "KeyHasher(siphash-1-3)");
        assert_eq!(a.seed(), None);
    }

    #[test]
    fn streamed_digest_equals_the_whole() {
        let bytes: Vec<u8> = (0..5000u32).map(|i| (i * 7) as u8).collect();
        let mut digest_of_parts = Digest::default();
        bytes.chunks(333).for_each(|part| digest_of_parts.update(part));
        assert_eq!(digest_of_parts.finish(), digest(&bytes));
    }
}

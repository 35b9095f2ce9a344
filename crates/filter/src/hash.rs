//! Key hashes: the 64-bit hash that all filters of a lookup share, the 128-bit hashes of stand-alone filters
//! and guards, and digests.
//!
//! XXH3 is fast, but its seed does not protect against chosen keys: keys of 17 to 240 bytes are mixed by
//! products of (word ^ (secret + seed)) and (word ^ (secret - seed)), whose structure does not depend on the
//! seed. Without knowing the seed, one can choose about 2^17 keys of which two collide in 64 and 128 bits for
//! most seeds: `tests/guard/chosen_keys.rs` does it. XXH3 is therefore used only where a collision costs
//! time, never where it could change an answer. SipHash-1-3 under a secret 128-bit key (Aumasson and
//! Bernstein, "SipHash: a fast short-input PRF", 2012) is a pseudorandom function: to someone without the
//! key, chosen keys collide no more often than random ones.
//!
//! The functions are frozen: stored filters depend on their output, so the golden vectors below never change.

use crate::error::{Error, Result};
use siphasher::{sip, sip128};
use std::fmt;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed, xxh3_128_with_seed};

/// The function that hashes the keys of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyHash {
    /// XXH3 with a random 64-bit seed. An attacker who chooses keys can make some of them collide without
    /// knowing the seed. In a store, a collision costs a block read, and changes no answer.
    #[default]
    Xxh3,
    /// SipHash-1-3 under a secret random 128-bit key. Nobody without the key can choose keys that collide. A
    /// 64-bit hash of a 24-byte key takes 10.0 ns instead of 1.9, a 128-bit hash 13.5 ns instead of 3.3
    /// (Intel Xeon, Sapphire Rapids; the fastest samples of `cargo bench -p micro --bench parts -- hash`).
    SipHash13,
}

impl KeyHash {
    /// The display name: "xxh3-64".
    pub fn name(self) -> &'static str {
        match self {
            KeyHash::Xxh3 => "xxh3-64",
            KeyHash::SipHash13 => "siphash-1-3",
        }
    }
}

/// A hash function with its seed or secret key. `42.into()` is XXH3 with the seed 42.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHasher {
    function: KeyHash,
    /// For XXH3, the seed and zero.
    key: [u64; 2],
}

impl KeyHasher {
    /// A hasher with a random seed or secret key from the operating system.
    ///
    /// # Errors
    /// [`Error::Io`] if the operating system provides none.
    pub fn random(function: KeyHash) -> Result<Self> {
        let [seed, second] = random_key()?;
        Ok(match function {
            KeyHash::Xxh3 => KeyHasher::from(seed),
            KeyHash::SipHash13 => KeyHasher::siphash13([seed, second]),
        })
    }

    /// SipHash-1-3 under a key, given as its 16 bytes in two little-endian words.
    pub const fn siphash13(key: [u64; 2]) -> Self {
        KeyHasher { function: KeyHash::SipHash13, key }
    }

    /// The function.
    pub fn function(&self) -> KeyHash {
        self.function
    }

    /// The seed of XXH3; `None` for SipHash, whose key is secret.
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

    /// Out of line, to keep the default path small.
    #[inline(never)]
    fn siphash(&self, key: &[u8]) -> u64 {
        sip::SipHasher13::new_with_keys(self.key[0], self.key[1]).hash(key)
    }

    /// The 128-bit hash of a key. For SipHash, it does not extend the 64-bit hash.
    #[inline]
    pub fn hash_128(&self, key: &[u8]) -> u128 {
        match self.function {
            KeyHash::Xxh3 => xxh3_128_with_seed(key, self.key[0]),
            KeyHash::SipHash13 => {
                sip128::SipHasher13::new_with_keys(self.key[0], self.key[1]).hash(key).as_u128()
            }
        }
    }

    /// The stored form: the function's code and key. Write it to files only: SipHash's key is secret.
    pub fn to_code(self) -> (u8, [u64; 2]) {
        let code = match self.function {
            KeyHash::Xxh3 => XXH3_64,
            KeyHash::SipHash13 => SIPHASH_1_3,
        };
        (code, self.key)
    }

    /// The hasher with this stored form; `None` for an unknown code, or a key that the function cannot have.
    pub fn from_code(code: u8, key: [u64; 2]) -> Option<Self> {
        match (code, key) {
            (XXH3_64, [seed, 0]) => Some(KeyHasher::from(seed)),
            (SIPHASH_1_3, key) => Some(KeyHasher::siphash13(key)),
            _ => None,
        }
    }
}

/// The code of 64-bit XXH3 in every file format. Codes 2 and 3 belong to stand-alone filters
/// ([`format::kind`](crate::format::kind)).
pub const XXH3_64: u8 = 1;
/// The code of SipHash-1-3, with 64 or 128 bits, in every file format.
pub const SIPHASH_1_3: u8 = 4;

/// Whether a code belongs to no hash of this version or an earlier one, so it must come from a newer one.
pub fn is_newer_code(code: u8) -> bool {
    code > SIPHASH_1_3
}

impl From<u64> for KeyHasher {
    fn from(seed: u64) -> Self {
        KeyHasher { function: KeyHash::Xxh3, key: [seed, 0] }
    }
}

impl fmt::Debug for KeyHasher {
    /// Omits the key, which must not appear in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyHasher({})", self.function.name())
    }
}

/// The 64-bit XXH3 of a key.
#[inline]
pub fn hash_key(key: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(key, seed)
}

/// Both halves, low first, of the seeded 128-bit XXH3 of a key, for filters that derive many positions from
/// one hash. Also frozen.
#[inline]
pub fn hash_key_128(key: &[u8], seed: u64) -> (u64, u64) {
    let both = xxh3_128_with_seed(key, seed);
    (both as u64, (both >> 64) as u64)
}

/// The checksum for large byte ranges, such as a filter's lines or a whole segment: unseeded 64-bit XXH3.
pub fn digest(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// A [`digest`] of bytes that are valid at one place only: it also covers the place.
pub fn digest_at(bytes: &[u8], place: u64) -> u64 {
    xxh3_64_with_seed(bytes, place)
}

/// A streaming [`digest`].
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

/// A random number for unique ids, from the hash keys of the standard library, which the operating system
/// seeds. Not for secrets.
pub fn random_u64() -> u64 {
    if cfg!(fuzzing) {
        return 1; // So that fuzzer findings are reproducible.
    }
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::time::SystemTime::now())
}

/// 128 random bits from the operating system, for secrets.
fn random_key() -> Result<[u64; 2]> {
    if cfg!(fuzzing) {
        return Ok([2, 3]);
    }
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

    /// The reference's key 00 01 … 0f and its input 00 01 … 0e. The values are those of another
    /// implementation, which gives SipHash-2-4 the published a129ca6149be45e5 (64 bits, 15 bytes) and
    /// a3817f04ba25a8e66df67214c7550293 (128 bits, empty).
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

//! The `k` positions of a key.

use super::murmur3;
use crate::error::Result;
use crate::hash::{KeyHash, KeyHasher, hash_key_128};
use std::fmt;

/// The 128-bit hash function that the positions of a key come from, with its seed or secret key. Two filters
/// can be combined only if they have the same one.
///
/// # Chosen keys
/// An attacker who knows the seed, or attacks XXH3 without it ([`KeyHash::Xxh3`]), can choose keys that are
/// false positives. In a filter that only grows, this costs one false positive per chosen key. Where keys are
/// removed, it can make the filter deny existing keys. A [`CountingBloom`](super::CountingBloom) therefore
/// uses SipHash-1-3 under a secret key by default.
///
/// # The positions (frozen: filters on disk depend on them)
/// With `h1`, `h2` the halves of the hash and `m` the bits of the filter, position `i` (0 ≤ i < k) is
///
/// > a + i·b + i(i−1)/2·c  mod m, with a = h1 mod m, b = h2 mod m, c = h3 mod m,
///
/// where h3 is h1 with its 32-bit halves swapped.
///
/// a + i·b is the double hashing of Kirsch and Mitzenmacher ("Less Hashing, Same Performance", 2006). Alone
/// it has only m² outcomes, and those where `b` shares a large factor with `m` repeat few positions. This
/// hurts small filters with low rates: 1000 keys at 0.0001 % measured 46 times the rate of the formula. The
/// third term is the triple hashing of Dillinger and Manolios ("Bloom Filters in Probabilistic Verification",
/// 2004), from bits of `h1` that the remainder mostly drops. It costs one addition per position.
///
/// Remainders make folding exact: m/2 divides m, so x mod m/2 = (x mod m) mod m/2 for every position.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HashFunction {
    /// XXH3, 128 bits, with a seed: the fastest.
    Xxh3(u64),
    /// MurmurHash3 x64 128 with a seed, which most published filters use.
    Murmur3(u64),
    /// SipHash-1-3, 128 bits, under a key: its 16 bytes as two little-endian words. [`secret`](Self::secret)
    /// creates a random one.
    SipHash13([u64; 2]),
}

impl Default for HashFunction {
    /// XXH3 with seed 0.
    fn default() -> Self {
        HashFunction::Xxh3(0)
    }
}

impl fmt::Debug for HashFunction {
    /// Omits the secret key, which must not appear in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seed() {
            Some(seed) => write!(f, "{} with seed {seed}", self.name()),
            None => write!(f, "{} with a secret key", self.name()),
        }
    }
}

impl HashFunction {
    /// SipHash-1-3 under a new secret key from the random numbers of the operating system.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the operating system provides none.
    pub fn secret() -> Result<Self> {
        let (_, key) = KeyHasher::random(KeyHash::SipHash13)?.to_code();
        Ok(HashFunction::SipHash13(key))
    }

    /// XXH3 with a seed from the operating system's random numbers, so that filters of the same keys err
    /// independently. The seed is no secret: anybody who has the filter has it.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the operating system provides none.
    pub fn random() -> Result<Self> {
        let (_, [seed, _]) = KeyHasher::random(KeyHash::Xxh3)?.to_code();
        Ok(HashFunction::Xxh3(seed))
    }

    /// The display name: "xxh3-128".
    pub fn name(self) -> &'static str {
        match self {
            HashFunction::Xxh3(_) => "xxh3-128",
            HashFunction::Murmur3(_) => "murmur3-x64-128",
            HashFunction::SipHash13(_) => "siphash-1-3-128",
        }
    }

    /// The seed; `None` for SipHash, whose key stays secret.
    pub fn seed(self) -> Option<u64> {
        match self {
            HashFunction::Xxh3(seed) | HashFunction::Murmur3(seed) => Some(seed),
            HashFunction::SipHash13(_) => None,
        }
    }

    /// The two halves of the hash of a key.
    #[inline]
    pub(crate) fn hash(self, key: &[u8]) -> (u64, u64) {
        match self {
            HashFunction::Xxh3(seed) => hash_key_128(key, seed),
            HashFunction::Murmur3(seed) => murmur3::hash(key, seed),
            HashFunction::SipHash13(secret) => {
                let both = KeyHasher::siphash13(secret).hash_128(key);
                (both as u64, (both >> 64) as u64)
            }
        }
    }

    /// The `k` positions of a key in `m` bits; `m` must not be 0.
    #[inline]
    pub(super) fn positions(self, key: &[u8], m: u64, k: u32) -> impl Iterator<Item = u64> + use<> {
        positions_of(self.hash(key), m, k)
    }
}

/// The `k` positions of a hash in `m` bits; `m` must not be 0.
#[inline]
pub(super) fn positions_of((h1, h2): (u64, u64), m: u64, k: u32) -> impl Iterator<Item = u64> + use<> {
    let (mut position, mut step, change) = (h1 % m, h2 % m, h1.rotate_left(32) % m);
    (0..k).map(move |_| {
        let here = position;
        position = sum_mod(position, step, m);
        step = sum_mod(step, change, m);
        here
    })
}

/// a + b mod m for a, b < m ≤ 2⁶³.
#[inline]
fn sum_mod(a: u64, b: u64, m: u64) -> u64 {
    let sum = a + b;
    if sum >= m { sum - m } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_the_formula_and_frozen() {
        let functions = [HashFunction::Xxh3(7), HashFunction::Murmur3(7), HashFunction::SipHash13([7, 8])];
        for function in functions {
            let (h1, h2) = function.hash(b"sidebloom");
            let m = 1536u64;
            let wide = |x: u64| u128::from(x);
            let formula = |i: u128| {
                let (a, b, c) = (wide(h1 % m), wide(h2 % m), wide(h1.rotate_left(32) % m));
                ((a + i * b + i * i.saturating_sub(1) / 2 * c) % wide(m)) as u64
            };
            let positions: Vec<u64> = function.positions(b"sidebloom", m, 20).collect();
            assert_eq!(positions, (0..20).map(formula).collect::<Vec<_>>());
        }
        let first =
            functions.map(|function| function.positions(b"sidebloom", 1 << 20, 3).collect::<Vec<_>>());
        assert_eq!(first, GOLDEN);
    }

    const GOLDEN: [[u64; 3]; 3] =
        [[322_813, 220_565, 839_387], [858_990, 962_297, 728_014], [917_882, 841_067, 706_289]];

    #[test]
    fn secret_keys_differ_and_are_not_told() {
        let [a, b] = [(); 2].map(|()| HashFunction::secret().unwrap());
        assert_ne!(a, b);
        assert_eq!((format!("{a:?}").as_str(), a.seed()), ("siphash-1-3-128 with a secret key", None));
    }

    #[test]
    fn random_seeds_differ_and_are_told() {
        let [a, b] = [(); 2].map(|()| HashFunction::random().unwrap());
        assert_ne!(a, b);
        assert_eq!((a.name(), a.seed().is_some()), ("xxh3-128", true));
    }

    #[test]
    fn folding_halves_commutes_with_taking_the_remainder() {
        let at = |m| HashFunction::Xxh3(1).positions(b"a key", m, 12).collect::<Vec<_>>();
        assert_eq!(at(4608).iter().map(|p| p % 2304).collect::<Vec<_>>(), at(2304));
    }
}

//! The workloads' keys and values. Generated in a few nanoseconds each, from `--num` and `--seed` alone.
//!
//! The key space has `4 × num` slots of equal width, four per index: one holds a loaded key, one a key that
//! is always absent, one a key that YCSB D and E insert. So absent keys lie between present keys everywhere
//! and have the same length. A key is its position in the key space as 16 hex digits, followed by digits
//! derived from them up to the requested length.

/// The kinds of keys of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum KeyKind {
    /// Loaded by the fills.
    Present = 0,
    /// Never written.
    Absent = 1,
    /// Inserted by YCSB D and E.
    Inserted = 2,
}

/// Shortest key: the digits that distinguish all keys.
pub const MIN_KEY_BYTES: usize = 16;

/// All keys of a benchmark.
#[derive(Debug, Clone)]
pub struct KeySpace {
    num: u64,
    slot_width: u64,
    key_bytes: usize,
    seed: u64,
    order: Permutation,
}

impl KeySpace {
    /// `num` indexes (at least 1), keys of `key_bytes` (at least [`MIN_KEY_BYTES`]).
    pub fn new(num: u64, key_bytes: usize, seed: u64) -> Self {
        let seed = mix(seed);
        KeySpace {
            num,
            slot_width: u64::MAX / (4 * num),
            key_bytes,
            seed,
            order: Permutation::new(num, seed),
        }
    }

    /// Number of indexes.
    pub fn num(&self) -> u64 {
        self.num
    }

    /// The `i`-th index in random order; every index occurs once.
    #[inline]
    pub fn shuffled(&self, i: u64) -> u64 {
        self.order.at(i)
    }

    /// Writes a key. Keys of one kind are in the order of their indexes.
    #[inline]
    pub fn write(&self, index: u64, kind: KeyKind, key: &mut Vec<u8>) {
        let slot = index * 4 + kind as u64;
        let mut word = slot * self.slot_width + scale(mix(slot ^ self.seed), self.slot_width);
        key.resize(self.key_bytes, 0);
        for part in key.chunks_mut(16) {
            let digits = hex16(word);
            part.iter_mut().zip(digits).for_each(|(byte, digit)| *byte = digit);
            word = mix(word);
        }
    }
}

/// A random permutation of `0..num`: a bijection on the next power of two, iterated until it is in range.
#[derive(Debug, Clone, Copy)]
struct Permutation {
    num: u64,
    mask: u64,
    half: u32,
    offset: u64,
}

impl Permutation {
    fn new(num: u64, seed: u64) -> Self {
        let bits = 64 - (num - 1).max(1).leading_zeros();
        Permutation { num, mask: u64::MAX >> (64 - bits), half: (bits / 2).max(1), offset: seed }
    }

    #[inline]
    fn at(&self, i: u64) -> u64 {
        // Addition, multiplication by an odd number and xor with the high half are each reversible mod 2^n.
        let mut x = i;
        loop {
            x = x.wrapping_add(self.offset).wrapping_mul(0x9e37_79b9_7f4a_7c15) & self.mask;
            x ^= x >> self.half;
            x = x.wrapping_mul(0xd6e8_feb8_6659_fd93) & self.mask;
            x ^= x >> self.half;
            if x < self.num {
                return x;
            }
        }
    }
}

/// A random-number generator: SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Streams of different seeds are independent.
    pub fn new(seed: u64) -> Self {
        Rng(mix(seed))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from 0 to below `n`.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        scale(self.bits(), n)
    }

    /// A number from 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The finalizer of SplitMix64: a bijection of 64 bits.
#[inline]
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Maps 64 random bits to `0..n`.
#[inline]
fn scale(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

#[inline]
fn hex16(word: u64) -> [u8; 16] {
    let [high, low] = [word >> 32, word & 0xffff_ffff].map(|half| hex8(half).to_be_bytes());
    let mut digits = [0; 16];
    digits[..8].copy_from_slice(&high);
    digits[8..].copy_from_slice(&low);
    digits
}

/// Eight hex digits at once: spread the nibbles to a byte each, then move those above 9 up to the letters.
#[inline]
fn hex8(x: u64) -> u64 {
    let x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    let x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    let x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let letters = ((x + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    x + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'0' - 10)
}

/// Values that compress to about half, like db_bench's: pieces of 100 bytes, each 50 random characters twice.
#[derive(Debug, Clone)]
pub struct Values {
    pool: Vec<u8>,
    len: usize,
}

impl Values {
    /// Values of `len` bytes.
    pub fn new(len: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut pool = Vec::new();
        while pool.len() < (1 << 20) + len {
            let half: Vec<u8> = (0..50).map(|_| b' ' + rng.below(95) as u8).collect();
            pool.extend_from_slice(&half);
            pool.extend_from_slice(&half);
        }
        Values { pool, len }
    }

    /// One value.
    #[inline]
    pub fn pick(&self, random: u64) -> &[u8] {
        let start = (random as usize) & ((1 << 20) - 1);
        self.pool.get(start..start + self.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn keys(space: &KeySpace, kind: KeyKind) -> Vec<Vec<u8>> {
        let mut key = Vec::new();
        let mut write = |i| {
            space.write(i, kind, &mut key);
            key.clone()
        };
        (0..space.num()).map(&mut write).collect()
    }

    #[test]
    fn absent_keys_are_as_long_as_present_ones_and_lie_between_them() {
        let space = KeySpace::new(1000, 24, 7);
        let (present, absent) = (keys(&space, KeyKind::Present), keys(&space, KeyKind::Absent));
        for (i, key) in absent.iter().enumerate() {
            assert_eq!(key.len(), 24);
            assert!(present[i] < *key);
            assert!(present.get(i + 1).is_none_or(|next| key < next));
        }
    }

    #[test]
    fn keys_are_text_of_the_length_asked_for() {
        for len in [16, 17, 24, 100] {
            let space = KeySpace::new(10, len, 1);
            assert!(keys(&space, KeyKind::Inserted).iter().flatten().all(u8::is_ascii_hexdigit));
            assert!(keys(&space, KeyKind::Inserted).iter().all(|key| key.len() == len));
        }
        assert_eq!(hex16(0x0123_4567_89ab_cdef), *b"0123456789abcdef");
    }

    #[test]
    fn the_shuffled_order_visits_every_index_once() {
        for num in [1, 2, 3, 5, 64, 65, 1000] {
            let space = KeySpace::new(num, 16, 3);
            let seen: BTreeSet<u64> = (0..num).map(|i| space.shuffled(i)).collect();
            assert_eq!(seen, (0..num).collect());
        }
    }

    #[test]
    fn the_shuffled_order_looks_random() {
        let space = KeySpace::new(10_000, 16, 3);
        let rises = (1..10_000).filter(|&i| space.shuffled(i) > space.shuffled(i - 1)).count();
        assert!((4_000..6_000).contains(&rises), "{rises} of 9999 steps go up");
    }
}

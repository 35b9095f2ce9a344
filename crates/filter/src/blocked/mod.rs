//! The blocked Bloom filter: each key sets `k` bits of one 512-bit line (Putze, Sanders, Singler 2007).
//!
//! When to choose it: while keys still arrive ([`AtomicBloom`]), and wherever a plain, well-known filter is wanted.
//!
//! # The k bits of a hash (frozen)
//! Bit number `j` (0 ≤ j < k) of a hash is one of the 32 bits of one of a line's sixteen 32-bit words. With `a` and `b` the lowest
//! sixteen bits of the hash and the sixteen above, and `m` and `n` the lower and the upper half of `MULTIPLIERS[j]`, the bit is number
//! `⌊a × m / 2¹⁶⌋ mod 32` of word number `⌊b × n / 2¹⁶⌋ mod 16`: a multiplicative hash for each. In vector code that is one
//! multiplication of sixteen-bit numbers for all words and bits, one shift, one permutation (the word) and one rotation (the bit).
//! Nine free bits, rather than one bit in each of eight 64-bit lanes, keep the rate at the theory's ([`super::sizing`]).

mod atomic;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

pub use atomic::AtomicBloom;

use super::isa::Level;
use super::{
    Asks, BuiltFilter, FetchedAhead, FilterKind, Isa, LINE_BYTES, Line, Lines, Verdict, line_of, sizing,
};
use crate::error::Result;

/// The most bits that a key may set: the 32-bit lanes of a line.
pub const MAX_K: u32 = 16;

/// Pairs of odd 16-bit numbers without structure: the first digits of π's fraction in base 2¹⁶, made odd.
const MULTIPLIERS: [u32; MAX_K as usize] = [
    0x243f_6a89,
    0x85a3_08d3,
    0x1319_8a2f,
    0x0371_7345,
    0xa409_3823,
    0x299f_31d1,
    0x082f_fa99,
    0xec4f_6c89,
    0x4529_21e7,
    0x38d1_1377,
    0xbe55_66cf,
    0x34e9_0c6d,
    0xc0ad_29b7,
    0xc97d_50dd,
    0x3f85_d5b5,
    0xb547_0917,
];

/// The `k` bits of a hash, as positions in its line. The one definition; the vector code computes the same numbers.
#[inline]
fn positions(hash: u64, k: u32) -> impl Iterator<Item = usize> {
    let product = |a: u64, b: u32| ((a as u32 & 0xffff) * (b & 0xffff)) >> 16;
    MULTIPLIERS.iter().take(k as usize).map(move |m| {
        let (word, bit) = (product(hash >> 16, m >> 16) % 16, product(hash, *m) % 32);
        (word * 32 + bit) as usize
    })
}

/// Builds a filter of `bits_per_key` from the hashes of all keys, with the best `k` for what that makes.
pub(super) fn build(hashes: &[u64], bits_per_key: f64) -> Result<BuiltFilter> {
    let keys = hashes.len() as u64;
    let (mut lines, k) = zeroed(keys, bits_per_key)?;
    hashes.iter().for_each(|&hash| insert(&mut lines, hash, k));
    Ok(BuiltFilter { kind: FilterKind::BlockedBloom { k }, keys, lines })
}

/// A filter without keys, of the size and the `k` for `keys` keys.
pub(super) fn empty(keys: u64, bits_per_key: f64) -> Result<BuiltFilter> {
    let (lines, k) = zeroed(keys, bits_per_key)?;
    Ok(BuiltFilter { kind: FilterKind::BlockedBloom { k }, keys: 0, lines })
}

fn zeroed(keys: u64, bits_per_key: f64) -> Result<(Lines, u32)> {
    let lines = Lines::zeroed(sizing::lines_for(keys, bits_per_key)?)?;
    let k = sizing::best_k(keys, lines.len() as u64);
    Ok((lines, k))
}

/// Sets the `k` bits of a hash in its line, of which there is at least one.
#[inline]
pub(super) fn insert(lines: &mut [Line], hash: u64, k: u32) {
    let line = &mut lines[line_of(hash, lines.len())];
    positions(hash, k).for_each(|p| line[p / 8] |= 1 << (p % 8));
}

/// The multipliers of `K` bits, and the first one again in place of the others: vector code tests a bit twice rather than count
/// which of its lanes matter. `K` is at least 1.
#[cfg(target_arch = "x86_64")]
struct Padded<const K: usize>;

#[cfg(target_arch = "x86_64")]
impl<const K: usize> Padded<K> {
    const MULTIPLIERS: [u32; MAX_K as usize] = {
        let mut padded = [MULTIPLIERS[0]; MAX_K as usize];
        let mut j = 1;
        while j < K {
            padded[j] = MULTIPLIERS[j];
            j += 1;
        }
        padded
    };
}

/// What no lines at all answer. Cold, so that the way that every probe takes is the straight one.
#[cold]
fn no_lines() -> bool {
    true
}

/// Asks for many hashes.
#[inline(always)]
fn many(lines: &[Line], hashes: &[u64], verdicts: &mut [Verdict], contains: impl Fn(u64) -> bool) {
    for (hash, verdict) in FetchedAhead::new(lines, hashes).zip(verdicts) {
        *verdict = Verdict::of(contains(hash));
    }
}

/// A module's functions for `k` bits. More bits than there are multipliers set no more.
macro_rules! for_k {
    ($module:ident, $k:expr, $($each:literal)*) => {
        match $k {
            $($each => Asks { one: $module::contains::<$each>, many: $module::contain::<$each> },)*
            _ => Asks {
                one: $module::contains::<{ MAX_K as usize }>,
                many: $module::contain::<{ MAX_K as usize }>,
            },
        }
    };
}

/// The functions that tell whether all `k` bits of a hash are set in its line; no lines at all deny nothing, and neither do no bits.
pub(super) fn asks(isa: Isa, k: u32) -> Asks {
    match isa.level() {
        Level::Scalar => for_k!(scalar, k, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => for_k!(avx2, k, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => for_k!(avx512, k, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
    }
}

#[cfg(test)]
mod tests;

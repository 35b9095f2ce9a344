//! The blocked Bloom filter: each key sets `k` bits of one 512-bit line (Putze, Sanders, Singler 2007).
//!
//! When to choose it: while keys still arrive ([`AtomicBloom`]), and wherever a plain, well-known filter is wanted.
//!
//! # The k bits of a hash (frozen)
//! With `g` the low 32 bits of the hash, bit number `j` (0 ≤ j < k) is the top nine bits of `g × MULTIPLIERS[j] mod 2³²`: a
//! multiplicative hash per bit. In vector code that is one multiplication for all bits; the top four bits pick a 32-bit word of
//! the line (one permutation) and the next five a bit of it (one rotation), so any `k` up to 16 costs the same.
//! Nine free bits, rather than one bit in each of eight 64-bit lanes, keep the rate at the theory's ([`super::sizing`]).

mod atomic;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

pub use atomic::AtomicBloom;

use super::isa::Level;
use super::{Ask, BuiltFilter, FilterKind, Isa, LINE_BYTES, Line, Lines, line_of, sizing};
use crate::error::Result;

/// The most bits that a key may set: the 32-bit lanes of a line.
pub const MAX_K: u32 = 16;

/// Odd 32-bit numbers without structure: the first digits of π's fraction in base 2³², made odd.
const MULTIPLIERS: [u32; MAX_K as usize] = [
    0x243f_6a89,
    0x85a3_08d3,
    0x1319_8a2f,
    0x0370_7345,
    0xa409_3823,
    0x299f_31d1,
    0x082e_fa99,
    0xec4e_6c89,
    0x4528_21e7,
    0x38d0_1377,
    0xbe54_66cf,
    0x34e9_0c6d,
    0xc0ac_29b7,
    0xc97c_50dd,
    0x3f84_d5b5,
    0xb547_0917,
];

/// The `k` bits of a hash, as positions in its line. The one definition; the vector code computes the same numbers.
#[inline]
fn positions(hash: u64, k: u32) -> impl Iterator<Item = usize> {
    MULTIPLIERS.iter().take(k as usize).map(move |m| ((hash as u32).wrapping_mul(*m) >> 23) as usize)
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

/// The `contains::<k>` of a module. More bits than there are multipliers set no more.
macro_rules! for_k {
    ($module:ident, $k:expr, $($each:literal)*) => {
        match $k {
            $($each => $module::contains::<$each>,)*
            _ => $module::contains::<{ MAX_K as usize }>,
        }
    };
}

/// The function that tells whether all `k` bits of a hash are set in its line; no lines at all deny nothing, and neither do no bits.
pub(super) fn ask(isa: Isa, k: u32) -> Ask {
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

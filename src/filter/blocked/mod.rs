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
use super::{BuiltFilter, FilterKind, Isa, LINE_BYTES, Line, line_of, sizing};
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

fn zeroed(keys: u64, bits_per_key: f64) -> Result<(Vec<Line>, u32)> {
    let lines = vec![[0; LINE_BYTES]; sizing::lines_for(keys, bits_per_key)?];
    let k = sizing::best_k(keys, lines.len() as u64);
    Ok((lines, k))
}

/// Sets the `k` bits of a hash in its line, of which there is at least one.
#[inline]
pub(super) fn insert(lines: &mut [Line], hash: u64, k: u32) {
    let line = &mut lines[line_of(hash, lines.len())];
    positions(hash, k).for_each(|p| line[p / 8] |= 1 << (p % 8));
}

/// Whether all `k` bits of the hash are set in its line; no lines at all deny nothing.
#[inline]
pub(super) fn contains(isa: Isa, lines: &[Line], hash: u64, k: u32) -> bool {
    match isa.level() {
        Level::Scalar => scalar::contains(lines, hash, k),
        // SAFETY: an `Isa` of this level exists only where detection found AVX2.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2::contains(lines, hash, k) },
        // SAFETY: an `Isa` of this level exists only where detection found AVX-512F.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::contains(lines, hash, k) },
    }
}

#[cfg(test)]
mod tests;

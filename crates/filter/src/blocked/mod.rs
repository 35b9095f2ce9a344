//! The blocked Bloom filter: each key sets `k` bits of one 512-bit line (Putze, Sanders, Singler 2007).
//!
//! Choose it while keys still arrive ([`AtomicBloom`]), or where a well-known, updatable filter is wanted.
//!
//! # The k bits of a hash (frozen)
//! Bit `j` (0 ≤ j < k) of a hash lies in one of the sixteen 32-bit words of the line. Let `a` be the lowest
//! sixteen bits of the hash, `b` the sixteen bits above them, and `m` and `n` the lower and the upper half of
//! `MULTIPLIERS[j]`. The bit has number `⌊a × m / 2¹⁶⌋ mod 32` in word number `⌊b × n / 2¹⁶⌋ mod 16`: one
//! multiplicative hash for each. Vector code does this with one multiplication of 16-bit numbers for all
//! words and bits, one shift, one permutation (the word) and one rotation (the bit). Nine free bits, rather
//! than one bit in each of eight 64-bit lanes, keep the rate at the theoretical one ([`sizing`]).

mod atomic;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod bits;
pub(crate) mod build;
#[cfg(target_arch = "x86_64")]
mod eights;
mod entry;
pub(crate) mod probe;
mod scalar;
pub mod sizing;

pub use atomic::AtomicBloom;
pub use bits::MAX_K;

#[cfg(test)]
mod tests;

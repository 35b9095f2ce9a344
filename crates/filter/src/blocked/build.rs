//! Building a blocked Bloom filter.

use super::bits::positions;
use super::sizing;
use crate::error::Result;
use crate::line::{Line, line_of};
use crate::lines::Lines;

/// The lines of a filter that holds all hashes at `bits_per_key`, and the best `k` for that size.
pub(crate) fn build(hashes: &[u64], bits_per_key: f64) -> Result<(Lines, u32)> {
    let (mut lines, k) = empty(hashes.len() as u64, bits_per_key)?;
    hashes.iter().for_each(|&hash| insert(&mut lines, hash, k));
    Ok((lines, k))
}

/// The zeroed lines and the best `k` for `keys` keys.
pub(crate) fn empty(keys: u64, bits_per_key: f64) -> Result<(Lines, u32)> {
    let lines = Lines::zeroed(sizing::lines_for(keys, bits_per_key)?)?;
    let k = sizing::best_k(keys, lines.len() as u64);
    Ok((lines, k))
}

/// Sets the `k` bits of a hash in its line. There must be at least one line.
#[inline]
pub(crate) fn insert(lines: &mut [Line], hash: u64, k: u32) {
    let line = &mut lines[line_of(hash, lines.len())];
    positions(hash, k).for_each(|p| line[p / 8] |= 1 << (p % 8));
}

//! The scalar probe, the reference for testing the vector probes.

use super::bits::positions;
use super::entry::entry_points;
use crate::line::Line;

entry_points!();

/// Whether all `K` bits of the hash are set in its line. No early exit: half would be mispredicted.
#[inline]
fn all_set<const K: usize>(line: &Line, hash: u64) -> bool {
    positions(hash, K as u32).fold(1, |all, p| all & (line[p / 8] >> (p % 8))) & 1 == 1
}

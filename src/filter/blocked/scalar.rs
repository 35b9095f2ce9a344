//! The plain probe: the oracle of the vector ones.

use super::{Line, positions};

/// Whether all `k` bits of the hash are set in its line.
#[inline]
pub(super) fn contains(line: &Line, hash: u64, k: u32) -> bool {
    positions(hash, k).all(|p| line[p / 8] >> (p % 8) & 1 == 1)
}

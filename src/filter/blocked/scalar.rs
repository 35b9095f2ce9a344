//! The plain probe: the oracle of the vector ones.

use super::{Line, positions};

/// Whether all `k` bits of the hash are set in its line. Without early exit: the branch would be mispredicted half of the time.
#[inline]
pub(super) fn contains(line: &Line, hash: u64, k: u32) -> bool {
    positions(hash, k).fold(1, |all, p| all & (line[p / 8] >> (p % 8))) == 1
}

//! The plain probe: the oracle of the vector ones.

use super::{Line, line_of, positions};

/// Whether all `k` bits of the hash are set in its line. Without early exit: the branch would be mispredicted half of the time.
/// Out of line, so that the choice between the instruction sets stays small where probes are inlined.
#[inline(never)]
pub(super) fn contains(lines: &[Line], hash: u64, k: u32) -> bool {
    let Some(line) = lines.get(line_of(hash, lines.len())) else { return true };
    positions(hash, k).fold(1, |all, p| all & (line[p / 8] >> (p % 8))) == 1
}

//! The plain probe: the oracle of the vector ones.

use super::{FilterKind, Line, Verdict, line_of, many, positions};

/// Whether all `K` bits of the hash are set in its line. Without early exit: the branch would be mispredicted half of the time.
pub(super) fn contains<const K: usize>(lines: &[Line], hash: u64, _: &FilterKind) -> bool {
    let Some(line) = lines.get(line_of(hash, lines.len())) else { return true };
    positions(hash, K as u32).fold(1, |all, p| all & (line[p / 8] >> (p % 8))) & 1 == 1
}

/// As [`contains`], of many hashes.
pub(super) fn contain<const K: usize>(
    lines: &[Line],
    hashes: &[u64],
    kind: &FilterKind,
    verdicts: &mut [Verdict],
) {
    many(lines, hashes, verdicts, |hash| contains::<K>(lines, hash, kind));
}

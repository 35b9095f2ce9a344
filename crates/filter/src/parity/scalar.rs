//! The plain reading of a line: the oracle of the vector ones.

use super::equation::Equation;
use super::layout::{Layout, words_of};
use super::{FilterKind, Reading, walk, walk_below, walk_many};
use crate::{Line, Verdict};

/// Whether the hash may have been added.
pub(super) fn contains<L: Layout>(lines: &[Line], hash: u64, kind: &FilterKind) -> bool {
    walk::<L>(lines, hash, kind, |line, equation| read::<L>(line, equation), below::<L>)
}

/// As [`contains`], of many hashes; all verdicts are [`Verdict::Maybe`] before.
pub(super) fn contain<L: Layout>(
    lines: &[Line],
    hashes: &[u64],
    kind: &FilterKind,
    verdicts: &mut [Verdict],
) {
    walk_many::<L>(lines, hashes, kind, verdicts, |line, equation| read::<L>(line, equation), below::<L>);
}

#[inline(never)]
fn below<L: Layout>(lines: &[Line], hash: u64, levels: &[u32]) -> bool {
    walk_below::<L>(lines, hash, levels, |line, equation| read::<L>(line, equation))
}

#[inline(always)]
pub(super) fn read<L: Layout>(line: &Line, equation: &Equation) -> Reading {
    let words = words_of(line);
    Reading { fits: L::fits(&words, equation), threshold: L::threshold(&words) }
}

//! The plain reading of a line: the oracle of the vector ones.

use super::equation::Equation;
use super::layout::{Layout, words_of};
use super::{FilterKind, Reading, walk, walk_many};
use crate::filter::{Line, Verdict};

/// Whether the hash may have been added.
pub(super) fn contains<L: Layout>(lines: &[Line], hash: u64, kind: &FilterKind) -> bool {
    walk::<L>(lines, hash, kind, read::<L>)
}

/// As [`contains`], of many hashes; all verdicts are [`Verdict::Maybe`] before.
pub(super) fn contain<L: Layout>(
    lines: &[Line],
    hashes: &[u64],
    kind: &FilterKind,
    verdicts: &mut [Verdict],
) {
    walk_many::<L>(lines, hashes, kind, verdicts, read::<L>, contains::<L>);
}

#[inline(always)]
fn read<L: Layout>(line: &Line, equation: &Equation) -> Reading {
    let words = words_of(line);
    Reading { parities: L::parities(&words, equation), threshold: L::threshold(&words) }
}

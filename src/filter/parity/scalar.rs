//! The plain reading of a line: the oracle of the vector ones.

use super::layout::{Layout, words_of};
use super::{Levels, Reading, walk};
use crate::filter::Line;

/// Whether the hash may have been added. Out of line, so that the choice between the instruction sets stays small where probes
/// are inlined.
#[inline(never)]
pub(super) fn contains<L: Layout>(lines: &[Line], hash: u64, levels: &Levels) -> bool {
    walk::<L>(lines, hash, levels, |line, equation| {
        let words = words_of(line);
        Reading { parities: L::parities(&words, equation), threshold: L::threshold(&words) }
    })
}

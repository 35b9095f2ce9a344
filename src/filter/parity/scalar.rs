//! The plain reading of a line: the oracle of the vector ones.

use super::layout::{Layout, words_of};
use super::{FilterKind, Reading, walk};
use crate::filter::Line;

/// Whether the hash may have been added.
pub(super) fn contains<L: Layout>(lines: &[Line], hash: u64, kind: &FilterKind) -> bool {
    walk::<L>(lines, hash, kind, |line, equation| {
        let words = words_of(line);
        Reading { parities: L::parities(&words, equation), threshold: L::threshold(&words) }
    })
}

//! Reading a line in scalar code, which the tests compare the vector code with.

use super::entry::entry_points;
use super::layout::{Equation, Layout, words_of};
use super::walk::Reading;
use crate::line::Line;

entry_points!();

#[inline(always)]
pub(super) fn read<L: Layout>(line: &Line, equation: &Equation) -> Reading {
    let words = words_of(line);
    Reading { fits: L::fits(&words, equation), threshold: L::threshold(&words) }
}

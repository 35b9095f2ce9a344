//! The cost of a probe in lines.

use super::layout::{Layout, for_width, words_of};
use super::width::{Levels, Width};
use crate::line::Line;

/// The expected number of lines that a probe of an absent key reads: the share of probes that go on from the first level, averaged over
/// its lines, then from the next level, and so on.
pub(crate) fn lines_per_probe(lines: &[Line], width: Width, levels: &Levels) -> f64 {
    for_width!(width, L => cost::<L>(lines, levels))
}

fn cost<L: Layout>(mut lines: &[Line], levels: &Levels) -> f64 {
    let (mut reached, mut sum) = (1.0, 0.0);
    for &count in levels.iter().take_while(|&&count| count > 0) {
        let (level, rest) = lines.split_at_checked(count as usize).unwrap_or((lines, &[]));
        let thresholds: f64 = level.iter().map(|line| f64::from(L::threshold(&words_of(line)))).sum();
        sum += reached;
        reached *= thresholds / f64::from(L::MAX_THRESHOLD) / f64::from(count);
        lines = rest;
    }
    sum
}

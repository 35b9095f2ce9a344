//! How many lines a probe reads.

use super::layout::{Eight, Layout, Nine, Seven, Sixteen, Twelve, words_of};
use super::{Levels, Width};
use crate::Line;

/// For a key that is not there: the share of the first level's probes that go on, averaged over its lines, then of the next level's, and
/// so on.
pub(crate) fn lines_per_probe(lines: &[Line], width: Width, levels: &Levels) -> f64 {
    match width {
        Width::Seven => reads::<Seven>(lines, levels),
        Width::Eight => reads::<Eight>(lines, levels),
        Width::Nine => reads::<Nine>(lines, levels),
        Width::Twelve => reads::<Twelve>(lines, levels),
        Width::Sixteen => reads::<Sixteen>(lines, levels),
    }
}

fn reads<L: Layout>(mut lines: &[Line], levels: &Levels) -> f64 {
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

//! The cost and false-positive rate of a built filter, computed from the control bytes of its lines.

use super::equation::Control;
use super::layout::{Layout, for_width};
use super::scalar::control;
use super::width::{Levels, Width};
use crate::line::Line;

/// Averages over all probes of absent keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Expected {
    /// The false-positive rate, 0 to 1.
    pub fpr: f64,
    /// Lines that a probe reads.
    pub lines_per_probe: f64,
}

/// Computes what probes of absent keys cost on average.
pub(crate) fn expected(lines: &[Line], width: Width, levels: &Levels) -> Expected {
    for_width!(width, L => expected_of::<L>(lines, levels))
}

fn expected_of<L: Layout>(mut lines: &[Line], levels: &Levels) -> Expected {
    // The share of probes that reach a level, and what they find up to it.
    let (mut reached, mut fpr, mut lines_per_probe) = (1.0, 0.0, 0.0);
    for &count in levels.iter().take_while(|&&count| count > 0) {
        let (level, rest) = lines.split_at_checked(count as usize).unwrap_or((lines, &[]));
        let mut with_control = [0u64; 256];
        level.iter().for_each(|line| with_control[control(line) as usize & 255] += 1);
        let (mut rate, mut bumped) = (0.0, 0.0);
        for (control, &lines) in with_control.iter().enumerate().filter(|(_, lines)| **lines > 0) {
            let share = lines as f64 / f64::from(count);
            let (r, b) = Control::decode::<L>(control as u32).rates::<L>();
            rate += share * r;
            bumped += share * b;
        }
        lines_per_probe += reached;
        fpr += reached * rate;
        reached *= bumped;
        lines = rest;
    }
    // Keys that the last level bumps are "maybe".
    Expected { fpr: fpr + reached, lines_per_probe }
}

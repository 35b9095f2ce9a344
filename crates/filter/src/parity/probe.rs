//! Chooses the probe functions for an instruction set and a width, and probes lines that may not be trusted.

use super::equation::{FirstLanes, next_level, place};
use super::layout::{Layout, for_width};
use super::scalar;
use super::width::{Levels, Width};
use crate::isa::{Isa, on_isa};
use crate::line::Line;
use crate::probe_fns::ProbeFns;
use crate::verdict::Verdict;

/// The functions that tell whether a hash may have been added.
pub(crate) fn probe_fns(isa: Isa, width: Width) -> ProbeFns {
    for_width!(width, L => on_isa!(isa, module => ProbeFns {
        denies: module::denies::<L>,
        one: module::contains::<L>,
        many: module::contains_many::<L>,
    }))
}

/// The first lanes of a width.
pub(crate) fn first_lanes(width: Width) -> Option<FirstLanes> {
    for_width!(width, L => FirstLanes::of::<L>())
}

/// See [`Prober::probe_believed`](crate::Prober::probe_believed).
pub(crate) fn probe_believed(
    width: Width,
    lines: &[Line],
    hash: u64,
    levels: &Levels,
    believe: &mut dyn FnMut(usize) -> bool,
) -> Option<Verdict> {
    for_width!(width, L => probe_believed_as::<L>(lines, hash, levels, believe))
}

fn probe_believed_as<L: Layout>(
    lines: &[Line],
    mut hash: u64,
    levels: &Levels,
    believe: &mut dyn FnMut(usize) -> bool,
) -> Option<Verdict> {
    let mut first = 0;
    for &count in levels {
        let (line, place) = place(hash, count);
        let at = first + line as usize;
        let Some(line) = lines.get(at) else { break };
        if !believe(at) {
            return None;
        }
        if let Some(maybe) = scalar::ask::<L>(line, hash, place) {
            return Some(Verdict::of(maybe));
        }
        first += count as usize;
        hash = next_level(hash);
    }
    Some(Verdict::Maybe)
}

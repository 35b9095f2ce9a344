//! The probe, level by level, generic over how a line is read.

use super::control::is_bumped;
use super::equation::{Products, next_level, place};
use super::layout::{Equation, Layout};
use crate::kind::FilterKind;
use crate::line::Line;
use crate::prefetch::{Prefetched, prefetch};
use crate::verdict::Verdict;

/// What a probe reads from a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    /// Whether the first lanes of the line, eight at most, satisfy the equation.
    pub fits: bool,
    pub control: u32,
}

/// Probes the first level, and calls `lower` for the levels below it when the threshold of the line says that the key was bumped. (A loop
/// over all levels would be unrolled, and each level would then have too much code to be inlined.)
#[inline(always)]
pub(super) fn probe<L: Layout>(
    lines: &[Line],
    hash: u64,
    kind: &FilterKind,
    read: impl Fn(&Line, &Equation) -> Reading,
    rest: impl Fn(&Line, Products, u64, u32) -> bool,
    lower: impl Fn(&[Line], u64, &[u32]) -> bool,
) -> bool {
    let FilterKind::Parity { levels: [first, further @ ..], .. } = kind else { return true };
    let (line, place) = place(hash, *first);
    let Some(line) = lines.get(line as usize) else { return true };
    let products = Products::of(hash);
    let reading = read(line, &products.equation::<L>());
    if !is_bumped::<L>(reading.control, place) {
        return reading.fits && rest(line, products, place, reading.control);
    }
    lower(lines.get(*first as usize..).unwrap_or_default(), next_level(hash), further)
}

/// Probes `levels` one after the other.
#[inline(always)]
pub(super) fn probe_levels<L: Layout>(
    mut lines: &[Line],
    mut hash: u64,
    levels: &[u32],
    read: impl Fn(&Line, &Equation) -> Reading,
    rest: impl Fn(&Line, Products, u64, u32) -> bool,
) -> bool {
    for &count in levels {
        let (line, place) = place(hash, count);
        let Some(line) = lines.get(line as usize) else { return true };
        let products = Products::of(hash);
        let reading = read(line, &products.equation::<L>());
        if !is_bumped::<L>(reading.control, place) {
            return reading.fits && rest(line, products, place, reading.control);
        }
        lines = lines.get(count as usize..).unwrap_or_default();
        hash = next_level(hash);
    }
    true
}

/// The number of probes that wait for their line of the second level: about as many as two hundred hashes produce.
const WAITING: usize = 8;

/// [`probe`] for many hashes, whose verdicts are all [`Verdict::Maybe`] before the call. Prefetches lines of the first level ahead, and
/// lines of the second level as soon as a hash needs one; these are read in batches.
#[inline(always)]
pub(super) fn probe_many<L: Layout>(
    lines: &[Line],
    hashes: &[u64],
    kind: &FilterKind,
    verdicts: &mut [Verdict],
    read: impl Fn(&Line, &Equation) -> Reading,
    rest: impl Fn(&Line, Products, u64, u32) -> bool,
    lower: impl Fn(&[Line], u64, &[u32]) -> bool,
) {
    let FilterKind::Parity { levels: [first, further @ ..], .. } = kind else { return };
    let Some((level, below)) = lines.split_at_checked(*first as usize) else { return };
    let go_on = |hash| Verdict::of(lower(below, hash, further));
    let mut waiting = [(0, 0); WAITING];
    let mut waiters = 0;
    for (i, hash) in Prefetched::new(level, hashes).enumerate() {
        let (line, place_in_line) = place(hash, *first);
        let Some(line) = level.get(line as usize) else { return };
        let products = Products::of(hash);
        let reading = read(line, &products.equation::<L>());
        if !is_bumped::<L>(reading.control, place_in_line) {
            let fits = reading.fits && rest(line, products, place_in_line, reading.control);
            verdicts[i] = Verdict::of(fits);
            continue;
        }
        let hash = next_level(hash);
        let (line, _) = place(hash, further[0]);
        if let Some(line) = below.get(line as usize) {
            prefetch(line);
        }
        waiting[waiters] = (i, hash);
        waiters += 1;
        if waiters == WAITING {
            waiting.iter().for_each(|&(i, hash)| verdicts[i] = go_on(hash));
            waiters = 0;
        }
    }
    let waiting = waiting.iter().take(waiters);
    waiting.for_each(|&(i, hash)| verdicts[i] = go_on(hash));
}

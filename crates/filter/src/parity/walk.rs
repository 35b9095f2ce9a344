//! From level to level, whichever way a line is read.

use super::equation::{Equation, next_level, place};
use super::layout::Layout;
use super::{FilterKind, Reading, scalar};
use crate::{FetchedAhead, Line, Verdict, isa};

/// Asks the first level, and `below` for the levels below it when the line says that the rank was bumped. (In one loop over all levels,
/// which would be unrolled, a level has more code than gets inlined.)
#[inline(always)]
pub(super) fn walk<L: Layout>(
    lines: &[Line],
    hash: u64,
    kind: &FilterKind,
    read: impl Fn(&Line, &Equation) -> Reading,
    below: impl Fn(&[Line], u64, &[u32]) -> bool,
) -> bool {
    let FilterKind::Parity { levels: [first, further @ ..], .. } = kind else { return true };
    let (line, rank) = place::<L>(hash, *first);
    let Some(line) = lines.get(line as usize) else { return true };
    let equation = Equation::of::<L>(hash);
    let reading = read(line, &equation);
    if rank >= reading.threshold {
        return reading.fits;
    }
    below(lines.get(*first as usize..).unwrap_or_default(), next_level(hash), further)
}

/// Asks one of `levels` after the other.
#[inline(always)]
pub(super) fn walk_below<L: Layout>(
    mut lines: &[Line],
    mut hash: u64,
    levels: &[u32],
    read: impl Fn(&Line, &Equation) -> Reading,
) -> bool {
    for &count in levels {
        let (line, rank) = place::<L>(hash, count);
        let Some(line) = lines.get(line as usize) else { return true };
        let equation = Equation::of::<L>(hash);
        let reading = read(line, &equation);
        if rank >= reading.threshold {
            return reading.fits;
        }
        lines = lines.get(count as usize..).unwrap_or_default();
        hash = next_level(hash);
    }
    true
}

/// Asks all levels, and `believe` for each line before it is read.
pub(super) fn walk_believed<L: Layout>(
    lines: &[Line],
    mut hash: u64,
    levels: &[u32],
    believe: &mut dyn FnMut(usize) -> bool,
) -> Option<Verdict> {
    let mut first = 0;
    for &count in levels {
        let (line, rank) = place::<L>(hash, count);
        let at = first + line as usize;
        let Some(line) = lines.get(at) else { break };
        if !believe(at) {
            return None;
        }
        let reading = scalar::read::<L>(line, &Equation::of::<L>(hash));
        if rank >= reading.threshold {
            return Some(Verdict::of(reading.fits));
        }
        first += count as usize;
        hash = next_level(hash);
    }
    Some(Verdict::Maybe)
}

/// Probes that wait for their line of the second level: about those of two hundred hashes.
const WAITING: usize = 8;

/// As [`walk`], of many hashes, whose verdicts are all [`Verdict::Maybe`] still. The lines of the first level are fetched ahead; those of
/// the second as soon as they are known to be needed, and read together.
#[inline(always)]
pub(super) fn walk_many<L: Layout>(
    lines: &[Line],
    hashes: &[u64],
    kind: &FilterKind,
    verdicts: &mut [Verdict],
    read: impl Fn(&Line, &Equation) -> Reading,
    below: impl Fn(&[Line], u64, &[u32]) -> bool,
) {
    let FilterKind::Parity { levels: [first, further @ ..], .. } = kind else { return };
    let Some((level, rest)) = lines.split_at_checked(*first as usize) else { return };
    let go_on = |hash| Verdict::of(below(rest, hash, further));
    let mut waiting = [(0, 0); WAITING];
    let mut waiters = 0;
    for (i, hash) in FetchedAhead::new(level, hashes).enumerate() {
        let (line, rank) = place::<L>(hash, *first);
        let Some(line) = level.get(line as usize) else { return };
        let equation = Equation::of::<L>(hash);
        let reading = read(line, &equation);
        if rank >= reading.threshold {
            verdicts[i] = Verdict::of(reading.fits);
            continue;
        }
        let hash = next_level(hash);
        let (line, _) = place::<L>(hash, further[0]);
        if let Some(line) = rest.get(line as usize) {
            isa::prefetch(line);
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

//! From level to level, whichever way a line is read.

use super::equation::{Equation, next_level, place};
use super::layout::Layout;
use super::{FilterKind, Levels, Reading};
use crate::filter::{FetchedAhead, Line, Verdict, isa};

/// Asks the first level, and the next for as long as the line says that the rank was bumped.
#[inline(always)]
pub(super) fn walk<L: Layout>(
    lines: &[Line],
    mut hash: u64,
    kind: &FilterKind,
    read: impl Fn(&Line, &Equation) -> Reading,
) -> bool {
    let FilterKind::Parity { levels, .. } = kind else { return true };
    let mut rest = lines;
    for &count in levels {
        let (line, rank) = place::<L>(hash, count);
        let Some(line) = rest.get(line as usize) else { return true };
        let equation = Equation::of::<L>(hash);
        let reading = read(line, &equation);
        if rank >= reading.threshold {
            return reading.parities == equation.fingerprint;
        }
        rest = rest.get(count as usize..).unwrap_or_default();
        hash = next_level(hash);
    }
    true
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
    contains: impl Fn(&[Line], u64, &FilterKind) -> bool,
) {
    let FilterKind::Parity { levels: [first, further @ ..], width } = *kind else { return };
    let Some((level, below)) = lines.split_at_checked(first as usize) else { return };
    let mut levels = Levels::default();
    levels.iter_mut().zip(further).for_each(|(to, count)| *to = count);
    let kind = FilterKind::Parity { levels, width };
    let mut waiting = [(0, 0); WAITING];
    let mut waiters = 0;
    for (i, hash) in FetchedAhead::new(level, hashes).enumerate() {
        let (line, rank) = place::<L>(hash, first);
        let Some(line) = level.get(line as usize) else { return };
        let equation = Equation::of::<L>(hash);
        let reading = read(line, &equation);
        if rank >= reading.threshold {
            verdicts[i] = Verdict::of(reading.parities == equation.fingerprint);
            continue;
        }
        let hash = next_level(hash);
        let (line, _) = place::<L>(hash, levels[0]);
        if let Some(line) = below.get(line as usize) {
            isa::prefetch(line);
        }
        waiting[waiters] = (i, hash);
        waiters += 1;
        if waiters == WAITING {
            waiting.iter().for_each(|&(i, hash)| verdicts[i] = Verdict::of(contains(below, hash, &kind)));
            waiters = 0;
        }
    }
    let waiting = waiting.iter().take(waiters);
    waiting.for_each(|&(i, hash)| verdicts[i] = Verdict::of(contains(below, hash, &kind)));
}

//! The probe, level by level. `ask` says whether a line may hold a hash with a place; `None` if it is bumped.

use super::equation::{next_level, place as place_of};
use crate::kind::FilterKind;
use crate::line::Line;
use crate::prefetch::{Prefetched, prefetch};
use crate::verdict::Verdict;

/// Probes the first level, and calls `lower` for the levels below it when the threshold of the line says that
/// the key was bumped. (A loop over all levels would be unrolled, and each level would then have too much
/// code to be inlined.)
#[inline(always)]
pub(super) fn probe(
    lines: &[Line],
    hash: u64,
    kind: &FilterKind,
    ask: impl Fn(&Line, u64, u64) -> Option<bool>,
    lower: impl Fn(&[Line], u64, &[u32]) -> bool,
) -> bool {
    let FilterKind::Parity { levels: [first, further @ ..], .. } = kind else { return true };
    let (line, place) = place_of(hash, *first);
    let Some(line) = lines.get(line as usize) else { return true };
    match ask(line, hash, place) {
        Some(maybe) => maybe,
        None => lower(lines.get(*first as usize..).unwrap_or_default(), next_level(hash), further),
    }
}

/// Probes `levels` one after the other.
#[inline(always)]
pub(super) fn probe_levels(
    mut lines: &[Line],
    mut hash: u64,
    levels: &[u32],
    ask: impl Fn(&Line, u64, u64) -> Option<bool>,
) -> bool {
    for &count in levels {
        let (line, place) = place_of(hash, count);
        let Some(line) = lines.get(line as usize) else { return true };
        if let Some(maybe) = ask(line, hash, place) {
            return maybe;
        }
        lines = lines.get(count as usize..).unwrap_or_default();
        hash = next_level(hash);
    }
    true
}

/// The number of probes that wait for their line of the second level: about as many as 200 hashes produce.
const WAITING: usize = 8;

/// [`probe`] for many hashes, whose verdicts are all [`Verdict::Maybe`] before the call. Prefetches lines of
/// the first level ahead, and lines of the second level as soon as a hash needs one, to read them in batches.
#[inline(always)]
pub(super) fn probe_many(
    lines: &[Line],
    hashes: &[u64],
    kind: &FilterKind,
    verdicts: &mut [Verdict],
    ask: impl Fn(&Line, u64, u64) -> Option<bool>,
    lower: impl Fn(&[Line], u64, &[u32]) -> bool,
) {
    let FilterKind::Parity { levels: [first, further @ ..], .. } = kind else { return };
    let Some((level, below)) = lines.split_at_checked(*first as usize) else { return };
    let go_on = |hash| Verdict::of(lower(below, hash, further));
    let mut waiting = [(0, 0); WAITING];
    let mut waiters = 0;
    for (i, hash) in Prefetched::new(level, hashes).enumerate() {
        let (line, place) = place_of(hash, *first);
        let Some(line) = level.get(line as usize) else { return };
        if let Some(maybe) = ask(line, hash, place) {
            verdicts[i] = Verdict::of(maybe);
            continue;
        }
        let hash = next_level(hash);
        let (line, _) = place_of(hash, further[0]);
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

//! Which segments to compact next: leveled compaction with size ratio 10.
//!
//! 1. Level 0 scores its number of segments ÷ 4. Level n scores its bytes ÷ its target: 4 segments for level 1, and ten times the target of
//!    the level above for every other. The level with the highest score of at least 1 goes first.
//! 2. The segments of level 0 overlap one another, so they are merged together, with everything they overlap in level 1. If there are very
//!    many, the oldest go first. A segment that overlaps nothing in either level is only moved, as when keys arrive in order.
//! 3. Of any other level, the segment that overlaps the fewest bytes of the next level per byte of its own is merged.
//! 4. Once no level is over its target and no writes come in, each level is reduced to a tenth of the next one. So data that arrives under
//!    load is merged rarely and late, while an idle store has the best shape for reads, with few keys in the upper runs.
//! 5. A running compaction owns its inputs and, on its output level, the hull of their keys (I10). Its outputs may span gaps between its
//!    inputs, where the live set shows nothing yet. A compaction that needs either waits until it is done.

use super::options::Options;
use super::reserve::Reservation;
use crate::manifest::{LEVELS, LiveSegment, LiveSet, hull};

/// The target of level 1, in segments.
const LEVEL1_SEGMENTS: u64 = 4;
/// The target of each level relative to the one above it.
const SIZE_RATIO: u64 = 10;

/// The most segments of level 0 in one merge. Each needs a cursor with a read window of up to 256 KiB; any other level needs one in all.
const LEVEL0_GROUP_MAX: usize = 64;

/// Segments to merge into `output_level`.
pub(crate) struct Compaction {
    pub upper: Vec<LiveSegment>,
    pub lower: Vec<LiveSegment>,
    pub output_level: u8,
    /// No deeper level and no segment in quarantine has keys in this range, so tombstones have nothing left to hide.
    pub bottom: bool,
}

impl Compaction {
    pub fn inputs(&self) -> impl Iterator<Item = &LiveSegment> + Clone {
        self.upper.iter().chain(&self.lower)
    }

    /// Whether the input only changes its level and keeps its file.
    pub fn is_move(&self) -> bool {
        self.lower.is_empty() && self.upper.len() == 1
    }

    /// Merges `upper` into `output_level`, with everything it overlaps there. `None` if a running compaction is in the way.
    pub fn down(
        live: &LiveSet,
        upper: Vec<LiveSegment>,
        output_level: usize,
        running: &[Reservation],
    ) -> Option<Self> {
        let (smallest, largest) = hull(&upper)?;
        let below = live.levels().get(output_level)?.segments();
        let lower: Vec<_> = below.iter().filter(|s| s.overlaps(smallest, largest)).cloned().collect();
        let (smallest, largest) = hull(upper.iter().chain(&lower))?;
        let deeper = live.levels().iter().skip(output_level + 1).flat_map(|level| level.segments());
        let bottom = !deeper.chain(live.quarantined()).any(|s| s.overlaps(smallest, largest));
        let compaction = Compaction { output_level: u8::try_from(output_level).ok()?, bottom, lower, upper };
        let wanted = compaction.reservation()?;
        (!running.iter().any(|other| other.conflicts_with(&wanted))).then_some(compaction)
    }

    /// Merges the oldest `wanted` segments of level 0 into level 1, with those that must not stay above them.
    pub fn of_level0(
        live: &LiveSet,
        wanted: impl Fn(&LiveSegment) -> bool,
        running: &[Reservation],
    ) -> Option<Self> {
        Compaction::down(live, level0_group(live.levels()[0].segments(), wanted), 1, running)
    }

    /// Rewrites one segment to drop its tombstones. `None` if a running compaction is in the way.
    pub fn rewrite(live: &LiveSet, segment: &LiveSegment, running: &[Reservation]) -> Option<Self> {
        let meta = &segment.meta;
        let deeper =
            live.levels().iter().skip(usize::from(meta.level) + 1).flat_map(|level| level.segments());
        let bottom = !deeper.chain(live.quarantined()).any(|s| s.overlaps(&meta.smallest, &meta.largest));
        let (upper, lower) = (vec![segment.clone()], Vec::new());
        let compaction = Compaction { output_level: meta.level, bottom, lower, upper };
        let wanted = compaction.reservation()?;
        (!running.iter().any(|other| other.conflicts_with(&wanted))).then_some(compaction)
    }

    /// What this compaction owns while it runs; `None` if it has no inputs.
    pub fn reservation(&self) -> Option<Reservation> {
        Reservation::of(self.inputs(), self.output_level)
    }
}

/// How many bytes a level may hold before it is compacted. Level 0 counts segments instead.
pub(crate) fn target_bytes(level: usize, segment_bytes: u64) -> u64 {
    let power = u32::try_from(level.saturating_sub(1)).unwrap_or(u32::MAX);
    SIZE_RATIO.saturating_pow(power).saturating_mul(segment_bytes.saturating_mul(LEVEL1_SEGMENTS))
}

/// The most urgent compaction; `None` if every level is within its target or already being compacted.
pub(crate) fn pick(
    live: &LiveSet,
    options: &Options,
    running: &[Reservation],
    is_idle: bool,
) -> Option<Compaction> {
    let mut scores: Vec<(f64, usize)> =
        (0..LEVELS - 1).map(|level| (score(live, level, options), level)).collect();
    scores.retain(|(score, _)| *score >= 1.0);
    scores.sort_by(|a, b| b.0.total_cmp(&a.0));
    let urgent = scores.into_iter().find_map(|(_, level)| match level {
        0 => pick_level0(live, running),
        _ => pick_sorted(live, level, running),
    });
    urgent.or_else(|| is_idle.then(|| pick_when_idle(live, running)).flatten())
}

fn score(live: &LiveSet, level: usize, options: &Options) -> f64 {
    let Some(of) = live.levels().get(level) else { return 0.0 };
    match level {
        0 => of.segments().len() as f64 / options.level0_trigger as f64,
        _ => of.file_bytes() as f64 / (target_bytes(level, options.segment_bytes) + 1) as f64,
    }
}

/// Whether level 0 has enough segments to trigger its compaction.
pub(crate) fn level0_is_due(live: &LiveSet, options: &Options) -> bool {
    score(live, 0, options) >= 1.0
}

/// The oldest `wanted` segments of level 0, up to the limit of one merge, and those that must not stay above them.
fn level0_group(level0: &[LiveSegment], wanted: impl Fn(&LiveSegment) -> bool) -> Vec<LiveSegment> {
    let oldest_first = level0.iter().rev();
    let (mut group, mut rest) = (Vec::new(), Vec::new());
    for segment in oldest_first {
        let takes = group.len() < LEVEL0_GROUP_MAX && wanted(segment);
        if takes { &mut group } else { &mut rest }.push(segment.clone());
    }
    with_bound(group, rest)
}

/// Adds to the group every segment of level 0 that must not stay above it: one that overlaps it and has entries as old as the group's.
pub(crate) fn with_bound(mut group: Vec<LiveSegment>, mut rest: Vec<LiveSegment>) -> Vec<LiveSegment> {
    loop {
        let Some((smallest, largest)) = hull(&group) else { return group };
        let newest = group.iter().map(|s| s.meta.max_seq).max();
        let bound = |s: &LiveSegment| s.overlaps(smallest, largest) && Some(s.meta.min_seq) <= newest;
        let (more, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(bound);
        if more.is_empty() {
            return group;
        }
        group.extend(more);
        rest = others;
    }
}

/// The next compaction of level 0, however few segments it has.
pub(crate) fn pick_level0(live: &LiveSet, running: &[Reservation]) -> Option<Compaction> {
    let [level0, level1, ..] = live.levels();
    let alone = |segment: &&LiveSegment| {
        let meta = &segment.meta;
        let others = level0.segments().iter().filter(|s| s.meta.id != meta.id).chain(level1.segments());
        !others.into_iter().any(|s| s.overlaps(&meta.smallest, &meta.largest))
    };
    let candidates = level0.segments().iter().rev().filter(alone);
    let movable = candidates.filter_map(|s| Compaction::down(live, vec![s.clone()], 1, running)).next();
    movable.or_else(|| Compaction::of_level0(live, |_| true, running))
}

fn pick_sorted(live: &LiveSet, level: usize, running: &[Reservation]) -> Option<Compaction> {
    let below = live.levels().get(level + 1)?.segments();
    let overlap_per_byte = |segment: &LiveSegment| {
        let meta = &segment.meta;
        let overlapping = below.iter().filter(|s| s.overlaps(&meta.smallest, &meta.largest));
        overlapping.map(|s| s.meta.file_bytes).sum::<u64>() as f64 / meta.file_bytes.max(1) as f64
    };
    let mut by_cost: Vec<_> =
        live.levels().get(level)?.segments().iter().map(|s| (overlap_per_byte(s), s)).collect();
    by_cost.sort_by(|a, b| a.0.total_cmp(&b.0));
    by_cost
        .into_iter()
        .find_map(|(_, segment)| Compaction::down(live, vec![segment.clone()], level + 1, running))
}

/// Compacts the uppermost sorted level that is larger than a tenth of the next one.
fn pick_when_idle(live: &LiveSet, running: &[Reservation]) -> Option<Compaction> {
    let bytes: Vec<u64> = live.levels().iter().map(|level| level.file_bytes()).collect();
    let mut pairs = bytes.windows(2).enumerate().skip(1);
    let (level, _) = pairs.find(|(_, pair)| match pair {
        [upper, lower] => *lower > 0 && upper.saturating_mul(SIZE_RATIO) > *lower,
        _ => false,
    })?;
    pick_sorted(live, level, running)
}

//! Which segments to compact next: leveled compaction with size ratio 10, whose upper levels follow the size of the deepest one.
//!
//! 1. Merging level 0 rewrites level 1. Level 0 is therefore due when it has 4 segments and as many bytes as level 1, or 12 segments.
//! 2. The deepest level with segments may grow to 16 segments × 10 for each level above it. Each other level has a tenth of the next one as
//!    its target, but at least 4 segments. So a store has as few levels as its size allows: data is merged into fewer of them on its way down,
//!    and a lookup asks fewer runs. (As in RocksDB, whose option `level_compaction_dynamic_level_bytes` sizes levels from below.)
//! 3. The level that exceeds its target by most goes first. The segments of level 0 overlap one another, so they are merged together, with
//!    everything they overlap in level 1. If there are very many, the oldest go first. A segment that overlaps nothing in either level is
//!    only moved, as when keys arrive in order.
//! 4. Of any other level, the segment that overlaps the fewest bytes of the next level per byte of its own is merged.
//! 5. When no writes come in, the newest segments of level 0 are merged with one another, up to the size of 4 segments, or all into level 1
//!    if that is no larger; and each level is reduced to a tenth of the next one. So data that arrives under load is merged rarely and late,
//!    while an idle store has few runs, and few keys in the upper ones.
//! 6. Segments of which range tombstones delete everything are dropped unread, before anything else. A segment with a long run of
//!    tombstones is merged down until they have nothing left to hide, since a walk has to pass them.
//! 7. A running compaction owns its inputs and, on its output level, the hull of their keys (I10). Its outputs may span gaps between its
//!    inputs, where the live set shows nothing yet. A compaction that needs either waits until it is done.

use super::options::Options;
use super::reserve::Reservation;
use super::write::RANGE_BYTES_MAX;
use crate::manifest::{LEVELS, LiveSegment, LiveSet, hull};

/// The smallest target of a level that is not the deepest, in segments.
const LEVEL_SEGMENTS_MIN: u64 = 4;
/// The most segments of level 1 while it is the deepest level.
const LEVEL1_SEGMENTS_MAX: u64 = 16;
/// Level 0 is due at so many times its trigger, however large level 1 is.
const LEVEL0_TRIGGERS_MAX: f64 = 3.0;
/// The target of each level relative to the one above it.
const SIZE_RATIO: u64 = 10;

/// A run of so many tombstones takes a walk a few milliseconds to pass.
pub(crate) const TOMBSTONE_RUN: usize = 8 << 10;

/// The most segments of level 0 in one merge. Each needs a cursor with a read window of up to 256 KiB; any other level needs one in all.
const LEVEL0_GROUP_MAX: usize = 64;

/// Segments to merge into `output_level`.
pub(crate) struct Compaction {
    pub upper: Vec<LiveSegment>,
    pub lower: Vec<LiveSegment>,
    pub output_level: u8,
    /// No deeper level and no segment in quarantine has keys in this range, so tombstones have nothing left to hide.
    pub bottom: bool,
    /// Range tombstones delete everything in `upper`, which is only removed.
    pub drops: bool,
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
        let compaction =
            Compaction { output_level: u8::try_from(output_level).ok()?, bottom, drops: false, lower, upper };
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

    /// Merges segments of level 0 into one. `None` if there are none, or a running compaction is in the way.
    fn within_level0(segments: &[LiveSegment], running: &[Reservation]) -> Option<Self> {
        // Their range tombstones must fit into one block.
        let ranged = segments.iter().filter(|s| s.meta.ranges > 0).map(|s| s.meta.file_bytes).sum::<u64>();
        if ranged > 2 * RANGE_BYTES_MAX as u64 {
            return None;
        }
        let (upper, lower) = (segments.to_vec(), Vec::new());
        let compaction = Compaction { output_level: 0, bottom: false, drops: false, lower, upper };
        let wanted = compaction.reservation()?;
        (!running.iter().any(|other| other.conflicts_with(&wanted))).then_some(compaction)
    }

    /// Removes segments that range tombstones cover, those of the deepest such level. `None` if there are none that no compaction reads.
    fn drop_covered(live: &LiveSet, running: &[Reservation]) -> Option<Self> {
        let is_free = |s: &&LiveSegment| !running.iter().any(|other| other.takes(s.meta.id));
        let output_level = live.covered().iter().filter(is_free).map(|s| s.meta.level).max()?;
        let of_level = live.covered().iter().filter(|s| s.meta.level == output_level);
        let (upper, lower) = (of_level.filter(is_free).cloned().collect(), Vec::new());
        let compaction = Compaction { output_level, bottom: false, drops: true, lower, upper };
        let wanted = compaction.reservation()?;
        (!running.iter().any(|other| other.conflicts_with(&wanted))).then_some(compaction)
    }

    /// Rewrites one segment to drop its tombstones. `None` if a running compaction is in the way.
    pub fn rewrite(live: &LiveSet, segment: &LiveSegment, running: &[Reservation]) -> Option<Self> {
        let meta = &segment.meta;
        let deeper =
            live.levels().iter().skip(usize::from(meta.level) + 1).flat_map(|level| level.segments());
        let bottom = !deeper.chain(live.quarantined()).any(|s| s.overlaps(&meta.smallest, &meta.largest));
        let (upper, lower) = (vec![segment.clone()], Vec::new());
        let compaction = Compaction { output_level: meta.level, bottom, drops: false, lower, upper };
        let wanted = compaction.reservation()?;
        (!running.iter().any(|other| other.conflicts_with(&wanted))).then_some(compaction)
    }

    /// What this compaction owns while it runs; `None` if it has no inputs.
    pub fn reservation(&self) -> Option<Reservation> {
        Reservation::of(self.inputs(), self.output_level)
    }
}

/// How many bytes a level may hold while it is the deepest one.
pub(crate) fn deepest_bytes_max(level: usize, segment_bytes: u64) -> u64 {
    let power = u32::try_from(level.saturating_sub(1)).unwrap_or(u32::MAX);
    SIZE_RATIO.saturating_pow(power).saturating_mul(segment_bytes.saturating_mul(LEVEL1_SEGMENTS_MAX))
}

/// How many bytes a level below 0 may hold before it is compacted.
fn target_bytes(live: &LiveSet, level: usize, segment_bytes: u64) -> u64 {
    let deepest = live.deepest().max(1);
    if level >= deepest {
        return deepest_bytes_max(level, segment_bytes);
    }
    let power = u32::try_from(deepest - level).unwrap_or(u32::MAX);
    let of_deepest = live.levels().get(deepest).map_or(0, |level| level.file_bytes());
    (of_deepest / SIZE_RATIO.saturating_pow(power)).max(segment_bytes.saturating_mul(LEVEL_SEGMENTS_MIN))
}

/// The most urgent compaction; `None` if every level is within its target or already being compacted.
pub(crate) fn pick(
    live: &LiveSet,
    options: &Options,
    running: &[Reservation],
    is_idle: bool,
) -> Option<Compaction> {
    if let Some(dropped) = Compaction::drop_covered(live, running) {
        return Some(dropped);
    }
    let mut scores: Vec<(f64, usize)> =
        (0..LEVELS - 1).map(|level| (score(live, level, options), level)).collect();
    scores.retain(|(score, _)| *score >= 1.0);
    scores.sort_by(|a, b| b.0.total_cmp(&a.0));
    let urgent = scores.into_iter().find_map(|(_, level)| match level {
        0 => pick_level0(live, running),
        _ => pick_sorted(live, level, running),
    });
    urgent.or_else(|| pick_tombstones(live, options, running)).or_else(|| {
        let at_rest =
            || pick_level0_when_idle(live, options, running).or_else(|| pick_when_idle(live, running));
        is_idle.then(at_rest).flatten()
    })
}

fn score(live: &LiveSet, level: usize, options: &Options) -> f64 {
    let Some(of) = live.levels().get(level) else { return 0.0 };
    if level > 0 {
        return of.file_bytes() as f64 / (target_bytes(live, level, options.segment_bytes) + 1) as f64;
    }
    let triggers = of.segments().len() as f64 / options.level0_trigger as f64;
    let of_level1 = of.file_bytes() as f64 / (live.levels()[1].file_bytes() + 1) as f64;
    triggers.min(of_level1).max(triggers / LEVEL0_TRIGGERS_MAX)
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
    let level0 = live.levels()[0].segments();
    // A merge within level 0 must not keep older segments from leaving it.
    let merges = |s: &LiveSegment| running.iter().any(|other| other.writes(0) && other.takes(s.meta.id));
    let oldest_merging = level0.iter().rev().find(|s| merges(s)).map(|s| s.meta.max_seq);
    let is_older = |s: &LiveSegment| oldest_merging.is_none_or(|merging| s.meta.max_seq < merging);
    pick_alone(live, 0, running).or_else(|| Compaction::of_level0(live, is_older, running))
}

/// The oldest segment of level 0 of at least `bytes` that overlaps no other one of levels 0 and 1, as when keys arrive in order.
fn pick_alone(live: &LiveSet, bytes: u64, running: &[Reservation]) -> Option<Compaction> {
    let [level0, level1, ..] = live.levels();
    let alone = |segment: &&LiveSegment| {
        let meta = &segment.meta;
        let mut others = level0.segments().iter().filter(|s| s.meta.id != meta.id).chain(level1.segments());
        meta.file_bytes >= bytes && !others.any(|s| s.overlaps(&meta.smallest, &meta.largest))
    };
    let mut candidates = level0.segments().iter().rev().filter(alone);
    candidates.find_map(|s| Compaction::down(live, vec![s.clone()], 1, running))
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

/// Merges the newest segments of level 0, each of which is at most as large as those after it together; or all into level 1 if that is no
/// larger. So a store that is written now and then has a few runs, and no entry is merged for every flush. A segment that overlaps nothing
/// only moves, once it is no longer tiny.
fn pick_level0_when_idle(live: &LiveSet, options: &Options, running: &[Reservation]) -> Option<Compaction> {
    let [level0, level1, ..] = live.levels();
    if options.level0_trigger == usize::MAX {
        return None;
    }
    if let Some(alone) = pick_alone(live, options.segment_bytes / 4, running) {
        return Some(alone);
    }
    let bytes_max = options.segment_bytes.saturating_mul(LEVEL_SEGMENTS_MIN);
    let (mut newer_bytes, mut together) = (0, 0);
    for (newer, segment) in level0.segments().iter().take(LEVEL0_GROUP_MAX).enumerate() {
        let bytes = segment.meta.file_bytes;
        if bytes.saturating_add(newer_bytes) > bytes_max {
            break;
        }
        if newer > 0 && bytes <= newer_bytes {
            together = newer + 1;
        }
        newer_bytes += bytes;
    }
    match together > 0 && level1.file_bytes() <= level0.file_bytes() {
        true => pick_level0(live, running),
        false => Compaction::within_level0(level0.segments().get(..together)?, running),
    }
}

/// Merges a segment with a long run of tombstones into the next level; in the deepest one, rewrites it without them.
fn pick_tombstones(live: &LiveSet, options: &Options, running: &[Reservation]) -> Option<Compaction> {
    let is_dense = |s: &&LiveSegment| s.meta.longest_run >= TOMBSTONE_RUN as u64;
    live.levels().iter().enumerate().find_map(|(number, level)| {
        let mut dense = level.segments().iter().filter(is_dense);
        match number {
            0 if options.level0_trigger == usize::MAX => None,
            0 => dense.next().and_then(|_| pick_level0(live, running)),
            _ => dense.find_map(|segment| {
                let rewritten = Compaction::rewrite(live, segment, running);
                let down = || Compaction::down(live, vec![segment.clone()], number + 1, running);
                rewritten.filter(|compaction| compaction.bottom).or_else(down)
            }),
        }
    })
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

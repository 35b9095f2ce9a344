//! Which segments to compact next: leveled compaction with size ratio 10, where the deepest level sets the
//! sizes of the others.
//!
//! 1. Merging level 0 rewrites level 1. So level 0 is due when it has 4 segments and as many bytes as level
//!    1, or 12 segments.
//! 2. The deepest level with segments may grow to 16 segments × 10 for each level above it. The target of
//!    each other level is a tenth of the next one, but at least 4 segments. So a store has as few levels as
//!    its size allows: data is merged through fewer levels, and a lookup checks fewer runs. (RocksDB's option
//!    `level_compaction_dynamic_level_bytes` does the same.)
//! 3. The level that exceeds its target by most comes first. Level-0 segments overlap, so they are merged
//!    together, with everything they overlap in level 1; if there are very many, the oldest come first. A
//!    segment that overlaps nothing in either level is only moved, as when keys arrive in order.
//! 4. In any other level, the segment that overlaps the fewest bytes of the next level per byte of its own is
//!    merged.
//! 5. When no writes come in, the newest level-0 segments are merged with one another, up to the size of 4
//!    segments, or all into level 1 if that is no larger. Each deeper level is reduced to a tenth of the next
//!    one. So data that arrives under load is merged rarely and late, while an idle store has few runs, with
//!    few keys in the upper ones.
//! 6. Segments that range tombstones delete entirely are dropped unread, before anything else. A segment with
//!    a long streak of tombstones (of keys or ranges) is merged down until they hide nothing, since a walk
//!    has to pass the tombstones or what they hide.
//! 7. A running compaction owns its inputs and, on its output level, the hull of their keys (I10). Its
//!    outputs may span gaps between its inputs, which the live set does not show. Others that need either
//!    wait.
//! 8. When a segment only moves, others move in the same manifest edit, while the level exceeds its target.
//!
//! Nothing here scans every segment of a store: levels are sorted, and results for a part of a level are kept
//! until that part changes (see `costs.rs`).

use crate::engine::compact::compaction::{Compaction, LEVEL0_GROUP_MAX, needs_no_tombstones};
use crate::engine::compact::costs::MergeCosts;
use crate::engine::compact::reservation::{Reservation, is_taken};
use crate::live::{LiveSegment, LiveSet, Segments};
use crate::manifest::LEVELS;
use crate::options::Options;
use crate::sync::assert_unlocked;

/// The smallest target of a level that is not the deepest, in segments.
const LEVEL_SEGMENTS_MIN: u64 = 4;
/// The most segments of level 1 while it is the deepest level.
const LEVEL1_SEGMENTS_MAX: u64 = 16;
/// Level 0 is due at this multiple of its trigger, no matter how large level 1 is.
const LEVEL0_TRIGGERS_MAX: f64 = 3.0;
/// The target of each level relative to the one above it.
const SIZE_RATIO: u64 = 10;

/// A walk takes a few milliseconds to pass a streak of this many tombstones, of keys or of ranges.
pub(crate) const TOMBSTONE_STREAK: usize = 8 << 10;

/// The most bytes of a level while it is the deepest one.
pub(crate) fn deepest_bytes_max(level: usize, segment_bytes: u64) -> u64 {
    let power = u32::try_from(level.saturating_sub(1)).unwrap_or(u32::MAX);
    SIZE_RATIO.saturating_pow(power).saturating_mul(segment_bytes.saturating_mul(LEVEL1_SEGMENTS_MAX))
}

/// The most bytes of a level below 0 before it is compacted.
fn target_bytes(live: &LiveSet, level: usize, segment_bytes: u64) -> u64 {
    let deepest = live.deepest().max(1);
    if level >= deepest {
        return deepest_bytes_max(level, segment_bytes);
    }
    let power = u32::try_from(deepest - level).unwrap_or(u32::MAX);
    let of_deepest = live.levels().get(deepest).map_or(0, |level| level.file_bytes());
    (of_deepest / SIZE_RATIO.saturating_pow(power)).max(segment_bytes.saturating_mul(LEVEL_SEGMENTS_MIN))
}

/// The most urgent compaction; `None` if every level is within its target or already being compacted. `costs`
/// come from the last pick.
pub(crate) fn pick(
    costs: &mut MergeCosts,
    live: &LiveSet,
    options: &Options,
    running: &[Reservation],
    is_idle: bool,
) -> Option<Compaction> {
    assert_unlocked();
    if let Some(dropped) = Compaction::drop_covered(live, running) {
        return Some(dropped);
    }
    let mut scores: Vec<(f64, usize)> =
        (0..LEVELS - 1).map(|level| (score(live, level, options), level)).collect();
    scores.retain(|(score, _)| *score >= 1.0);
    scores.sort_by(|a, b| b.0.total_cmp(&a.0));
    let urgent = scores.into_iter().find_map(|(_, level)| match level {
        0 => pick_level0(live, options, running),
        _ => pick_sorted(costs, live, level, excess_bytes(live, level, options), running),
    });
    urgent.or_else(|| pick_tombstones(live, options, running)).or_else(|| {
        if is_idle {
            pick_level0_when_idle(live, options, running).or_else(|| pick_when_idle(costs, live, running))
        } else {
            None
        }
    })
}

/// By how much a level below 0 exceeds its target.
fn excess_bytes(live: &LiveSet, level: usize, options: &Options) -> u64 {
    let bytes = live.levels().get(level).map_or(0, |level| level.file_bytes());
    bytes.saturating_sub(target_bytes(live, level, options.segment_bytes))
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

/// The next compaction of level 0, even if it has few segments.
pub(crate) fn pick_level0(live: &LiveSet, options: &Options, running: &[Reservation]) -> Option<Compaction> {
    let level0 = live.levels()[0].segments();
    // A merge within level 0 must not keep older segments from leaving it.
    let merges = |s: &LiveSegment| running.iter().any(|other| other.writes(0) && other.takes(s.meta.id));
    let oldest_merging = level0.iter().rev().find(|s| merges(s)).map(|s| s.meta.max_seq);
    let is_older = |s: &LiveSegment| oldest_merging.is_none_or(|merging| s.meta.max_seq < merging);
    // As many as make level 0 due.
    let moves_max = level0.len().saturating_sub(options.level0_trigger.saturating_sub(1)).max(1);
    pick_alone(live, 0, moves_max, running).or_else(|| Compaction::of_level0(live, is_older, running))
}

/// The oldest level-0 segments of at least `bytes`, at most `moves_max`, that overlap no other one of levels
/// 0 and 1, as when keys arrive in order.
fn pick_alone(live: &LiveSet, bytes: u64, moves_max: usize, running: &[Reservation]) -> Option<Compaction> {
    let level1 = live.levels()[1].segments();
    let is_alone = |s: &&LiveSegment| {
        s.meta.file_bytes >= bytes && level1.overlapping(&s.meta.smallest, &s.meta.largest).is_empty()
    };
    let level0 = disjoint_in_level0(live.levels()[0].segments());
    let mut candidates = level0.into_iter().rev().filter(is_alone);
    let first = candidates.find_map(|s| Compaction::down(live, vec![s.clone()], 1, running))?;
    Some(first.along(candidates.take(moves_max - 1), u64::MAX, running))
}

/// The level-0 segments that overlap no other one there, newest first.
fn disjoint_in_level0(level0: &Segments) -> Vec<&LiveSegment> {
    let mut by_key: Vec<(usize, &LiveSegment)> = level0.iter().enumerate().collect();
    by_key.sort_by(|(_, a), (_, b)| a.meta.smallest.cmp(&b.meta.smallest));
    let mut reached: Option<&[u8]> = None;
    let mut disjoint = Vec::new();
    for (number, (place, segment)) in by_key.iter().enumerate() {
        let meta = &segment.meta;
        let follows = reached.is_none_or(|reached| reached < meta.smallest.as_slice());
        let next = by_key.get(number + 1).map(|(_, next)| &next.meta.smallest);
        if follows && next.is_none_or(|next| *next > meta.largest) {
            disjoint.push((*place, *segment));
        }
        reached = reached.max(Some(&meta.largest));
    }
    disjoint.sort_by_key(|(place, _)| *place);
    disjoint.into_iter().map(|(_, segment)| segment).collect()
}

/// The segment of a level below 0 whose merge costs the fewest bytes per byte of its own. If it only moves,
/// others move with it, until `excess` bytes have left the level.
fn pick_sorted(
    costs: &mut MergeCosts,
    live: &LiveSet,
    level: usize,
    excess: u64,
    running: &[Reservation],
) -> Option<Compaction> {
    let below = live.levels().get(level + 1)?.segments();
    let is_free = |s: &&LiveSegment| !is_taken(running, s);
    let mut cheapest = costs.cheapest_first(live, level).filter(is_free);
    let first = cheapest.find_map(|s| Compaction::down(live, vec![s.clone()], level + 1, running))?;
    let moving = cheapest.take_while(|s| below.overlapping(&s.meta.smallest, &s.meta.largest).is_empty());
    Some(first.along(moving, excess, running))
}

/// Merges the newest level-0 segments, each at most as large as all newer ones together; or all of them into
/// level 1 if that is no larger. So a store that is written to now and then has few runs, and not every flush
/// merges every entry. A segment that overlaps nothing only moves, once it is no longer tiny.
fn pick_level0_when_idle(live: &LiveSet, options: &Options, running: &[Reservation]) -> Option<Compaction> {
    let [level0, level1, ..] = live.levels();
    if options.level0_trigger == usize::MAX {
        return None;
    }
    if let Some(alone) = pick_alone(live, options.segment_bytes / 4, usize::MAX, running) {
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
    if together > 0 && level1.file_bytes() <= level0.file_bytes() {
        pick_level0(live, options, running)
    } else {
        let newest: Vec<_> = level0.segments().iter().take(together).cloned().collect();
        Compaction::within_level0(&newest, running)
    }
}

/// Merges a segment with a long streak of tombstones into the next level, or rewrites it without them in the
/// deepest.
fn pick_tombstones(live: &LiveSet, options: &Options, running: &[Reservation]) -> Option<Compaction> {
    let is_dense = |s: &&LiveSegment| s.meta.longest_streak >= TOMBSTONE_STREAK as u64;
    live.levels().iter().enumerate().find_map(|(number, level)| {
        let pieces = level.segments().pieces().iter();
        let may_have = pieces.filter(|piece| piece.longest_streak() >= TOMBSTONE_STREAK as u64);
        let mut dense = may_have.flat_map(|piece| piece.segments()).filter(is_dense);
        match number {
            0 if options.level0_trigger == usize::MAX => None,
            0 => dense.next().and_then(|_| pick_level0(live, options, running)),
            _ => dense.find_map(|segment| {
                let rewrites = needs_no_tombstones(live, segment);
                let rewritten = rewrites.then(|| Compaction::rewrite(live, segment, running)).flatten();
                let down = || Compaction::down(live, vec![segment.clone()], number + 1, running);
                rewritten.or_else(down)
            }),
        }
    })
}

/// Compacts the uppermost sorted level that is larger than a tenth of the next one.
fn pick_when_idle(costs: &mut MergeCosts, live: &LiveSet, running: &[Reservation]) -> Option<Compaction> {
    let bytes: Vec<u64> = live.levels().iter().map(|level| level.file_bytes()).collect();
    let mut pairs = bytes.windows(2).enumerate().skip(1);
    let (level, excess) = pairs.find_map(|(level, pair)| match pair {
        // Segments that move also make the next level larger.
        [upper, lower] if *lower > 0 && upper.saturating_mul(SIZE_RATIO) > *lower => {
            let excess = upper.saturating_mul(SIZE_RATIO) - lower;
            Some((level, excess / (SIZE_RATIO + 1)))
        }
        _ => None,
    })?;
    pick_sorted(costs, live, level, excess, running)
}

#[cfg(test)]
mod tests;

//! Which segments to compact next: leveled compaction with size ratio 10, where the deepest level sets the
//! sizes of the others.
//!
//! 1. Merging level 0 rewrites level 1. So level 0 is due when it has 4 segments and as many bytes as level
//!    1, or 12 segments. Each keyspace is looked at alone, and only its segments are merged (`level0.rs`).
//! 2. The deepest level with segments may grow to 16 segments × 10 for each level above it. The target of
//!    each other level is a tenth of the next one, but at least 4 segments. So a store has as few levels as
//!    its size allows: data is merged through fewer levels, and a lookup checks fewer runs. (RocksDB's option
//!    `level_compaction_dynamic_level_bytes` does the same.)
//! 3. The level that exceeds its target by most comes first. Level-0 segments overlap, so they are merged
//!    together, with everything they overlap in level 1; if there are very many, the oldest come first. A
//!    segment that overlaps nothing in either level is only moved, as when keys arrive in order, unless it
//!    has less than a 16th of a full one's bytes.
//! 4. In any other level, the segment that overlaps the fewest bytes of the next level per byte of its own is
//!    merged.
//! 5. When no writes come in, the newest level-0 segments are merged with one another, up to the size of 4
//!    segments, or all into level 1 if that is no larger. Each deeper level is reduced to a tenth of the next
//!    one. So data that arrives under load is merged rarely and late, while an idle store has few runs, with
//!    few keys in the upper ones.
//! 6. Segments that range tombstones delete entirely are dropped unread, before anything else. So are those
//!    whose rows have all expired, unless they hide older rows. One that hides nothing is rewritten once
//!    about a third of it has expired. A segment with a long streak of tombstones (of keys or ranges) is
//!    merged down until they hide nothing, since a walk has to pass the tombstones or what they hide.
//! 7. Segments of windowed keyspaces stay in level 0, each in its time bucket, until they are dropped. Where
//!    they become too many, neighbours in a bucket are merged. One that may not be dropped when its bucket
//!    ends is merged into level 1 (`buckets.rs`).
//! 8. A running compaction owns its inputs and, on its output level, the hull of their keys (I10). Its
//!    outputs may span gaps between its inputs, which the live set does not show. Others that need either
//!    wait.
//! 9. When a segment only moves, others move in the same manifest edit, while the level exceeds its target.
//!
//! Nothing here scans every segment of a store: levels are sorted, and results for a part of a level are kept
//! until that part changes (see `costs.rs`).

mod buckets;
mod level0;

pub(crate) use buckets::pick_buckets;
pub(crate) use level0::{level0_is_due, pick_due, pick_level0};

use self::buckets::pick_ended;
use self::level0::{pick_in, pick_level0_when_idle};
use crate::engine::compact::compaction::{Compaction, needs_no_tombstones};
use crate::engine::compact::costs::MergeCosts;
use crate::engine::compact::reservation::{Reservation, is_taken};
use crate::key::{Space, Time};
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::LEVELS;
use crate::options::Options;
use crate::sync::assert_unlocked;

/// The smallest target of a level that is not the deepest, in segments.
const LEVEL_SEGMENTS_MIN: u64 = 4;
/// The most segments of level 1 while it is the deepest level.
const LEVEL1_SEGMENTS_MAX: u64 = 16;
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
    now: Time,
) -> Option<Compaction> {
    assert_unlocked();
    if let Some(dropped) = Compaction::drop_covered(live, running) {
        return Some(dropped);
    }
    if let Some(dropped) = Compaction::drop_expired(live, now, running) {
        return Some(dropped);
    }
    if let Some(merged) = pick_ended(live, options, running, now) {
        return Some(merged);
    }
    if let Some(merged) = pick_buckets(live, options, running) {
        return Some(merged);
    }
    let mut scores: Vec<(f64, usize)> =
        (0..LEVELS - 1).map(|level| (score(live, level, options), level)).collect();
    scores.retain(|(score, _)| *score >= 1.0);
    scores.sort_by(|a, b| b.0.total_cmp(&a.0));
    let urgent = scores.into_iter().find_map(|(_, level)| match level {
        0 => pick_due(live, options, running),
        _ => pick_sorted(costs, live, level, excess_bytes(live, level, options), running),
    });
    let of_old_rows = || pick_tombstones(live, options, running).or_else(|| pick_expired(live, now, running));
    urgent.or_else(of_old_rows).or_else(|| {
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
    match level {
        0 => level0::score(live, options),
        _ => of.file_bytes() as f64 / (target_bytes(live, level, options.segment_bytes) + 1) as f64,
    }
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

/// Merges a segment with a long streak of tombstones into the next level, or rewrites it without them in the
/// deepest.
fn pick_tombstones(live: &LiveSet, options: &Options, running: &[Reservation]) -> Option<Compaction> {
    let is_dense =
        |s: &&LiveSegment| s.meta.longest_streak >= TOMBSTONE_STREAK as u64 && !s.meta.is_in_bucket();
    live.levels().iter().enumerate().find_map(|(number, level)| {
        let pieces = level.segments().pieces().iter();
        let may_have = pieces.filter(|piece| piece.longest_streak() >= TOMBSTONE_STREAK as u64);
        let mut dense = may_have.flat_map(|piece| piece.segments()).filter(is_dense);
        match number {
            0 if options.level0_trigger == usize::MAX => None,
            0 => dense.find_map(|s| pick_in(live, Space::of(&s.meta.smallest)?, options, running)),
            _ => dense.find_map(|segment| {
                let rewrites = needs_no_tombstones(live, segment);
                let rewritten = rewrites.then(|| Compaction::rewrite(live, segment, running)).flatten();
                let down = || Compaction::down(live, vec![segment.clone()], number + 1, running);
                rewritten.or_else(down)
            }),
        }
    })
}

/// Rewrites a segment of a level below 0 that hides nothing without the rows that have expired, once these
/// are many. In upper levels, what may hide something waits for the next merge: that costs ten times as much.
fn pick_expired(live: &LiveSet, now: Time, running: &[Reservation]) -> Option<Compaction> {
    let is_due = |from: Option<Time>| from.is_some_and(|from| from <= now);
    live.levels().iter().skip(1).find_map(|level| {
        let may_have = level.segments().pieces().iter().filter(|piece| is_due(piece.rewrite_from()));
        let due = may_have.flat_map(|piece| piece.segments()).filter(|s| is_due(s.rewrite_from()));
        let mut at_bottom = due.filter(|s| needs_no_tombstones(live, s));
        at_bottom.find_map(|segment| Compaction::rewrite(live, segment, running))
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
mod expired_tests;
#[cfg(test)]
mod level0_tests;
#[cfg(test)]
mod tests;

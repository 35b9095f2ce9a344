//! Which segments to compact next: leveled compaction with size ratio 10, whose upper levels follow the size
//! of the deepest one.
//!
//! 1. Merging level 0 rewrites level 1. Level 0 is therefore due when it has 4 segments and as many bytes as
//!    level 1, or 12 segments.
//! 2. The deepest level with segments may grow to 16 segments × 10 for each level above it. Each other level
//!    has a tenth of the next one as its target, but at least 4 segments. So a store has as few levels as its
//!    size allows: data is merged into fewer of them on its way down, and a lookup asks fewer runs. (As in
//!    RocksDB, whose option `level_compaction_dynamic_level_bytes` sizes levels from below.)
//! 3. The level that exceeds its target by most goes first. The segments of level 0 overlap one another, so
//!    they are merged together, with everything they overlap in level 1. If there are very many, the oldest
//!    go first. A segment that overlaps nothing in either level is only moved, as when keys arrive in order.
//! 4. Of any other level, the segment that overlaps the fewest bytes of the next level per byte of its own is
//!    merged.
//! 5. When no writes come in, the newest segments of level 0 are merged with one another, up to the size of 4
//!    segments, or all into level 1 if that is no larger; and each level is reduced to a tenth of the next
//!    one. So data that arrives under load is merged rarely and late, while an idle store has few runs, and
//!    few keys in the upper ones.
//! 6. Segments of which range tombstones delete everything are dropped unread, before anything else. A
//!    segment with a long streak of tombstones, of keys or of ranges, is merged down until they have nothing
//!    left to hide, since a walk has to pass them or what they hide.
//! 7. A running compaction owns its inputs and, on its output level, the hull of their keys (I10). Its
//!    outputs may span gaps between its inputs, where the live set shows nothing yet. A compaction that needs
//!    either waits until it is done.
//! 8. Segments that only move go along with the first of them, in one edit of the manifest, as long as their
//!    level holds too much.
//!
//! Nothing here looks at every segment of a store: levels are sorted, and what is found for a part of a level
//! is kept while that part stays the same (see `costs.rs`).

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
/// Level 0 is due at so many times its trigger, however large level 1 is.
const LEVEL0_TRIGGERS_MAX: f64 = 3.0;
/// The target of each level relative to the one above it.
const SIZE_RATIO: u64 = 10;

/// A streak of so many tombstones, of keys or of ranges, takes a walk a few milliseconds to pass.
pub(crate) const TOMBSTONE_STREAK: usize = 8 << 10;

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

/// The most urgent compaction; `None` if every level is within its target or already being compacted. `costs`
/// are those of the last pick.
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

/// The next compaction of level 0, however few segments it has.
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

/// The oldest segments of level 0 of at least `bytes`, up to `moves_max`, that overlap no other one of levels
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

/// The segments of level 0 that overlap no other one there, newest first.
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

/// The segment of a level below 0 that is merged with the fewest bytes for each of its own. If it only moves,
/// others move along, until `excess` bytes have left the level.
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

/// Merges the newest segments of level 0, each of which is at most as large as those after it together; or
/// all into level 1 if that is no larger. So a store that is written now and then has a few runs, and no
/// entry is merged for every flush. A segment that overlaps nothing only moves, once it is no longer tiny.
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

/// Merges a segment with a long streak of tombstones into the next level; in the deepest one, rewrites it
/// without them.
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
        // What moves also makes the next level larger.
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

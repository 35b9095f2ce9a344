//! Which segments of level 0 to compact next: those of the keyspace that has most to gain.

use crate::engine::compact::compaction::{Compaction, LEVEL0_GROUP_MAX};
use crate::engine::compact::reservation::Reservation;
use crate::key::Space;
use crate::live::{Level0Keyspace, LiveSegment, LiveSet, Segments, hull, reaches_into};
use crate::options::Options;

/// Level 0 is due at this multiple of its trigger, no matter how large level 1 is.
pub(super) const LEVEL0_TRIGGERS_MAX: f64 = 3.0;
/// The most bytes that a merge of an idle store leaves in level 0, in segments.
const IDLE_SEGMENTS_MAX: u64 = 4;
/// A segment smaller than this share of a full one is merged with others, even if it could move.
const TINY_SHARE: u64 = 16;

/// Whether a segment has keys of the keyspace, and is not kept in a time bucket.
fn is_merged_of(segment: &LiveSegment, space: Space) -> bool {
    !segment.meta.is_in_bucket() && reaches_into(segment, space)
}

/// How urgent it is to merge what level 0 has of the keyspaces, most urgent first; from 1 on, it is due.
fn by_score(live: &LiveSet, options: &Options) -> Vec<(f64, Level0Keyspace)> {
    let score = |of: &Level0Keyspace| {
        let triggers = of.segments as f64 / options.level0_trigger as f64;
        let of_level1 = of.file_bytes as f64 / (level1_bytes(live, of.space) as f64 + 1.0);
        triggers.min(of_level1).max(triggers / LEVEL0_TRIGGERS_MAX)
    };
    let merges = live.level0_keyspaces().iter().filter(|of| of.segments > 0);
    let mut scores: Vec<_> = merges.map(|of| (score(of), *of)).collect();
    scores.sort_by(|a, b| b.0.total_cmp(&a.0));
    scores
}

/// The length of the level-1 segments with keys of a keyspace, in bytes.
pub(super) fn level1_bytes(live: &LiveSet, space: Space) -> u64 {
    let (level1, (first, end)) = (&live.levels()[1], space.bounds());
    let within = level1.segments().overlapping(&first, &end);
    if within.len() == level1.segments().len() {
        return level1.file_bytes();
    }
    level1.segments().range(within).map(|s| s.meta.file_bytes).fold(0, u64::saturating_add)
}

/// How urgent it is to merge what level 0 has of any keyspace.
pub(super) fn score(live: &LiveSet, options: &Options) -> f64 {
    by_score(live, options).first().map_or(0.0, |(score, _)| *score)
}

/// Whether level 0 has enough segments to trigger its compaction.
pub(crate) fn level0_is_due(live: &LiveSet, options: &Options) -> bool {
    score(live, options) >= 1.0
}

/// The next compaction of what is due in level 0.
pub(crate) fn pick_due(live: &LiveSet, options: &Options, running: &[Reservation]) -> Option<Compaction> {
    let due = by_score(live, options).into_iter().take_while(|(score, _)| *score >= 1.0);
    due.into_iter().find_map(|(_, of)| pick_in(live, of.space, options, running))
}

/// The next compaction of level 0, even if nothing is due.
pub(crate) fn pick_level0(live: &LiveSet, options: &Options, running: &[Reservation]) -> Option<Compaction> {
    by_score(live, options).into_iter().find_map(|(_, of)| pick_in(live, of.space, options, running))
}

/// The next compaction of what level 0 has of a keyspace.
pub(super) fn pick_in(
    live: &LiveSet,
    space: Space,
    options: &Options,
    running: &[Reservation],
) -> Option<Compaction> {
    let of_it = || live.levels()[0].segments().iter().filter(move |s| is_merged_of(s, space));
    // A merge within level 0 must not keep older segments from leaving it.
    let merges = |s: &LiveSegment| running.iter().any(|other| other.writes(0) && other.takes(s.meta.id));
    let oldest_merging = of_it().rev().find(|s| merges(s)).map(|s| s.meta.max_seq);
    let is_older = |s: &LiveSegment| oldest_merging.is_none_or(|merging| s.meta.max_seq < merging);
    // As many as make level 0 due.
    let moves_max = of_it().count().saturating_sub(options.level0_trigger.saturating_sub(1)).max(1);
    let may_move =
        |s: &LiveSegment| is_merged_of(s, space) && s.meta.file_bytes >= options.segment_bytes / TINY_SHARE;
    pick_alone(live, may_move, moves_max, running)
        .or_else(|| Compaction::of_level0(live, |s| is_merged_of(s, space) && is_older(s), running))
}

/// The oldest `wanted` level-0 segments, at most `moves_max`, that overlap no other one of levels 0 and 1, as
/// when keys arrive in order.
fn pick_alone(
    live: &LiveSet,
    wanted: impl Fn(&LiveSegment) -> bool,
    moves_max: usize,
    running: &[Reservation],
) -> Option<Compaction> {
    let level1 = live.levels()[1].segments();
    let is_alone =
        |s: &&LiveSegment| wanted(s) && level1.overlapping(&s.meta.smallest, &s.meta.largest).is_empty();
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

/// For a keyspace, merges the newest level-0 segments, each at most as large as all newer ones together; or
/// all of them into level 1 if that is no larger. So a store that is written to now and then has few runs,
/// and not every flush merges every entry. A segment that overlaps nothing only moves, once it is no longer
/// tiny.
pub(super) fn pick_level0_when_idle(
    live: &LiveSet,
    options: &Options,
    running: &[Reservation],
) -> Option<Compaction> {
    if options.level0_trigger == usize::MAX {
        return None;
    }
    let is_large = |s: &LiveSegment| !s.meta.is_in_bucket() && s.meta.file_bytes >= options.segment_bytes / 4;
    if let Some(alone) = pick_alone(live, is_large, usize::MAX, running) {
        return Some(alone);
    }
    let several = by_score(live, options).into_iter().filter(|(_, of)| of.segments > 1);
    several.into_iter().find_map(|(_, of)| {
        let together =
            small_together(live, of.space, options.segment_bytes.saturating_mul(IDLE_SEGMENTS_MAX));
        if !together.is_empty() && level1_bytes(live, of.space) <= of.file_bytes {
            pick_in(live, of.space, options, running)
        } else {
            Compaction::within_level0(&together, running)
        }
    })
}

/// The newest level-0 segments with keys of a keyspace, each at most as large as all newer ones together, up
/// to a number of bytes. Those between the newest and the oldest of them by age overlap none of them.
fn small_together(live: &LiveSet, space: Space, bytes_max: u64) -> Vec<LiveSegment> {
    let (mut newest, mut others): (Vec<LiveSegment>, Vec<&LiveSegment>) = Default::default();
    let (mut newer_bytes, mut together) = (0u64, 0);
    for segment in live.levels()[0].segments().iter() {
        if !is_merged_of(segment, space) {
            others.push(segment);
            continue;
        }
        let bytes = segment.meta.file_bytes;
        newest.push(segment.clone());
        let passes_over = hull(&newest).is_some_and(|(from, to)| others.iter().any(|s| s.overlaps(from, to)));
        if newest.len() > LEVEL0_GROUP_MAX || bytes.saturating_add(newer_bytes) > bytes_max || passes_over {
            break;
        }
        if newest.len() > 1 && bytes <= newer_bytes {
            together = newest.len();
        }
        newer_bytes += bytes;
    }
    newest.truncate(together);
    newest
}

//! Which segments of windowed keyspaces to merge: neighbours in one time bucket, once a keyspace has more
//! segments than two for each bucket; and those that outlive their bucket.

use super::level0::{LEVEL0_TRIGGERS_MAX, level1_bytes};
use crate::engine::compact::compaction::{
    Compaction, LEVEL0_GROUP_MAX, LEVEL0_RANGE_BYTES_MAX, may_drop_unread,
};
use crate::engine::compact::reservation::{Reservation, is_taken};
use crate::key::{Space, Time};
use crate::live::{BUCKET_RUNS_MAX, LiveSegment, LiveSet, reaches_into};
use crate::options::Options;

/// The merge that costs the fewest bytes for each segment less, in a keyspace that has too many. So many
/// small segments are merged at once, and a large one only with others that are large. If no two neighbours
/// share a bucket, as where rows have other lives than the window, the merged ones go to the later bucket. If
/// no two neighbours can be merged, because of their range tombstones, some segments leave the buckets.
pub(crate) fn pick_buckets(live: &LiveSet, options: &Options, running: &[Reservation]) -> Option<Compaction> {
    if options.level0_trigger == usize::MAX {
        return None;
    }
    let mut too_deep = live.level0_keyspaces().iter().filter(|of| of.in_buckets > BUCKET_RUNS_MAX);
    too_deep.find_map(|of| {
        let parts = |cuts: fn(&LiveSegment, &LiveSegment) -> bool| parts(live, of.space, running, cuts);
        let cheapest = |parts: Vec<Vec<LiveSegment>>| {
            let costs = parts.iter().filter_map(|part| cheapest_in(part));
            costs.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, merged)| merged)
        };
        let within = cheapest(parts(|a, b| a.meta.bucket != b.meta.bucket));
        match within.or_else(|| cheapest(parts(|_, _| false))) {
            Some(merged) => Compaction::within_level0(&merged, running),
            None => out_of_buckets(live, of.space, running),
        }
    })
}

/// Merges segments into level 1 whose bucket has ended, and which may not be dropped: they have rows that
/// outlive the window, or may hide some. Else they would stay for as long as these, with all that is newer.
/// It waits until they have as many bytes as level 1, or are very many, as in other keyspaces.
pub(super) fn pick_ended(
    live: &LiveSet,
    options: &Options,
    running: &[Reservation],
    now: Time,
) -> Option<Compaction> {
    if options.level0_trigger == usize::MAX {
        return None;
    }
    let level0 = live.levels()[0].segments();
    live.level0_keyspaces().iter().filter(|of| of.in_buckets > 0).find_map(|of| {
        let stays = |s: &LiveSegment| {
            s.meta.has_bucket_ended(now) && reaches_into(s, of.space) && !may_drop_unread(live, s, now)
        };
        let (mut count, mut bytes) = (0usize, 0u64);
        for segment in level0.iter().filter(|s| stays(s)) {
            (count, bytes) = (count + 1, bytes.saturating_add(segment.meta.file_bytes));
        }
        let many = options.level0_trigger as f64 * LEVEL0_TRIGGERS_MAX;
        let is_due = count > 0 && (bytes >= level1_bytes(live, of.space) || count as f64 >= many);
        is_due.then(|| Compaction::of_level0(live, stays, running)).flatten()
    })
}

/// Merges the older half of a keyspace's buckets into level 1, unless some of its segments are being merged
/// already. Writers would wait until the rows expire.
fn out_of_buckets(live: &LiveSet, space: Space, running: &[Reservation]) -> Option<Compaction> {
    let is_of_it = |s: &LiveSegment| s.meta.is_in_bucket() && reaches_into(s, space);
    let of_it = || live.levels()[0].segments().iter().filter(|s| is_of_it(s));
    if of_it().any(|s| is_taken(running, s)) {
        return None;
    }
    let newest = of_it().rev().take(BUCKET_RUNS_MAX / 2).last()?.meta.max_seq;
    Compaction::of_level0(live, |s| is_of_it(s) && s.meta.max_seq <= newest, running)
}

/// The segments of a keyspace that are in buckets, cut between some neighbours, and wherever another segment
/// or one that is being merged is between them.
fn parts(
    live: &LiveSet,
    space: Space,
    running: &[Reservation],
    cuts: impl Fn(&LiveSegment, &LiveSegment) -> bool,
) -> Vec<Vec<LiveSegment>> {
    let mut parts: Vec<Vec<LiveSegment>> = Vec::new();
    let mut before: Option<&LiveSegment> = None;
    for segment in live.levels()[0].segments().iter().filter(|s| reaches_into(s, space)) {
        let is_free = segment.meta.is_in_bucket() && !is_taken(running, segment);
        match (before, parts.last_mut()) {
            (Some(before), Some(part)) if is_free && !cuts(before, segment) => part.push(segment.clone()),
            _ if is_free => parts.push(vec![segment.clone()]),
            _ => {}
        }
        before = is_free.then_some(segment);
    }
    parts
}

/// The neighbours whose merge costs the fewest bytes for each segment less, with that cost. `None` if no two
/// can be merged.
fn cheapest_in(part: &[LiveSegment]) -> Option<(f64, Vec<LiveSegment>)> {
    let mut best: Option<(f64, &[LiveSegment])> = None;
    let range_bytes: Vec<u64> = part.iter().map(LiveSegment::range_bytes).collect();
    for first in 0..part.len() {
        let (mut bytes, mut of_ranges) = (0u64, 0u64);
        let segments = part.iter().zip(&range_bytes).skip(first).take(LEVEL0_GROUP_MAX);
        for (n, (segment, range_bytes)) in segments.enumerate() {
            bytes = bytes.saturating_add(segment.meta.file_bytes);
            of_ranges = of_ranges.saturating_add(*range_bytes);
            if of_ranges > LEVEL0_RANGE_BYTES_MAX {
                break;
            }
            let cost = bytes as f64 / n as f64;
            if n > 0 && best.is_none_or(|(least, _)| cost < least) {
                best = part.get(first..=first + n).map(|merged| (cost, merged));
            }
        }
    }
    best.map(|(cost, merged)| (cost, merged.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::Maker;
    use super::*;
    use crate::key::Time;
    use crate::manifest::SegmentMeta;
    use std::sync::Arc;

    const MIB: u64 = 1 << 20;

    /// Segments of a bucket that are full of range tombstones.
    fn full_of_ranges(count: u64, bytes: u64) -> LiveSet {
        let mut maker = Maker::new(1);
        LiveSet::new((1..=count).map(|seq| {
            let keys = [b"a", b"z"].map(|key| Space::new(7).stored(key));
            let mut segment = maker.segment_of(0, keys, [seq, seq]);
            let mut summary = segment.meta.summary.clone();
            (summary.facts.ranges, summary.facts.bucket) = (1, Time::of_millis(1));
            summary.file_bytes = bytes;
            segment.meta = Arc::new(SegmentMeta { summary, ..(*segment.meta).clone() });
            segment
        }))
    }

    fn pick(live: &LiveSet, running: &[Reservation]) -> Option<Compaction> {
        pick_buckets(live, &Options::new(), running)
    }

    #[test]
    fn only_as_many_are_merged_as_their_range_tombstones_allow() {
        assert!(pick(&full_of_ranges(24, 10 * MIB), &[]).is_none());
        let merged = pick(&full_of_ranges(25, 10 * MIB), &[]).unwrap();
        assert_eq!((merged.upper.len(), merged.output_level), (6, 0));
    }

    #[test]
    fn the_older_half_leaves_the_buckets_if_no_two_can_be_merged() {
        let live = full_of_ranges(25, 40 * MIB);
        let down = pick(&live, &[]).unwrap();
        assert_eq!((down.upper.len(), down.output_level), (12, 1));
        assert!(down.upper.iter().all(|s| s.meta.max_seq <= 12));
        assert!(pick(&live, &[down.reservation().clone()]).is_none());
    }
}

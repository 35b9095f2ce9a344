//! A compaction: what it merges or moves, and what it owns while it runs. `pick` chooses one.

use super::reservation::{Reservation, is_taken};
use crate::engine::control::Control;
use crate::engine::shared::Shared;
use crate::engine::storage::segment_builder::RANGE_BYTES_MAX;
use crate::key::Time;
use crate::live::{LiveSegment, LiveSet, Segments, hull};
use std::sync::Arc;

/// The most level-0 segments in one merge. Each needs a cursor with a read window of up to 256 KiB; any other
/// level needs only one cursor.
pub(crate) const LEVEL0_GROUP_MAX: usize = 64;

/// The most bytes of range tombstones in one merge within level 0: all go to one segment, into one block.
pub(crate) const LEVEL0_RANGE_BYTES_MAX: u64 = 2 * RANGE_BYTES_MAX as u64;

/// The most segments that move in one manifest edit. Each takes about 100 bytes of it.
const MOVES_MAX: usize = 1 << 16;

/// What a compaction does with its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompactionKind {
    /// Merges them into the output level.
    Merge,
    /// Changes their level; they keep their files. They overlap neither each other nor the output level.
    Move,
    /// Removes them unread: range tombstones delete all of their rows, or all have expired.
    Drop,
    /// Rewrites one of them in its level, in this build's format and without tombstones that nothing needs.
    Rewrite,
}

impl CompactionKind {
    /// As in events.
    pub fn name(self) -> &'static str {
        match self {
            CompactionKind::Merge => "merge",
            CompactionKind::Move => "move",
            CompactionKind::Drop => "drop",
            CompactionKind::Rewrite => "rewrite",
        }
    }
}

/// Segments to compact into `output_level`.
pub(crate) struct Compaction {
    pub kind: CompactionKind,
    pub upper: Vec<LiveSegment>,
    pub lower: Vec<LiveSegment>,
    pub output_level: u8,
    /// No deeper level and no quarantined segment has keys in this range, so tombstones hide nothing.
    pub bottom: bool,
    reservation: Reservation,
}

impl Compaction {
    /// A compaction of these segments. `None` if there are none, or a running compaction is in the way.
    fn of(
        kind: CompactionKind,
        upper: Vec<LiveSegment>,
        lower: Vec<LiveSegment>,
        output_level: u8,
        bottom: bool,
        running: &[Reservation],
    ) -> Option<Self> {
        let reservation = Reservation::of(upper.iter().chain(&lower), output_level)?;
        let is_free = reservation.is_free(running);
        is_free.then_some(Compaction { kind, upper, lower, output_level, bottom, reservation })
    }

    /// Merges everything into one run. `None` without segments.
    pub fn of_all(live: &LiveSet) -> Option<Self> {
        let level = u8::try_from(live.deepest().max(1)).ok()?;
        Compaction::of(
            CompactionKind::Merge,
            live.segments().cloned().collect(),
            Vec::new(),
            level,
            true,
            &[],
        )
    }

    pub fn inputs(&self) -> impl Iterator<Item = &LiveSegment> + Clone {
        self.upper.iter().chain(&self.lower)
    }

    /// When the time bucket of its outputs ends: the last one of its inputs', if they stay in buckets.
    pub fn bucket(&self) -> Time {
        let stays = self.output_level == 0 && self.inputs().all(|s| s.meta.is_in_bucket());
        self.inputs().map(|s| s.meta.bucket).max().filter(|_| stays).unwrap_or(Time::START)
    }

    /// Merges `upper` into `output_level`, with everything it overlaps there. A segment that overlaps nothing
    /// moves, unless it has unneeded tombstones or an earlier release's format. `None` if a running
    /// compaction is in the way.
    pub fn down(
        live: &LiveSet,
        upper: Vec<LiveSegment>,
        output_level: usize,
        running: &[Reservation],
    ) -> Option<Self> {
        let (smallest, largest) = hull(&upper)?;
        let below = live.levels().get(output_level)?.segments();
        let lower: Vec<_> = below.range(below.overlapping(smallest, largest)).cloned().collect();
        let (smallest, largest) = hull(upper.iter().chain(&lower))?;
        let bottom = is_bottom(live, output_level, smallest, largest);
        let kind = match (&*upper, &*lower) {
            ([only], []) if bottom && only.meta.has_tombstones() => CompactionKind::Merge,
            ([only], []) if may_move(only) => CompactionKind::Move,
            _ => CompactionKind::Merge,
        };
        Compaction::of(kind, upper, lower, u8::try_from(output_level).ok()?, bottom, running)
    }

    /// If this compaction is a move, adds others until `bytes` have moved. Each of the others must overlap
    /// nothing in the output level and nothing else in its own.
    pub fn along<'a>(
        self,
        others: impl Iterator<Item = &'a LiveSegment>,
        bytes: u64,
        running: &[Reservation],
    ) -> Self {
        if self.kind != CompactionKind::Move {
            return self;
        }
        let mut moved = self.upper.iter().map(|s| s.meta.file_bytes).sum::<u64>();
        let is_free = |s: &&LiveSegment| !is_taken(running, s);
        let mut upper = self.upper.clone();
        // Rewrite a segment whose tombstones may hide nothing.
        let may_stay = |s: &&LiveSegment| !s.meta.has_tombstones() && may_move(s);
        for segment in others.filter(may_stay).filter(is_free) {
            if moved >= bytes || upper.len() >= MOVES_MAX {
                break;
            }
            moved = moved.saturating_add(segment.meta.file_bytes);
            upper.push(segment.clone());
        }
        if upper.len() == self.upper.len() {
            return self;
        }
        let moved =
            Compaction::of(CompactionKind::Move, upper, Vec::new(), self.output_level, false, running);
        moved.unwrap_or(self)
    }

    /// Merges the `wanted` oldest level-0 segments into level 1, with those that must not stay above them.
    pub fn of_level0(
        live: &LiveSet,
        wanted: impl Fn(&LiveSegment) -> bool,
        running: &[Reservation],
    ) -> Option<Self> {
        Compaction::down(live, level0_group(live.levels()[0].segments(), wanted), 1, running)
    }

    /// Merges level-0 segments into one. `None` if there are none, they have [too many range
    /// tombstones](LEVEL0_RANGE_BYTES_MAX), or a running compaction is in the way.
    pub fn within_level0(segments: &[LiveSegment], running: &[Reservation]) -> Option<Self> {
        if segments.iter().map(LiveSegment::range_bytes).sum::<u64>() > LEVEL0_RANGE_BYTES_MAX {
            return None;
        }
        Compaction::of(CompactionKind::Merge, segments.to_vec(), Vec::new(), 0, false, running)
    }

    /// Removes the segments that range tombstones cover in the deepest level that has any. `None` if there
    /// are none, or running compactions read them all.
    pub fn drop_covered(live: &LiveSet, running: &[Reservation]) -> Option<Self> {
        let is_free = |s: &&LiveSegment| !is_taken(running, s);
        let output_level = live.covered().iter().filter(is_free).filter_map(LiveSegment::level).max()?;
        let of_level = live.covered().iter().filter(|s| s.level() == Some(output_level));
        let covered = of_level.filter(is_free).cloned().collect();
        Compaction::of(CompactionKind::Drop, covered, Vec::new(), output_level, false, running)
    }

    /// Removes the segments whose rows have all expired and hide nothing, in the deepest level that has any.
    /// `None` if there are none, or running compactions read them all.
    pub fn drop_expired(live: &LiveSet, now: Time, running: &[Reservation]) -> Option<Self> {
        let may_drop = |s: &&LiveSegment| !is_taken(running, s) && may_drop_unread(live, s, now);
        live.levels().iter().enumerate().rev().find_map(|(number, level)| {
            let pieces = level.segments().pieces().iter();
            let may_have = pieces.filter(|piece| piece.has_expired_from().is_some_and(|from| from <= now));
            let expired: Vec<_> =
                may_have.flat_map(|piece| piece.segments()).filter(may_drop).cloned().collect();
            let output_level = u8::try_from(number).ok()?;
            Compaction::of(CompactionKind::Drop, expired, Vec::new(), output_level, false, running)
        })
    }

    /// Removes the segments whose keys are all within a range that was deleted. `None` if there are none, or
    /// running compactions read them all.
    pub fn drop_within(live: &LiveSet, start: &[u8], end: &[u8], running: &[Reservation]) -> Option<Self> {
        let is_within = |s: &&LiveSegment| {
            s.level().is_some() && s.meta.smallest.as_slice() >= start && *s.meta.largest < *end
        };
        let within = live.segments().filter(is_within).filter(|s| !is_taken(running, s));
        let within: Vec<LiveSegment> = within.cloned().collect();
        let output_level = within.iter().filter_map(LiveSegment::level).max()?;
        Compaction::of(CompactionKind::Drop, within, Vec::new(), output_level, false, running)
    }

    /// Rewrites one segment in its level, without its tombstones if [nothing needs
    /// them](needs_no_tombstones). `None` if a running compaction is in the way.
    pub fn rewrite(live: &LiveSet, segment: &LiveSegment, running: &[Reservation]) -> Option<Self> {
        let (kind, bottom) = (CompactionKind::Rewrite, needs_no_tombstones(live, segment));
        Compaction::of(kind, vec![segment.clone()], Vec::new(), segment.level()?, bottom, running)
    }

    /// What this compaction owns while it runs.
    pub fn reservation(&self) -> &Reservation {
        &self.reservation
    }

    /// Reserves what it needs. `false` if another compaction has taken it, or if the live set has changed
    /// since this was chosen (without the lock).
    pub fn reserve(&self, shared: &Shared, control: &mut Control, live: &Arc<LiveSet>) -> bool {
        shared.is_current(live) && control.compactions.reserve(&self.reservation)
    }

    /// Drops the segments, so that obsolete files can be deleted. The reservation stays.
    pub fn let_go(&mut self) {
        self.upper.clear();
        self.lower.clear();
    }
}

/// Whether a segment may keep its file in another level. One of an earlier release's format is rewritten, and
/// one from level 0 with several keyspaces is split.
fn may_move(segment: &LiveSegment) -> bool {
    !segment.meta.is_of_earlier_format() && (segment.level() != Some(0) || segment.meta.owner().is_some())
}

/// Whether the tombstones of a segment have nothing left to hide.
pub(crate) fn needs_no_tombstones(live: &LiveSet, segment: &LiveSegment) -> bool {
    is_bottom(
        live,
        usize::from(segment.meta.place.last_level()),
        &segment.meta.smallest,
        &segment.meta.largest,
    )
}

/// Whether all rows of a segment have expired, and all that they may hide.
pub(crate) fn may_drop_unread(live: &LiveSet, segment: &LiveSegment, now: Time) -> bool {
    segment.meta.has_expired(now) && hides_only_expired(live, segment, now)
}

/// Whether all entries that a segment may hide have expired themselves: those of deeper levels, of level-0
/// segments that are not newer, and of quarantined segments.
fn hides_only_expired(live: &LiveSet, segment: &LiveSegment, now: Time) -> bool {
    let (smallest, largest) = (&*segment.meta.smallest, &*segment.meta.largest);
    let level = usize::from(segment.meta.place.last_level());
    let [level0, sorted @ ..] = live.levels();
    let mut deeper = sorted
        .iter()
        .skip(level)
        .flat_map(|level| level.segments().range(level.segments().overlapping(smallest, largest)));
    let mut unsorted = level0.segments().iter().filter(|s| level == 0 && s.meta.id != segment.meta.id);
    let is_harmless = |s: &LiveSegment| {
        !s.overlaps(smallest, largest) || s.meta.min_seq > segment.meta.max_seq || s.meta.has_expired(now)
    };
    deeper.all(|s| s.meta.has_expired(now))
        && unsorted.all(is_harmless)
        && live.quarantined().iter().all(is_harmless)
}

/// Whether no deeper level and no quarantined segment has keys in the range.
fn is_bottom(live: &LiveSet, level: usize, smallest: &[u8], largest: &[u8]) -> bool {
    let mut deeper = live.levels().iter().skip(level + 1);
    deeper.all(|level| level.segments().overlapping(smallest, largest).is_empty())
        && !live.quarantined().iter().any(|s| s.overlaps(smallest, largest))
}

/// The oldest `wanted` level-0 segments, up to one merge's limit, and all that must not stay above them.
fn level0_group(level0: &Segments, wanted: impl Fn(&LiveSegment) -> bool) -> Vec<LiveSegment> {
    let oldest_first = level0.iter().rev();
    let (mut group, mut rest) = (Vec::new(), Vec::new());
    for segment in oldest_first {
        let takes = group.len() < LEVEL0_GROUP_MAX && wanted(segment);
        if takes { &mut group } else { &mut rest }.push(segment.clone());
    }
    with_bound(group, rest)
}

/// Adds every level-0 segment that must not stay above the group, since it overlaps and has entries as old.
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

//! The live set: the segments that reads use.
//!
//! A live set is immutable. A flush, a compaction or a rebuilt sidecar makes a new one that shares segments
//! with the old. Readers keep the one they loaded as long as they need it. An obsolete segment's files are
//! unlinked when the last live set with it is dropped.

use super::level0::{self, Level0Keyspace};
use super::ranged_runs::RangedRuns;
use super::run_groups::RunGroups;
use super::runs::{Run, RunGroup};
use super::segment::LiveSegment;
use super::segments::{Level, Piece};
use crate::id::FileId;
use crate::manifest::LEVELS;
use crate::manifest::{ManifestState, SegmentMeta, overlap};
use crate::sync::assert_unlocked;
use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

/// All levels and the quarantined segments.
pub struct LiveSet {
    levels: [Level; LEVELS],
    level0: Box<[Level0Keyspace]>,
    /// All sorted runs, newest first where they overlap.
    groups: Arc<RunGroups>,
    quarantined: Box<[LiveSegment]>,
    ranged: RangedRuns,
    /// Computed on first use.
    covered: OnceLock<Vec<LiveSegment>>,
}

/// The item for a segment's level; `None` in quarantine.
fn of_level<'a, T>(levels: &'a mut [T; LEVELS], segment: &LiveSegment) -> Option<&'a mut T> {
    levels.get_mut(usize::from(segment.level()?))
}

impl LiveSet {
    /// Assigns segments to their levels.
    pub fn new(segments: impl IntoIterator<Item = LiveSegment>) -> Self {
        let mut sorted: [Vec<LiveSegment>; LEVELS] = Default::default();
        let mut quarantined = Vec::new();
        for segment in segments {
            of_level(&mut sorted, &segment).unwrap_or(&mut quarantined).push(segment);
        }
        let mut number = 0..;
        let levels = sorted.map(|segments| Level::new(number.next().unwrap_or_default(), segments));
        LiveSet::of(levels, quarantined)
    }

    fn of(levels: [Level; LEVELS], mut quarantined: Vec<LiveSegment>) -> Self {
        assert_unlocked();
        quarantined.sort_by_key(|s| Reverse(s.meta.max_seq));
        let ranged = RangedRuns::of(&levels, &quarantined);
        LiveSet {
            groups: groups_of(&levels),
            level0: level0::keyspaces(levels[0].segments()),
            levels,
            quarantined: quarantined.into(),
            ranged,
            covered: OnceLock::new(),
        }
    }

    /// The next live set: without `removed`, which may have changed their levels since, and with `added`. The
    /// cost depends on what changes, not on what stays.
    pub fn with(&self, added: Vec<LiveSegment>, removed: &[LiveSegment]) -> Self {
        let mut gone: [Vec<&LiveSegment>; LEVELS] = Default::default();
        let mut new: [Vec<LiveSegment>; LEVELS] = Default::default();
        let mut quarantined = self.quarantined.to_vec();
        for now in removed.iter().filter_map(|s| self.now(&s.meta)) {
            match of_level(&mut gone, now) {
                Some(level) => level.push(now),
                None => quarantined.retain(|s| s.meta.id != now.meta.id),
            }
        }
        for segment in added {
            of_level(&mut new, &segment).unwrap_or(&mut quarantined).push(segment);
        }
        let mut changes = gone.iter().zip(new).zip(&self.levels).enumerate();
        let levels = std::array::from_fn(|_| match changes.next() {
            Some((number, ((gone, added), level))) => level.with(number, gone, added),
            None => Level::default(),
        });
        LiveSet::of(levels, quarantined)
    }

    /// The same segments, some of them with other sidecars.
    pub fn replaced(&self, renewed: Vec<LiveSegment>) -> Self {
        let before = renewed.clone();
        self.with(renewed, &before)
    }

    /// The segment with these keys and this number, at its current level.
    pub fn now(&self, meta: &SegmentMeta) -> Option<&LiveSegment> {
        let [level0, sorted @ ..] = &self.levels;
        let is_it = |s: &&LiveSegment| s.meta.id == meta.id;
        for segments in sorted.iter().map(Level::segments) {
            let at = segments.partition_point(|s| s.meta.smallest < meta.smallest);
            let found = segments.get(at).filter(is_it);
            if found.is_some() {
                return found;
            }
        }
        let segments = level0.segments();
        let at = segments.partition_point(|s| s.meta.max_seq > meta.max_seq);
        let mut same_age = segments.range(at..segments.len()).take_while(|s| s.meta.max_seq == meta.max_seq);
        same_age.find(is_it).or_else(|| self.quarantined.iter().find(is_it))
    }

    /// The segment with this number. Scans all of them; [`now`](Self::now) does not.
    pub fn get(&self, id: FileId) -> Option<&LiveSegment> {
        self.segments().find(|s| s.meta.id == id)
    }

    /// Checks that none of these segments of the live set overlaps a neighbour in its level (I10).
    ///
    /// # Errors
    /// A message that names two overlapping segments.
    pub fn check_disjoint(&self, segments: &[LiveSegment]) -> Result<(), String> {
        for segment in segments.iter().filter(|s| s.level() != Some(0)) {
            let level = segment.level().and_then(|level| self.levels.get(usize::from(level)));
            let meta = &segment.meta;
            let Some(level) = level.map(Level::segments) else { continue };
            // Sorted by smallest key even if they overlap.
            let at = level.partition_point(|s| s.meta.smallest < meta.smallest);
            let before = at.checked_sub(1).and_then(|at| level.get(at));
            let others = before.into_iter().chain(level.range(at..level.len()).take(2));
            if let Some(other) =
                others.filter(|s| s.meta.id != meta.id).find(|s| s.overlaps(&meta.smallest, &meta.largest))
            {
                return Err(overlap(&other.meta, meta));
            }
        }
        Ok(())
    }

    /// Whether these are the manifest's segments, each in its level.
    pub fn is_of(&self, state: &ManifestState) -> bool {
        let recorded =
            |s: &LiveSegment| state.segments.get(&s.meta.id).is_some_and(|meta| meta.place == s.meta.place);
        self.segments().all(recorded) && self.segments().count() == state.segments.len()
    }

    /// The levels, 0 first.
    pub fn levels(&self) -> &[Level; LEVELS] {
        &self.levels
    }

    /// Level 0 by keyspace: those that its segments begin in. No other keyspace has more segments there than
    /// one of these.
    pub fn level0_keyspaces(&self) -> &[Level0Keyspace] {
        &self.level0
    }

    /// The most segments of level 0 that have keys of one keyspace, without those of time buckets that stay
    /// there.
    pub fn level0_depth(&self) -> usize {
        self.level0.iter().map(Level0Keyspace::depth).max().unwrap_or(0)
    }

    /// The most segments of level 0 that a lookup may have to ask.
    pub fn level0_runs(&self) -> usize {
        self.level0.iter().map(Level0Keyspace::runs).max().unwrap_or(0)
    }

    /// All segments: newest level first, quarantined ones last.
    pub fn segments(&self) -> impl Iterator<Item = &LiveSegment> {
        self.levels.iter().flat_map(|level| level.segments().iter()).chain(&self.quarantined)
    }

    /// Segments that cannot be read in full, newest entry first. They left their levels so that the others
    /// can be compacted without them. So levels no longer order them by age: only sequence numbers tell which
    /// of their entries are current. Their readable blocks answer reads. A damaged block returns its error
    /// for every key that it could hold and that has no newer entry elsewhere.
    pub fn quarantined(&self) -> &[LiveSegment] {
        &self.quarantined
    }

    /// The quarantined segments whose range includes the key, newest entry first.
    pub fn suspects<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a LiveSegment> {
        self.quarantined.iter().filter(move |s| s.overlaps(key, key))
    }

    /// The segments with range tombstones.
    #[inline]
    pub fn ranged(&self) -> &RangedRuns {
        &self.ranged
    }

    /// The segments that range tombstones in other segments delete entirely, as far as those tombstones were
    /// in memory at the first call.
    pub fn covered(&self) -> &[LiveSegment] {
        self.covered.get_or_init(|| self.ranged.covered(self.segments()))
    }

    /// Whether a segment of a level lies between two keys, the second of which is exclusive.
    pub fn has_segment_within(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        let within =
            |s: &LiveSegment| s.meta.smallest.as_slice() >= from && to.is_none_or(|to| &*s.meta.largest < to);
        let [level0, sorted @ ..] = &self.levels;
        let first = |level: &Level| {
            let at = level.segments().partition_point(|s| s.meta.smallest.as_slice() < from);
            level.segments().get(at).is_some_and(within)
        };
        level0.segments().iter().any(within) || sorted.iter().any(first)
    }

    /// All sorted runs.
    #[inline]
    pub fn run_groups(&self) -> &Arc<RunGroups> {
        &self.groups
    }

    /// The segment of a run whose range includes the key, given the key's fence within the run's group.
    pub fn segment_of(&self, run: &Run, fence: u64, key: &[u8]) -> Option<&LiveSegment> {
        self.levels.get(run.level())?.segments().get(run.position(fence, key)?)
    }

    /// The deepest level with a segment; 0 if there is none.
    pub fn deepest(&self) -> usize {
        self.groups.last().and_then(|group| group.runs().last()).map_or(0, Run::level)
    }

    /// The newest sequence number in any segment.
    pub fn max_seq(&self) -> u64 {
        self.segments().map(|s| s.meta.max_seq).max().unwrap_or(0)
    }
}

/// Each level-0 segment is a run, and so is each level below it that has segments.
fn groups_of(levels: &[Level; LEVELS]) -> Arc<RunGroups> {
    let mut groups = Vec::new();
    let [level0, sorted @ ..] = levels;
    for (number, segment) in level0::in_lookup_order(level0.segments()) {
        RunGroup::append_one(&mut groups, number, segment);
    }
    for (number, level) in (1..).zip(sorted) {
        let segments = level.segments();
        if let (Some(first), Some(last)) = (segments.first(), segments.last()) {
            let ends = (first.meta.smallest.as_slice(), &*last.meta.largest);
            let pieces = segments.pieces().iter().filter_map(Piece::fenced);
            RunGroup::append_level(&mut groups, number, ends, pieces);
        }
    }
    Arc::new(RunGroups::new(groups))
}

//! What a reader sees: the memtables and segments of one moment.

use super::filters::{FilterUse, Filters};
use super::prefixes::Prefixes;
use crate::direction::Direction;
use crate::error::Result;
use crate::key::{AsOf, HEADS_START, Seq};
use crate::live::{LiveSegment, LiveSet};
use crate::memtable::{Memtable, MemtableCursor};
use crate::merge::{MergeCursor, MergeSource, RangeMask, RunCursor, RunWalk, Skipped, begins, reaches};
use crate::segment::Access;
use std::ops::Bound;
use std::sync::Arc;

/// What a transaction has written before one moment, in a memtable of its own.
#[derive(Clone)]
pub(crate) struct OwnTable {
    pub table: Arc<Memtable>,
    /// Its newest sequence number at that moment, above all those of the store.
    pub seq: Seq,
}

/// The memtables and segments of one moment. A view never changes: rotations, flushes, compactions and
/// rebuilt sidecars replace it.
///
/// A reader loads the view first, then the visible sequence number. Every write up to that number is then in
/// this view or a newer one, so a reader misses nothing that a compaction dropped. A write that only a newer
/// view has is newer than every write in this one: a rotation and an ingest both end the active memtable. A
/// view keeps its memtables in memory and its segments on disk.
#[derive(Clone)]
pub(crate) struct View {
    /// The memtable that accepts writes.
    pub active: Arc<Memtable>,
    /// Full memtables that wait for a flush, newest first.
    pub immutable: Vec<Arc<Memtable>>,
    /// What a transaction has written so far: newer than all else, and only in its own views.
    pub own: Option<OwnTable>,
    /// The segments.
    pub live: Arc<LiveSet>,
    /// The memtables may hold entries older than the segments'. Happens in a read-only store whose logs a
    /// repair has kept.
    pub logs_reach_back: bool,
    /// A full memtable or a segment has range tombstones.
    pub had_ranges: bool,
    /// The filters of all of these.
    pub filters: Arc<Filters>,
    /// The prefixes that these filters may have.
    pub prefixes: Option<Arc<Prefixes>>,
}

impl View {
    /// A view without full memtables.
    pub fn new(
        active: Arc<Memtable>,
        live: Arc<LiveSet>,
        logs_reach_back: bool,
        used: FilterUse,
        prefixes: Option<Arc<Prefixes>>,
    ) -> Self {
        let filters = Arc::new(Filters::new(used, &active, std::iter::empty(), &live));
        let had_ranges = !live.ranged().is_empty();
        View {
            active,
            immutable: Vec::new(),
            own: None,
            live,
            logs_reach_back,
            had_ranges,
            filters,
            prefixes,
        }
    }

    /// The view after a change.
    pub fn changed(&self, change: impl FnOnce(&mut View)) -> Self {
        let mut view = self.clone();
        change(&mut view);
        view.had_ranges =
            !view.live.ranged().is_empty() || view.immutable.iter().any(|table| table.has_ranges());
        let full = view.immutable.iter();
        view.filters = Arc::new(Filters::new(view.filters.used, &view.active, full, &view.live));
        view
    }

    /// The memtables, newest first.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.immutable)
    }

    /// The memtables that together have all writes since the moment of an earlier view; `None` if some of
    /// them are only in segments now.
    pub fn memtables_since<'a>(&'a self, before: &'a View) -> Option<Vec<&'a Arc<Memtable>>> {
        let mut tables: Vec<_> = self.memtables().collect();
        let oldest = tables.last()?;
        if oldest.follows(&before.active) {
            tables.push(&before.active); // It was flushed.
        } else if !tables.iter().any(|table| Arc::ptr_eq(table, &before.active)) {
            return None;
        }
        Some(tables)
    }

    /// The memtables, newest first, with the number up to which each is read as of `seq`.
    fn memtables_at(&self, seq: Seq) -> impl Iterator<Item = (&Arc<Memtable>, Seq)> {
        let own = self.own.iter().map(|own| (&own.table, own.seq));
        own.chain(self.memtables().map(move |table| (table, seq)))
    }

    /// Merges everything as of a moment between two bounds, in one direction. Opens nothing yet. Skips
    /// sources without keys in the bounds, and those whose filter denies the prefix that all of these keys
    /// share.
    pub fn merge(
        &self,
        as_of: AsOf,
        direction: Direction,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        access: Access,
    ) -> MergeCursor {
        let (lower, upper) = match direction {
            Direction::Forward => (start, end),
            Direction::Reverse => (end, start),
        };
        let denials = self.prefixes.as_deref().and_then(|prefixes| prefixes.ask(lower, upper));
        let denials = denials.as_ref();
        let mut sources = Vec::new();
        for (table, seq) in self.memtables_at(as_of.seq).filter(|(table, _)| !table.is_empty()) {
            if denials.is_some_and(|denials| denials.deny_memtable(table.filter())) {
                continue;
            }
            let cursor = MemtableCursor::new(Arc::clone(table), seq, direction, start);
            sources.push(MergeSource::Memtable(cursor));
        }
        let mut push = |walk: RunWalk| {
            sources.push(MergeSource::Run(RunCursor::new(walk, direction, start, access)));
        };
        let within = |segment: &&LiveSegment| reaches(segment, lower) && begins(segment, upper);
        let [level0, runs @ ..] = self.live.levels();
        let allowed =
            |segment: &&LiveSegment| !denials.is_some_and(|denials| denials.deny(segment.sidecar.as_deref()));
        let level0 = level0.segments().iter().filter(within).filter(allowed);
        // Quarantined segments are never skipped: damage must be reported.
        for segment in level0.chain(self.live.quarantined().iter().filter(within)) {
            push(RunWalk::of(vec![segment.clone()], direction));
        }
        for (number, run) in runs.iter().enumerate() {
            // Sorted by key, so those within the bounds are neighbors.
            let first = run.segments().partition_point(|segment| !reaches(segment, lower));
            let behind = run.segments().partition_point(|segment| begins(segment, upper));
            let left = match denials {
                Some(denials) => denials.trim(run.segments(), first..behind),
                None => first..behind,
            };
            if !left.is_empty() {
                push(RunWalk::of_level(Arc::clone(&self.live), number + 1, left, direction));
            }
        }
        MergeCursor::new(sources, direction, end, self.mask(as_of.seq)).at(as_of.time)
    }

    /// Whether a stored key has a head.
    pub fn may_have_heads(&self) -> bool {
        let has_heads = |segment: &LiveSegment| *segment.meta.largest >= *HEADS_START;
        let [level0, sorted @ ..] = self.live.levels();
        let last_of_each = sorted.iter().filter_map(|level| level.segments().last());
        let segments = level0.segments().iter().chain(last_of_each).chain(self.live.quarantined());
        { segments }.any(has_heads) || self.memtables().any(|table| table.has_heads())
    }

    /// Whether there may be range tombstones.
    #[inline]
    pub fn has_ranges(&self) -> bool {
        self.had_ranges
            || self.active.has_ranges()
            || self.own.as_ref().is_some_and(|own| own.table.has_ranges())
    }

    /// What hides entries from a walk as of `seq`; `None` if nothing does.
    pub fn mask(&self, seq: Seq) -> Option<RangeMask> {
        if self.has_ranges() { Some(self.range_mask(seq, None)) } else { None }
    }

    /// The same for a walk that skips damage and adds it to `skipped`.
    pub fn mask_with_doubts(&self, seq: Seq, direction: Direction, skipped: &Skipped) -> RangeMask {
        self.range_mask(seq, Some((skipped, direction)))
    }

    fn range_mask(&self, seq: Seq, skipped: Option<(&Skipped, Direction)>) -> RangeMask {
        let lists = self.memtables_at(seq).map(|(table, seq)| (table.ranges(), seq));
        let lists = lists.filter(|(list, _)| !list.is_empty()).collect();
        RangeMask::new(lists, Arc::clone(&self.live), skipped)
    }

    /// Whether a range tombstone up to `now` deletes an entry of the key with sequence number `seq`.
    ///
    /// # Errors
    /// The errors of reading range tombstones.
    pub fn deletes(&self, now: Seq, key: &[u8], seq: Seq) -> Result<bool> {
        let mut memtables = self.memtables().filter(|table| table.has_ranges());
        if memtables.any(|table| table.ranges().seq_at(key, now) > seq) {
            return Ok(true);
        }
        self.live.ranged().delete(key, seq)
    }
}

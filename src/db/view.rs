//! What a reader sees: the memtables and segments of one moment.

use super::filters::{FilterUse, Filters};
use crate::key::Seq;
use crate::manifest::{LiveSegment, LiveSet};
use crate::memtable::{Memtable, MemtableCursor};
use crate::merge::{MergeCursor, MergeSource, RunCursor, RunSegment, RunSegments};
use crate::segment::{Access, Direction};
use std::ops::{Bound, Range};
use std::sync::Arc;

/// The memtables and segments of one moment. A view never changes: rotations, flushes, compactions and rebuilt sidecars replace it.
///
/// A reader loads the view first and the visible sequence number second. Every write up to that number is then in this view or in a newer
/// one, so a reader misses nothing that a compaction dropped. A view keeps its memtables in memory and its segments on disk.
#[derive(Clone)]
pub(crate) struct View {
    /// The memtable that accepts writes.
    pub active: Arc<Memtable>,
    /// Full memtables that wait for a flush, newest first.
    pub immutable: Vec<Arc<Memtable>>,
    /// The segments.
    pub live: Arc<LiveSet>,
    /// The memtables may hold entries older than those in the segments. Happens in a read-only store whose logs a repair has kept.
    pub logs_reach_back: bool,
    /// A full memtable or a segment has range tombstones.
    pub had_ranges: bool,
    /// The filters of all of these.
    pub filters: Arc<Filters>,
}

impl View {
    /// A view without full memtables.
    pub fn new(active: Arc<Memtable>, live: Arc<LiveSet>, logs_reach_back: bool, used: FilterUse) -> Self {
        let filters = Arc::new(Filters::new(used, vec![Arc::clone(active.filter())], &live));
        let had_ranges = !live.ranged().is_empty();
        View { active, immutable: Vec::new(), live, logs_reach_back, had_ranges, filters }
    }

    /// The view after a change.
    pub fn changed(&self, change: impl FnOnce(&mut View)) -> Self {
        let mut view = self.clone();
        change(&mut view);
        view.had_ranges =
            !view.live.ranged().is_empty() || view.immutable.iter().any(|table| table.has_ranges());
        let memtables = view.memtables().map(|table| Arc::clone(table.filter())).collect();
        view.filters = Arc::new(Filters::new(view.filters.used, memtables, &view.live));
        view
    }

    /// The memtables, newest first.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.immutable)
    }

    /// Merges everything as of `seq` between two bounds, in one direction. Opens nothing yet, and only what has keys within the bounds.
    pub fn merge(
        &self,
        seq: Seq,
        direction: Direction,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        access: Access,
    ) -> MergeCursor {
        let mut sources = Vec::new();
        for table in self.memtables().filter(|table| !table.is_empty()) {
            let cursor = match direction {
                Direction::Forward => MemtableCursor::forward(Arc::clone(table), seq, start),
                Direction::Reverse => MemtableCursor::reverse(Arc::clone(table), seq, start),
            };
            sources.push(MergeSource::Memtable(cursor));
        }
        let mut push = |segments: RunSegments| {
            sources.push(MergeSource::Run(RunCursor::new(segments, direction, start, access)));
        };
        let (lower, upper) = match direction {
            Direction::Forward => (start, end),
            Direction::Reverse => (end, start),
        };
        let within = |segment: &&LiveSegment| reaches(segment, lower) && begins(segment, upper);
        let [level0, runs @ ..] = self.live.levels();
        for segment in level0.segments().iter().chain(self.live.quarantined()).filter(within) {
            push(Box::new(std::iter::once(run_segment(segment, direction, start))));
        }
        for (number, run) in runs.iter().enumerate() {
            // In order of their keys, so those within the bounds are neighbors.
            let first = run.segments().partition_point(|segment| !reaches(segment, lower));
            let behind = run.segments().partition_point(|segment| begins(segment, upper));
            if first < behind {
                let (live, start) = (Arc::clone(&self.live), start.map(<[u8]>::to_vec));
                push(Box::new(RunWalk { live, level: number + 1, left: first..behind, direction, start }));
            }
        }
        MergeCursor::new(sources, direction, end, self.mask(seq))
    }
}

/// The segments of a level that a walk has not reached yet.
struct RunWalk {
    live: Arc<LiveSet>,
    level: usize,
    left: Range<usize>,
    direction: Direction,
    start: Bound<Vec<u8>>,
}

impl Iterator for RunWalk {
    type Item = RunSegment;

    fn next(&mut self) -> Option<RunSegment> {
        let at = match self.direction {
            Direction::Forward => self.left.next()?,
            Direction::Reverse => self.left.next_back()?,
        };
        let segment = self.live.levels().get(self.level)?.segments().get(at)?;
        Some(run_segment(segment, self.direction, self.start.as_ref().map(Vec::as_slice)))
    }
}

fn run_segment(segment: &LiveSegment, direction: Direction, start: Bound<&[u8]>) -> RunSegment {
    let start = match start {
        Bound::Included(start) | Bound::Excluded(start) => Some(start),
        Bound::Unbounded => None,
    };
    let first = match direction {
        Direction::Forward => {
            start.map_or(&*segment.meta.smallest, |start| start.max(&segment.meta.smallest))
        }
        Direction::Reverse => start.map_or(&*segment.meta.largest, |start| start.min(&segment.meta.largest)),
    };
    RunSegment { file: Arc::clone(&segment.file), first: first.to_vec() }
}

/// Whether the segment's largest key is within the lower bound.
fn reaches(segment: &LiveSegment, lower: Bound<&[u8]>) -> bool {
    match lower {
        Bound::Included(lower) => segment.meta.largest.as_slice() >= lower,
        Bound::Excluded(lower) => segment.meta.largest.as_slice() > lower,
        Bound::Unbounded => true,
    }
}

/// Whether the segment's smallest key is within the upper bound.
fn begins(segment: &LiveSegment, upper: Bound<&[u8]>) -> bool {
    match upper {
        Bound::Included(upper) => segment.meta.smallest.as_slice() <= upper,
        Bound::Excluded(upper) => segment.meta.smallest.as_slice() < upper,
        Bound::Unbounded => true,
    }
}

//! What a reader sees: the memtables and segments of one moment.

use super::filters::{FilterUse, Filters};
use crate::error::Result;
use crate::key::Seq;
use crate::manifest::{LiveSegment, LiveSet};
use crate::memtable::{Memtable, MemtableCursor};
use crate::merge::{MergeCursor, MergeSource, RunCursor};
use crate::segment::{Access, Direction};
use std::ops::Bound;
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
    /// The filters of all of these.
    pub filters: Arc<Filters>,
}

impl View {
    /// A view without full memtables.
    pub fn new(active: Arc<Memtable>, live: Arc<LiveSet>, logs_reach_back: bool, used: FilterUse) -> Self {
        let filters = Arc::new(Filters::new(used, vec![Arc::clone(active.filter())], &live));
        View { active, immutable: Vec::new(), live, logs_reach_back, filters }
    }

    /// The view after a change.
    pub fn changed(&self, change: impl FnOnce(&mut View)) -> Self {
        let mut view = self.clone();
        change(&mut view);
        let tables = std::iter::once(&view.active).chain(&view.immutable);
        let memtables = tables.map(|table| Arc::clone(table.filter())).collect();
        view.filters = Arc::new(Filters::new(view.filters.used, memtables, &view.live));
        view
    }

    /// Merges everything as of `seq`, in one direction. The caller stops at `end`.
    pub fn merge(
        &self,
        seq: Seq,
        direction: Direction,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> Result<MergeCursor> {
        let mut sources = Vec::new();
        for table in std::iter::once(&self.active).chain(&self.immutable) {
            let cursor = match direction {
                Direction::Forward => MemtableCursor::forward(Arc::clone(table), seq, start),
                Direction::Reverse => MemtableCursor::reverse(Arc::clone(table), seq, start),
            };
            sources.push(MergeSource::Memtable(cursor));
        }
        let [level0, runs @ ..] = self.live.levels();
        for candidate in level0.segments() {
            sources.push(MergeSource::Segment(candidate.file.cursor(direction, start, Access::Scan)?));
        }
        for run in runs.iter().filter(|run| !run.segments().is_empty()) {
            let walk = run.walk(direction, start);
            sources.push(MergeSource::Run(RunCursor::new(walk, direction, start, Access::Scan)?));
        }
        for suspect in self.live.quarantined().iter().filter(|s| is_within(s, direction, start, end)) {
            sources.push(MergeSource::Segment(suspect.file.cursor(direction, start, Access::Scan)?));
        }
        Ok(MergeCursor::new(sources, direction))
    }
}

/// Whether a segment may have keys between the bounds of a merge.
fn is_within(segment: &LiveSegment, direction: Direction, start: Bound<&[u8]>, end: Bound<&[u8]>) -> bool {
    let (lower, upper) = match direction {
        Direction::Forward => (start, end),
        Direction::Reverse => (end, start),
    };
    let begins = match upper {
        Bound::Included(upper) => segment.meta.smallest.as_slice() <= upper,
        Bound::Excluded(upper) => segment.meta.smallest.as_slice() < upper,
        Bound::Unbounded => true,
    };
    let ends = match lower {
        Bound::Included(lower) => segment.meta.largest.as_slice() >= lower,
        Bound::Excluded(lower) => segment.meta.largest.as_slice() > lower,
        Bound::Unbounded => true,
    };
    begins && ends
}

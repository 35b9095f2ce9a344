//! The segments of a run in the order of a walk.

use crate::direction::Direction;
use crate::key::Seq;
use crate::live::{LiveSegment, LiveSet};
use crate::segment::{SegmentFile, SegmentSummary};
use std::ops::{Bound, Range};
use std::sync::Arc;

/// Walks segments with disjoint ranges, in key order.
pub struct RunWalk {
    run: Run,
    /// The segments of the run that belong to the walk.
    within: Range<usize>,
    left: Range<usize>,
    direction: Direction,
}

enum Run {
    /// A level below 0.
    Level(Arc<LiveSet>, usize),
    Listed(Vec<LiveSegment>),
}

impl Run {
    fn get(&self, at: usize) -> Option<&LiveSegment> {
        match self {
            Run::Level(live, level) => live.levels().get(*level)?.segments().get(at),
            Run::Listed(segments) => segments.get(at),
        }
    }

    /// The number of segments before the first one for which `is_before` is false.
    fn partition_point(&self, is_before: impl FnMut(&LiveSegment) -> bool) -> usize {
        match self {
            Run::Level(live, level) => {
                live.levels().get(*level).map_or(0, |level| level.segments().partition_point(is_before))
            }
            Run::Listed(segments) => segments.partition_point(is_before),
        }
    }
}

impl RunWalk {
    /// Some neighbours of a level below 0.
    pub fn of_level(live: Arc<LiveSet>, level: usize, within: Range<usize>, direction: Direction) -> Self {
        RunWalk { run: Run::Level(live, level), left: within.clone(), within, direction }
    }

    /// These segments, in key order.
    pub fn of(segments: Vec<LiveSegment>, direction: Direction) -> Self {
        let within = 0..segments.len();
        RunWalk { run: Run::Listed(segments), left: within.clone(), within, direction }
    }

    /// Starts over with the segments that may have keys within `start`, in this direction.
    pub(super) fn seek(&mut self, direction: Direction, start: Bound<&[u8]>) {
        let (run, within) = (&self.run, self.within.clone());
        self.left = match direction {
            Direction::Forward => {
                let first = run.partition_point(|segment| !reaches(segment, start));
                first.clamp(within.start, within.end)..within.end
            }
            Direction::Reverse => {
                let behind = run.partition_point(|segment| begins(segment, start));
                within.start..behind.clamp(within.start, within.end)
            }
        };
        self.direction = direction;
    }

    /// The next segment, and its first key in the direction of the walk.
    pub(super) fn next(&mut self) -> Option<(&Arc<SegmentFile>, &[u8])> {
        let at = match self.direction {
            Direction::Forward => self.left.next()?,
            Direction::Reverse => self.left.next_back()?,
        };
        let segment = self.run.get(at)?;
        let first = match self.direction {
            Direction::Forward => &*segment.meta.smallest,
            Direction::Reverse => &*segment.meta.largest,
        };
        Some((&segment.file, first))
    }

    /// The segment that [`next`](Self::next) returned last.
    pub(super) fn current(&self) -> Option<&SegmentSummary> {
        let at = match self.direction {
            Direction::Forward => self.left.start.checked_sub(1)?,
            Direction::Reverse => self.left.end,
        };
        self.run.get(at).map(|segment| &segment.meta.summary)
    }

    /// In this direction from `key` on, before the bound `edge`: the first key of the first segment with an
    /// entry not older than `seq`. `None` if there is none.
    pub(super) fn first_newer(
        &self,
        direction: Direction,
        key: &[u8],
        edge: &Bound<Vec<u8>>,
        seq: Seq,
    ) -> Option<&[u8]> {
        let run = &self.run;
        let (key, before_edge) = (Bound::Included(key), before(edge));
        let is_newer = |segment: &&LiveSegment| segment.meta.max_seq >= seq;
        match direction {
            Direction::Forward => {
                let first = run.partition_point(|segment| !reaches(segment, key));
                let ahead = (first..).map_while(|at| run.get(at));
                let mut ahead = ahead.take_while(|s| begins(s, before_edge));
                ahead.find(is_newer).map(|segment| &*segment.meta.smallest)
            }
            Direction::Reverse => {
                let behind = run.partition_point(|segment| begins(segment, key));
                let ahead = (0..behind).rev().map_while(|at| run.get(at));
                let mut ahead = ahead.take_while(|s| reaches(s, before_edge));
                ahead.find(is_newer).map(|segment| &*segment.meta.largest)
            }
        }
    }
}

/// The bound of what comes before an edge.
fn before(edge: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match edge {
        Bound::Included(key) => Bound::Excluded(key),
        Bound::Excluded(key) => Bound::Included(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// Whether the segment's largest key is within the lower bound.
pub fn reaches(segment: &LiveSegment, lower: Bound<&[u8]>) -> bool {
    match lower {
        Bound::Included(lower) => &*segment.meta.largest >= lower,
        Bound::Excluded(lower) => &*segment.meta.largest > lower,
        Bound::Unbounded => true,
    }
}

/// Whether the segment's smallest key is within the upper bound.
pub fn begins(segment: &LiveSegment, upper: Bound<&[u8]>) -> bool {
    match upper {
        Bound::Included(upper) => segment.meta.smallest.as_slice() <= upper,
        Bound::Excluded(upper) => segment.meta.smallest.as_slice() < upper,
        Bound::Unbounded => true,
    }
}

//! The segments of one level.

use super::live_segment::LiveSegment;
use crate::segment::{Direction, SegmentFile};
use std::ops::Bound;
use std::sync::Arc;

/// The segments of one level: newest first in level 0, in key order in the others.
#[derive(Default, Clone)]
pub struct Level {
    segments: Vec<LiveSegment>,
}

impl Level {
    /// A level of segments that are in the level's order.
    pub(super) fn new(segments: Vec<LiveSegment>) -> Self {
        Level { segments }
    }

    /// The segments.
    pub fn segments(&self) -> &[LiveSegment] {
        &self.segments
    }

    /// Sorted runs only: the segments that a walk from `start` visits, in that order.
    pub fn walk(&self, direction: Direction, start: Bound<&[u8]>) -> Vec<Arc<SegmentFile>> {
        let file = |s: &LiveSegment| Arc::clone(&s.file);
        let segments = &self.segments;
        match direction {
            Direction::Forward => {
                let from = match start {
                    Bound::Included(key) => segments.partition_point(|s| s.cmp_largest(key).is_lt()),
                    Bound::Excluded(key) => segments.partition_point(|s| s.cmp_largest(key).is_le()),
                    Bound::Unbounded => 0,
                };
                segments.iter().skip(from).map(file).collect()
            }
            Direction::Reverse => {
                let end = match start {
                    Bound::Included(key) => segments.partition_point(|s| s.cmp_smallest(key).is_le()),
                    Bound::Excluded(key) => segments.partition_point(|s| s.cmp_smallest(key).is_lt()),
                    Bound::Unbounded => segments.len(),
                };
                segments.iter().take(end).rev().map(file).collect()
            }
        }
    }

    /// Total length of the segment files, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.segments.iter().map(|s| s.meta.file_bytes).sum()
    }
}

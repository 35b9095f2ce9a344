//! The segments of one level.

use super::live_segment::LiveSegment;

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

    /// Total length of the segment files, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.segments.iter().map(|s| s.meta.file_bytes).sum()
    }
}

//! Walking the segments of a sorted run, which are opened one after another.

use crate::error::Result;
use crate::segment::{Access, Direction, SegmentCursor, SegmentFile};
use std::ops::Bound;
use std::sync::Arc;

/// A segment of a run.
pub struct RunSegment {
    /// The segment.
    pub file: Arc<SegmentFile>,
    /// A key that precedes or equals, in the direction of the walk, every key that the walk meets in the segment.
    pub first: Vec<u8>,
}

/// The segments of a run in the order of a walk.
pub type RunSegments = Box<dyn Iterator<Item = RunSegment> + Send + Sync>;

/// Walks the segments of a sorted run. Opens each segment only when its [`first`](RunSegment::first) key is the next of the merge.
pub struct RunCursor {
    segments: RunSegments,
    pub(super) at: RunPosition,
    direction: Direction,
    /// Where the walk begins in the first segment.
    start: Bound<Vec<u8>>,
    access: Access,
    /// Bytes of blocks in the segments behind.
    walked: u64,
}

/// Where in a run its cursor is.
#[expect(clippy::large_enum_variant, reason = "one for each run, almost always the large one")]
pub(super) enum RunPosition {
    /// Before the first segment or after the last.
    Outside,
    Before(RunSegment),
    Within(SegmentCursor),
}

impl RunCursor {
    /// Walks `segments`, given in the order of the walk, from `start`.
    pub fn new(segments: RunSegments, direction: Direction, start: Bound<&[u8]>, access: Access) -> Self {
        let start = start.map(<[u8]>::to_vec);
        RunCursor { segments, at: RunPosition::Outside, direction, start, access, walked: 0 }
    }

    /// Moves to the next entry or segment.
    pub(super) fn advance(&mut self) -> Result<bool> {
        if let RunPosition::Before(segment) = &self.at {
            let start = self.start.as_ref().map(Vec::as_slice);
            let mut cursor = segment.file.cursor(self.direction, start, self.access)?;
            cursor.add_walked(self.walked);
            self.start = Bound::Unbounded;
            self.at = RunPosition::Within(cursor);
        }
        if let RunPosition::Within(cursor) = &mut self.at {
            if cursor.advance()? {
                return Ok(true);
            }
            self.walked = cursor.walked();
        }
        let next = self.segments.next();
        let found = next.is_some();
        self.at = next.map_or(RunPosition::Outside, RunPosition::Before);
        Ok(found)
    }
}

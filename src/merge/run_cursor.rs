//! Walks the segments of a sorted run, opened one after another.

use super::damage::Damage;
use super::run_walk::RunWalk;
use crate::bounds::copy_bound;
use crate::direction::Direction;
use crate::error::{Error, Result};
use crate::key::Seq;
use crate::segment::{Access, SegmentCursor, SegmentFile};
use std::ops::Bound;
use std::sync::Arc;

/// Walks the segments of a sorted run. Opens each segment only when a key that precedes all its keys of the
/// walk is the next of the merge.
pub struct RunCursor {
    segments: RunWalk,
    pub(super) at: RunPosition,
    /// Before a segment: precedes or equals, in the walk's direction, every key that the walk meets in it.
    pub(super) first: Vec<u8>,
    direction: Direction,
    /// Where the walk begins in its first segment.
    start: Bound<Vec<u8>>,
    /// No segment of this walk is open yet.
    is_first: bool,
    access: Access,
    keys_only: bool,
    defers_values: bool,
    /// Bytes of blocks in the segments already passed.
    walked: u64,
    /// Bytes read from the files of these segments.
    read: u64,
    /// From the walk before a seek, for its block and its buffers.
    kept: Option<SegmentCursor>,
}

/// The cursor's position in a run.
#[expect(clippy::large_enum_variant, reason = "one for each run, almost always the large one")]
pub(super) enum RunPosition {
    /// Before the first segment or after the last.
    Outside,
    Before(Arc<SegmentFile>),
    Within(SegmentCursor),
}

impl RunCursor {
    /// Walks `segments`, which are already at the start of the walk, from `start`.
    pub fn new(segments: RunWalk, direction: Direction, start: Bound<&[u8]>, access: Access) -> Self {
        RunCursor {
            segments,
            at: RunPosition::Outside,
            first: Vec::new(),
            direction,
            start: start.map(<[u8]>::to_vec),
            is_first: true,
            access,
            keys_only: access == Access::Keys,
            defers_values: false,
            walked: 0,
            read: 0,
            kept: None,
        }
    }

    /// Starts another walk. Opens and reads nothing yet.
    pub(super) fn seek(&mut self, direction: Direction, start: Bound<&[u8]>) {
        if let RunPosition::Within(cursor) = &mut self.at
            && direction == self.direction
            && cursor.restart_in_block(start)
        {
            self.is_first = false;
            return;
        }
        if let RunPosition::Within(cursor) = std::mem::replace(&mut self.at, RunPosition::Outside) {
            self.kept = Some(cursor);
        }
        self.segments.seek(direction, start);
        copy_bound(start, &mut self.start);
        (self.direction, self.is_first, self.walked) = (direction, true, 0);
    }

    /// Sets whether values are loaded before they are used. Before the first entry of a walk.
    pub(super) fn defer_values(&mut self, defers: bool) {
        self.defers_values = defers;
        if let RunPosition::Within(cursor) = &mut self.at {
            cursor.defer_values(defers); // After a seek within its block.
        }
    }

    /// Sets whether the walk wants keys only. Values mean nothing then.
    pub(super) fn want_keys(&mut self, keys_only: bool) -> Result<()> {
        self.keys_only = keys_only;
        match &mut self.at {
            RunPosition::Within(cursor) => cursor.want_keys(keys_only),
            _ => Ok(()),
        }
    }

    /// Where a walk at `key` can continue if all entries before `edge` that are older than `seq` are deleted:
    /// beyond all segments without newer ones. `None` if that is no progress.
    pub(super) fn newer_from(
        &self,
        direction: Direction,
        key: &[u8],
        edge: &Bound<Vec<u8>>,
        seq: Seq,
    ) -> Option<Bound<Vec<u8>>> {
        let Some(newer) = self.segments.first_newer(direction, key, edge, seq) else {
            return Some(edge.clone());
        };
        let is_ahead = match direction {
            Direction::Forward => newer > key,
            Direction::Reverse => newer < key,
        };
        is_ahead.then(|| Bound::Included(newer.to_vec()))
    }

    /// After an error, makes the next [`advance`](Self::advance) continue past what cannot be read. Returns
    /// that, or the error if it is not about a segment.
    pub(super) fn pass_damage(&mut self, error: Error) -> Result<Damage> {
        let Some(segment) = self.segments.current() else { return Err(error) };
        match &mut self.at {
            RunPosition::Within(cursor) => Ok(Damage::of_blocks(segment, cursor.pass_damage(error)?)),
            RunPosition::Before(_) => {
                self.at = RunPosition::Outside;
                Ok(Damage::of_segment(segment, error))
            }
            RunPosition::Outside => Err(error),
        }
    }

    /// Bytes of blocks that it has read from files, in a walk without seeks.
    pub(super) fn read_bytes(&self) -> u64 {
        let now = if let RunPosition::Within(cursor) = &self.at { cursor.read_bytes() } else { 0 };
        self.read + now
    }

    /// Moves to the next entry or segment.
    pub(super) fn advance(&mut self) -> Result<bool> {
        if let RunPosition::Before(file) = &self.at {
            let start = if self.is_first { self.start.as_ref().map(Vec::as_slice) } else { Bound::Unbounded };
            let segment = file.open()?;
            let kept = self.kept.take();
            let mut cursor = kept.unwrap_or_else(|| segment.resting_cursor(self.direction, self.access));
            cursor.defer_values(self.defers_values || self.keys_only);
            let started = cursor.restart(segment, self.direction, start);
            let started = started.and_then(|()| cursor.want_keys(self.keys_only));
            cursor.add_walked(self.walked);
            self.is_first = false;
            self.at = RunPosition::Within(cursor);
            started?;
        }
        if let RunPosition::Within(cursor) = &mut self.at {
            if cursor.advance()? {
                return Ok(true);
            }
            (self.walked, self.read) = (cursor.walked(), self.read + cursor.read_bytes());
        }
        let Some((file, edge)) = self.segments.next() else {
            self.at = RunPosition::Outside;
            return Ok(false);
        };
        let first = match &self.start {
            Bound::Included(start) | Bound::Excluded(start) if self.is_first => match self.direction {
                Direction::Forward => edge.max(start),
                Direction::Reverse => edge.min(start),
            },
            _ => edge,
        };
        self.first.clear();
        self.first.extend_from_slice(first);
        self.at = RunPosition::Before(Arc::clone(file));
        Ok(true)
    }
}

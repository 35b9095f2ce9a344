//! What a walk could not read.

use crate::error::Error;
use crate::id::FileId;
use crate::key::Seq;
use crate::segment::{DamagedBlocks, SegmentSummary};
use std::ops::Bound;

/// A part of a segment that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamagedPart {
    /// Data blocks; `None` if an index partition is damaged, so that their number is unknown.
    Blocks(Option<u64>),
    /// All of it.
    Segment,
    /// Its range tombstones.
    Ranges,
}

/// What a walk could not read.
#[derive(Debug, Clone)]
pub struct Damage {
    /// The reason.
    pub error: Error,
    /// The offset where it begins in the file.
    pub offset: u64,
    /// The segment.
    pub segment: FileId,
    /// The part that cannot be read.
    pub part: DamagedPart,
    /// The lower bound of the keys that it may hold or delete.
    pub from: Bound<Vec<u8>>,
    /// The last of these keys.
    pub up_to: Vec<u8>,
    /// The largest sequence number that it may have.
    pub newest: Seq,
}

impl Damage {
    /// Blocks of a segment.
    pub fn of_blocks(segment: &SegmentSummary, blocks: DamagedBlocks) -> Self {
        let DamagedBlocks { error, offset, blocks, after, up_to } = blocks;
        let from = after.map_or_else(|| Bound::Included(segment.smallest.clone()), Bound::Excluded);
        let (segment, newest) = (segment.id, segment.max_seq);
        Damage { error, offset, segment, part: DamagedPart::Blocks(blocks), from, up_to, newest }
    }

    /// A whole segment.
    pub fn of_segment(segment: &SegmentSummary, error: Error) -> Self {
        let (from, up_to) = (Bound::Included(segment.smallest.clone()), segment.largest.to_vec());
        let (newest, segment) = (segment.max_seq, segment.id);
        Damage { error, offset: 0, segment, part: DamagedPart::Segment, from, up_to, newest }
    }

    /// The range tombstones of a segment, which may delete any key between its bounds.
    pub fn of_ranges(segment: &SegmentSummary, error: Error) -> Self {
        Damage { part: DamagedPart::Ranges, ..Damage::of_segment(segment, error) }
    }
}

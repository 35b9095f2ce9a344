//! Level 0 as each keyspace sees it.
//!
//! Segments of level 0 may overlap, so a lookup may have to ask all that have keys of its keyspace, and a
//! merge of them leaves the other keyspaces alone.

use super::segment::LiveSegment;
use super::segments::Segments;
use crate::key::{HEADS_START, Space};
use std::collections::BTreeSet;

/// The most segments of time buckets that a windowed keyspace has without being merged: two for each bucket.
pub const BUCKET_RUNS_MAX: usize = 24;

/// What level 0 has of a keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level0Keyspace {
    pub space: Space,
    /// Number of segments with keys of it, without those of time buckets.
    pub segments: usize,
    /// The length of their files, in bytes.
    pub file_bytes: u64,
    /// Number of segments of time buckets.
    pub in_buckets: usize,
}

impl Level0Keyspace {
    /// By how many segments it is too deep for merges: those of time buckets stay, up to a number.
    pub fn depth(&self) -> usize {
        self.segments + self.in_buckets.saturating_sub(BUCKET_RUNS_MAX)
    }

    /// How many segments a lookup may have to ask.
    pub fn runs(&self) -> usize {
        self.segments + self.in_buckets
    }
}

/// Whether a segment has keys of the keyspace, or of others on both sides.
pub fn reaches_into(segment: &LiveSegment, space: Space) -> bool {
    let (smallest, largest) = (segment.meta.smallest.as_slice(), &*segment.meta.largest);
    Space::of(smallest) == Some(space) || smallest < space.first_key() && largest >= space.first_key()
}

/// The keyspaces that the segments of level 0 begin in. No other keyspace has more segments there than one of
/// these.
pub(super) fn keyspaces(level0: &Segments) -> Box<[Level0Keyspace]> {
    let begins = |s: &LiveSegment| Space::of(&s.meta.smallest).unwrap_or(Space::DEFAULT);
    if level0.iter().all(|s| *s.meta.largest < *HEADS_START) {
        let file_bytes = level0.iter().map(|s| s.meta.file_bytes).fold(0, u64::saturating_add);
        let all = Level0Keyspace { space: Space::DEFAULT, segments: level0.len(), file_bytes, in_buckets: 0 };
        return if level0.len() > 0 { [all].into() } else { Box::default() };
    }
    let spaces: Vec<Space> = level0.iter().map(begins).collect::<BTreeSet<_>>().into_iter().collect();
    // By how much segments, bytes and segments of buckets change from one keyspace to the next.
    let mut changes = vec![(0usize, 0u64, 0usize); spaces.len() + 1];
    for segment in level0.iter() {
        let bucket = usize::from(segment.meta.is_in_bucket());
        let (one, bytes) = if bucket > 0 { (0, 0) } else { (1, segment.meta.file_bytes) };
        let first = spaces.partition_point(|space| *space < begins(segment));
        let behind =
            spaces.partition_point(|space| space.first_key() <= &*segment.meta.largest).max(first + 1);
        if let Some((segments, sum, buckets)) = changes.get_mut(first) {
            (*segments, *sum, *buckets) =
                (segments.wrapping_add(one), sum.wrapping_add(bytes), buckets.wrapping_add(bucket));
        }
        if let Some((segments, sum, buckets)) = changes.get_mut(behind) {
            (*segments, *sum, *buckets) =
                (segments.wrapping_sub(one), sum.wrapping_sub(bytes), buckets.wrapping_sub(bucket));
        }
    }
    let (mut segments, mut file_bytes, mut in_buckets) = (0usize, 0u64, 0usize);
    let keyspaces = spaces.into_iter().zip(changes).map(|(space, change)| {
        segments = segments.wrapping_add(change.0);
        file_bytes = file_bytes.wrapping_add(change.1);
        in_buckets = in_buckets.wrapping_add(change.2);
        Level0Keyspace { space, segments, file_bytes, in_buckets }
    });
    keyspaces.collect()
}

/// The segments of level 0 with their positions, newest first where they overlap, and otherwise by keyspace,
/// so that those of a keyspace are in one group.
pub(super) fn in_lookup_order(level0: &Segments) -> Vec<(usize, &LiveSegment)> {
    let mut all: Vec<(usize, &LiveSegment)> = level0.iter().enumerate().collect();
    let spans_keyspaces = |(_, segment): &(usize, &LiveSegment)| segment.meta.owner().is_none();
    for part in all.split_mut(spans_keyspaces) {
        part.sort_by_key(|(_, segment)| segment.meta.owner());
    }
    all
}

//! Level 0 as each keyspace sees it.
//!
//! Segments of level 0 may overlap, so a lookup may have to ask all that have keys of its keyspace, and a
//! merge of them leaves the other keyspaces alone.

use super::segment::LiveSegment;
use super::segments::Segments;
use crate::key::{HEADS_START, Space};
use std::collections::BTreeSet;

/// What level 0 has of a keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level0Keyspace {
    pub space: Space,
    /// Number of segments with keys of it.
    pub segments: usize,
    /// The length of their files, in bytes.
    pub file_bytes: u64,
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
        let all = Level0Keyspace { space: Space::DEFAULT, segments: level0.len(), file_bytes };
        return if level0.len() > 0 { [all].into() } else { Box::default() };
    }
    let spaces: Vec<Space> = level0.iter().map(begins).collect::<BTreeSet<_>>().into_iter().collect();
    // By how much segments and bytes change from one keyspace to the next.
    let mut changes = vec![(0usize, 0u64); spaces.len() + 1];
    for segment in level0.iter() {
        let bytes = segment.meta.file_bytes;
        let first = spaces.partition_point(|space| *space < begins(segment));
        let behind =
            spaces.partition_point(|space| space.first_key() <= &*segment.meta.largest).max(first + 1);
        if let Some((segments, sum)) = changes.get_mut(first) {
            (*segments, *sum) = (segments.wrapping_add(1), sum.wrapping_add(bytes));
        }
        if let Some((segments, sum)) = changes.get_mut(behind) {
            (*segments, *sum) = (segments.wrapping_sub(1), sum.wrapping_sub(bytes));
        }
    }
    let (mut segments, mut file_bytes) = (0usize, 0u64);
    let keyspaces = spaces.into_iter().zip(changes).map(|(space, change)| {
        (segments, file_bytes) = (segments.wrapping_add(change.0), file_bytes.wrapping_add(change.1));
        Level0Keyspace { space, segments, file_bytes }
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

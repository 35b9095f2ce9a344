//! Neighbouring segments of a level, which successive live sets share.

use super::fences::Fenced;
use super::segment::LiveSegment;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the next piece. Only for identity, so no thread waits for it.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Some neighbours in a level. Never changes: it is replaced.
#[derive(Clone)]
pub struct Piece {
    number: u64,
    segments: Arc<[LiveSegment]>,
    /// Their fences in the level, if the level is a sorted run.
    fences: Option<Fences>,
    pub(crate) file_bytes: u64,
    pub(crate) entries: u64,
    longest_streak: u64,
    ranges: u64,
}

/// The fences of a piece within a level whose keys share this many bytes.
#[derive(Clone)]
pub(crate) struct Fences {
    shared: usize,
    pub fenced: Arc<[Fenced]>,
}

impl Piece {
    pub(crate) fn new(segments: &[LiveSegment]) -> Self {
        let sum = |of: fn(&LiveSegment) -> u64| segments.iter().map(of).fold(0, u64::saturating_add);
        Piece {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            fences: None,
            file_bytes: sum(|s| s.meta.file_bytes),
            entries: sum(|s| s.meta.entries),
            longest_streak: segments.iter().map(|s| s.meta.longest_streak).max().unwrap_or(0),
            ranges: sum(|s| s.meta.ranges),
            segments: segments.into(),
        }
    }

    /// Identifies the piece: equal numbers mean the same segments.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its segments.
    pub fn segments(&self) -> &[LiveSegment] {
        &self.segments
    }

    /// The longest streak of tombstones in any of its segments.
    pub fn longest_streak(&self) -> u64 {
        self.longest_streak
    }

    /// The number of range tombstones in its segments.
    pub fn ranges(&self) -> u64 {
        self.ranges
    }

    /// The smallest key of its first segment and the largest of its last one.
    pub fn hull(&self) -> (&[u8], &[u8]) {
        let smallest = self.segments.first().map(|s| s.meta.smallest.as_slice());
        let largest = self.segments.last().map(|s| &*s.meta.largest);
        (smallest.unwrap_or_default(), largest.unwrap_or_default())
    }

    /// Computes the fences, unless it has those already.
    pub(crate) fn fence(&mut self, shared: usize) {
        if self.fences.as_ref().is_none_or(|fences| fences.shared != shared) {
            let fenced = self.segments.iter().map(|segment| Fenced::new(segment, shared)).collect();
            self.fences = Some(Fences { shared, fenced });
        }
    }

    /// The fences that [`fence`](Self::fence) has computed.
    pub(crate) fn fenced(&self) -> Option<&Arc<[Fenced]>> {
        self.fences.as_ref().map(|fences| &fences.fenced)
    }
}

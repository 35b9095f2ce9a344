//! What a running compaction owns, so that concurrent compactions never write overlapping segments (I10).

use crate::id::FileId;
use crate::live::LiveSegment;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The inputs of a compaction, and the range of keys that its outputs may have on their level.
///
/// An output ends where the segment is full, not where an input ends, so it may span a gap between two
/// inputs. So the reservation covers the hull of the inputs, not just their ranges.
///
/// Copies share everything, so copying under a lock is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reservation {
    inputs: Arc<BTreeSet<FileId>>,
    output_level: u8,
    smallest: Arc<[u8]>,
    largest: Bytes,
    /// Whether it takes a segment back from quarantine.
    takes_back: bool,
}

impl Reservation {
    /// The reservation of a compaction of `inputs` into `output_level`; `None` if there are no inputs.
    pub fn of<'a>(inputs: impl Iterator<Item = &'a LiveSegment> + Clone, output_level: u8) -> Option<Self> {
        let smallest = inputs.clone().map(|s| s.meta.smallest.as_slice()).min()?.into();
        let largest = inputs.clone().map(|s| &s.meta.largest).max()?.clone();
        let takes_back = inputs.clone().any(LiveSegment::is_quarantined);
        let inputs = Arc::new(inputs.map(|s| s.meta.id).collect());
        Some(Reservation { inputs, output_level, smallest, largest, takes_back })
    }

    /// Whether the two must not run at the same time: they share an input, their outputs could overlap on one
    /// level, or both take a segment back from quarantine (two could pass each other).
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let same_keys = self.reaches(&other.smallest, &other.largest);
        (self.output_level == other.output_level && same_keys)
            || (self.takes_back && other.takes_back)
            || !self.inputs.is_disjoint(&other.inputs)
    }

    /// Whether no running compaction is in the way.
    pub fn is_free(&self, running: &[Reservation]) -> bool {
        !running.iter().any(|other| other.conflicts_with(self))
    }

    /// Whether the outputs may have keys in the closed range.
    pub fn reaches(&self, smallest: &[u8], largest: &[u8]) -> bool {
        *self.smallest <= *largest && *smallest <= *self.largest
    }

    /// Whether the segment is one of the inputs.
    pub fn takes(&self, id: FileId) -> bool {
        self.inputs.contains(&id)
    }

    /// Whether it takes a segment back from quarantine.
    pub fn takes_back(&self) -> bool {
        self.takes_back
    }

    /// The number of inputs.
    pub fn segments(&self) -> usize {
        self.inputs.len()
    }

    /// Whether the outputs go to this level.
    pub fn writes(&self, level: u8) -> bool {
        self.output_level == level
    }
}

/// Whether a segment is an input of a running compaction.
pub(crate) fn is_taken(running: &[Reservation], segment: &LiveSegment) -> bool {
    running.iter().any(|other| other.takes(segment.meta.id))
}

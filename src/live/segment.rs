//! A segment of a live set.

use crate::key::Time;
use crate::manifest::{Place, SegmentMeta};
use crate::segment::SegmentFile;
use crate::sidecar::{Facts, LiveSidecar};
use std::sync::Arc;

/// The share of a segment's entries that may have expired before it is rewritten for the disk that they take.
const EXPIRED_SHARE: f64 = 1.0 / 3.0;

/// A segment in a live set, with its level and its sidecar.
#[derive(Clone)]
pub struct LiveSegment {
    /// Its manifest entry.
    pub meta: Arc<SegmentMeta>,
    /// Its files.
    pub file: Arc<SegmentFile>,
    /// Its filter; without one, every probe is "maybe".
    pub sidecar: Option<LiveSidecar>,
}

impl LiveSegment {
    /// From when on it is worth rewriting, because about so much of it has expired; `None` if never.
    pub fn rewrite_from(&self) -> Option<Time> {
        self.meta.expired_from(EXPIRED_SHARE)
    }

    /// From when on no put of it is visible; `None` if never. Segments with tombstones alone go with merges,
    /// except for those in time buckets, which no merge takes there.
    pub fn has_expired_from(&self) -> Option<Time> {
        let only_tombstones = self.meta.tombstones == self.meta.entries && self.meta.is_in_bucket();
        if only_tombstones { Some(Time::START) } else { self.meta.expires_at() }
    }

    /// How many bytes its range tombstones take in memory, which is more than on disk. Reads them, as a merge
    /// would; if that fails, they count as the whole segment.
    pub fn range_bytes(&self) -> u64 {
        match self.meta.ranges {
            0 => 0,
            _ => self.file.ask_ranges(|ranges| ranges.bytes()).unwrap_or(self.meta.file_bytes),
        }
    }

    /// Whether it has a sidecar whose checksums are not verified yet.
    pub fn waits_for_verification(&self) -> bool {
        self.sidecar.as_ref().is_some_and(|sidecar| !sidecar.is_verified())
    }

    /// What a verified sidecar says about its filter.
    pub fn verified_facts(&self) -> Option<&Facts> {
        self.sidecar.as_ref().and_then(|sidecar| sidecar.verified_facts())
    }

    /// The same segment and sidecar in another place.
    pub fn at(&self, place: Place) -> Self {
        let meta = SegmentMeta { place, ..(*self.meta).clone() };
        LiveSegment { meta: Arc::new(meta), ..self.clone() }
    }

    /// [`at`](Self::at) a level.
    pub fn at_level(&self, level: u8) -> Self {
        self.at(Place::Level(level))
    }

    /// Its level; `None` in quarantine.
    pub fn level(&self) -> Option<u8> {
        self.meta.place.level()
    }

    /// Whether the segment is in quarantine because it cannot be read in full.
    pub fn is_quarantined(&self) -> bool {
        self.level().is_none()
    }

    /// Whether the segment's key range overlaps the closed range.
    pub fn overlaps(&self, smallest: &[u8], largest: &[u8]) -> bool {
        self.meta.smallest.as_slice() <= largest && &*self.meta.largest >= smallest
    }
}

/// The smallest and the largest key of some segments; `None` if there are none.
pub fn hull<'a>(segments: impl IntoIterator<Item = &'a LiveSegment> + Clone) -> Option<(&'a [u8], &'a [u8])> {
    let smallest = segments.clone().into_iter().map(|s| s.meta.smallest.as_slice()).min()?;
    let largest = segments.into_iter().map(|s| &*s.meta.largest).max()?;
    Some((smallest, largest))
}

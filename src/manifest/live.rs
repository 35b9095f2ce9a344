//! The live set: the segments that reads consult, in order, and the fences that pick the few that could hold a key.
//!
//! A live set is immutable. A flush, a compaction or a rebuilt sidecar makes a new one that shares segments with the old. Readers keep
//! the one they loaded for as long as they need it. An obsolete segment's files are unlinked when the last live set with it is dropped.

use super::edit::{ManifestState, SegmentMeta};
use super::level::LEVELS;
use crate::id::FileId;
use crate::key::{common_prefix, prefix8, same_bytes};
use crate::segment::SegmentFile;
use crate::sidecar::Sidecar;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A segment in a live set, with its level and its sidecar.
#[derive(Clone)]
pub struct LiveSegment {
    /// Its manifest entry.
    pub meta: Arc<SegmentMeta>,
    /// Its files.
    pub file: Arc<SegmentFile>,
    /// Its filter; without one, every probe is "maybe".
    pub sidecar: Option<Arc<Sidecar>>,
}

impl LiveSegment {
    /// Whether it has a sidecar whose checksums are not verified yet.
    pub fn waits_for_verification(&self) -> bool {
        self.sidecar.as_ref().is_some_and(|sidecar| !sidecar.is_verified())
    }

    /// The same segment with the same sidecar in another level.
    pub fn at_level(&self, level: u8) -> Self {
        let meta = SegmentMeta { level, ..(*self.meta).clone() };
        LiveSegment { meta: Arc::new(meta), ..self.clone() }
    }

    fn cmp_smallest(&self, key: &[u8]) -> Ordering {
        self.meta.smallest.as_slice().cmp(key)
    }

    fn cmp_largest(&self, key: &[u8]) -> Ordering {
        self.meta.largest.as_slice().cmp(key)
    }

    /// Whether the segment is in quarantine because it cannot be read in full.
    pub fn is_quarantined(&self) -> bool {
        usize::from(self.meta.level) >= LEVELS
    }

    /// Whether the segment's key range overlaps the closed range.
    pub fn overlaps(&self, smallest: &[u8], largest: &[u8]) -> bool {
        self.meta.smallest.as_slice() <= largest && self.meta.largest.as_slice() >= smallest
    }
}

/// The smallest and the largest key of some segments; `None` if there are none.
pub fn hull<'a>(segments: impl IntoIterator<Item = &'a LiveSegment> + Clone) -> Option<(&'a [u8], &'a [u8])> {
    let smallest = segments.clone().into_iter().map(|s| s.meta.smallest.as_slice()).min()?;
    let largest = segments.into_iter().map(|s| s.meta.largest.as_slice()).max()?;
    Some((smallest, largest))
}

/// One level with its fences: for each segment's first and last key, the 8 bytes after the prefix that all keys of the level share.
#[derive(Default, Clone)]
pub struct Level {
    segments: Vec<LiveSegment>,
    shared: Box<[u8]>,
    first: Box<[u64]>,
    last: Box<[u64]>,
}

impl Level {
    fn new(segments: Vec<LiveSegment>) -> Self {
        let smallest = segments.iter().map(|s| s.meta.smallest.as_slice()).min().unwrap_or_default();
        let largest = segments.iter().map(|s| s.meta.largest.as_slice()).max().unwrap_or_default();
        let shared = smallest.get(..common_prefix(smallest, largest)).unwrap_or_default();
        let fence = |key: &Vec<u8>| prefix8(key.get(shared.len()..).unwrap_or_default());
        let first = segments.iter().map(|s| fence(&s.meta.smallest)).collect();
        let last = segments.iter().map(|s| fence(&s.meta.largest)).collect();
        Level { shared: shared.into(), first, last, segments }
    }

    /// The segments: newest first in level 0, in key order in the others.
    pub fn segments(&self) -> &[LiveSegment] {
        &self.segments
    }

    /// The key's fence within this level; `None` when no segment can hold the key.
    #[inline]
    fn fence(&self, key: &[u8]) -> Option<u64> {
        let (head, rest) = key.split_at_checked(self.shared.len())?;
        same_bytes(head, &self.shared).then(|| prefix8(rest))
    }

    /// Sorted runs only: the one segment whose range includes the key.
    #[inline]
    fn find(&self, key: &[u8]) -> Option<&LiveSegment> {
        let fence = self.fence(key)?;
        let mut at = self.last.partition_point(|&last| last < fence);
        while self.last.get(at) == Some(&fence) && self.segments.get(at)?.cmp_largest(key).is_lt() {
            at += 1;
        }
        self.holds(at, fence, key)
    }

    /// The segment at `at` if its smallest key is at most `key`.
    #[inline]
    fn holds(&self, at: usize, fence: u64, key: &[u8]) -> Option<&LiveSegment> {
        let first = *self.first.get(at)?;
        let segment = self.segments.get(at)?;
        (first < fence || first == fence && segment.cmp_smallest(key).is_le()).then_some(segment)
    }

    /// Level 0 only: the segments whose range includes the key, newest first.
    #[inline]
    fn find_all<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a LiveSegment> {
        let fence = self.fence(key);
        let candidates = 0..if fence.is_some() { self.segments.len() } else { 0 };
        candidates.filter_map(move |at| {
            let (fence, last) = (fence?, *self.last.get(at)?);
            let segment = self.holds(at, fence, key)?;
            (fence < last || fence == last && segment.cmp_largest(key).is_ge()).then_some(segment)
        })
    }

    /// Total length of the segment files, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.segments.iter().map(|s| s.meta.file_bytes).sum()
    }
}

/// All levels and the quarantined segments.
#[derive(Default, Clone)]
pub struct LiveSet {
    levels: [Level; LEVELS],
    quarantined: Box<[LiveSegment]>,
}

impl LiveSet {
    /// Assigns segments to their levels.
    pub fn new(segments: impl IntoIterator<Item = LiveSegment>) -> Self {
        let mut sorted: [Vec<LiveSegment>; LEVELS] = Default::default();
        let mut quarantined = Vec::new();
        for segment in segments {
            sorted.get_mut(usize::from(segment.meta.level)).unwrap_or(&mut quarantined).push(segment);
        }
        quarantined.sort_by_key(|s| std::cmp::Reverse(s.meta.max_seq));
        for (number, level) in sorted.iter_mut().enumerate() {
            match number {
                0 => level.sort_by_key(|s| std::cmp::Reverse(s.meta.max_seq)),
                _ => level.sort_by(|a, b| a.meta.smallest.cmp(&b.meta.smallest)),
            }
        }
        LiveSet { levels: sorted.map(Level::new), quarantined: quarantined.into() }
    }

    /// The next live set: without `removed`, with `added`.
    pub fn with(&self, added: Vec<LiveSegment>, removed: &BTreeSet<FileId>) -> Self {
        let stay = self.segments().filter(|s| !removed.contains(&s.meta.id)).cloned();
        LiveSet::new(stay.chain(added))
    }

    /// Whether these are the segments of the manifest, each in its level.
    pub fn is_of(&self, state: &ManifestState) -> bool {
        let recorded =
            |s: &LiveSegment| state.segments.get(&s.meta.id).is_some_and(|meta| meta.level == s.meta.level);
        self.segments().all(recorded) && self.segments().count() == state.segments.len()
    }

    /// The levels, 0 first.
    pub fn levels(&self) -> &[Level; LEVELS] {
        &self.levels
    }

    /// All segments: newest level first, quarantined ones last.
    pub fn segments(&self) -> impl Iterator<Item = &LiveSegment> {
        self.levels.iter().flat_map(Level::segments).chain(&self.quarantined)
    }

    /// Segments that cannot be read in full, in descending order of their newest entry. They left their levels so that the others can be
    /// compacted without them. That also removes them from the order of ages: only sequence numbers tell which of their entries are
    /// current. Their readable blocks answer reads. A damaged block returns its error for every key that it could hold and that has no
    /// newer entry elsewhere.
    pub fn quarantined(&self) -> &[LiveSegment] {
        &self.quarantined
    }

    /// The quarantined segments whose range includes the key, in descending order of their newest entry.
    pub fn suspects<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a LiveSegment> {
        self.quarantined.iter().filter(move |s| s.overlaps(key, key))
    }

    /// The segments that could hold the key, newest first: any number from level 0, at most one from each other level.
    #[inline]
    pub fn candidates<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a LiveSegment> {
        let [level0, runs @ ..] = &self.levels;
        level0.find_all(key).chain(runs.iter().filter_map(move |run| run.find(key)))
    }

    /// The deepest level with a segment; 0 if there is none.
    pub fn deepest(&self) -> usize {
        self.levels.iter().rposition(|level| !level.segments.is_empty()).unwrap_or(0)
    }

    /// The sequence number of the newest entry in any segment.
    pub fn max_seq(&self) -> u64 {
        self.segments().map(|s| s.meta.max_seq).max().unwrap_or(0)
    }
}

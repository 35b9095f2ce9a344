//! Sorted runs with their fences, which pick the one segment of a run that could hold a key.
//!
//! A key's *fence* within some runs is the 8 bytes after the prefix that all keys of these runs share. It
//! decides most comparisons of a lookup with the ends of segments. Neighbouring runs with the same shared
//! prefix form a group, so that a key's fence is computed once.

use super::fences::Fenced;
use super::level_counts::LevelCounts;
use super::segment::LiveSegment;
use super::segments::Segments;
use crate::key::{common_prefix, prefix8};
use std::sync::Arc;

/// The most runs in a group, so that a lookup can count its probes of a group in a [`LevelCounts`].
pub const GROUP_RUNS_MAX: usize = 128;
const _: () = assert!(GROUP_RUNS_MAX <= LevelCounts::MAX);

/// Neighbouring runs whose keys share the same prefix.
pub struct RunGroup {
    shared: SharedPrefix,
    runs: Vec<Run>,
}

/// A sorted run: one segment of level 0, or a whole level below it.
pub struct Run {
    level: usize,
    /// One in its level.
    count: LevelCounts,
    /// The number of its first segment in the level.
    begin: usize,
    /// Its segments, if they are in one piece; otherwise none.
    fences: Arc<[Fenced]>,
    pieces: Box<[FencedPiece]>,
}

/// Neighbours in a run of many segments.
struct FencedPiece {
    /// The fence of the largest key.
    last: u64,
    /// The number of segments of the run before it.
    begin: usize,
    fences: Arc<[Fenced]>,
}

impl RunGroup {
    /// Appends a level-0 segment. `begin` is its number in the level.
    pub(crate) fn append_one(groups: &mut Vec<RunGroup>, begin: usize, segment: &LiveSegment) {
        let (smallest, largest) = (segment.meta.smallest.as_slice(), &*segment.meta.largest);
        let shared = smallest.get(..common_prefix(smallest, largest)).unwrap_or_default();
        let fences = [Fenced::new(segment, shared.len())].into();
        let run = Run { level: 0, count: LevelCounts::one(0), begin, fences, pieces: Box::default() };
        RunGroup::append(groups, shared, run);
    }

    /// Appends a level below 0.
    pub(crate) fn append_level(groups: &mut Vec<RunGroup>, level: usize, segments: &Segments) {
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return };
        let (smallest, largest) = (first.meta.smallest.as_slice(), &*last.meta.largest);
        let shared = smallest.get(..common_prefix(smallest, largest)).unwrap_or_default();
        let mut begin = 0;
        let pieces = segments.pieces().iter().filter_map(|piece| {
            let fences = Arc::clone(piece.fenced()?);
            let fenced = FencedPiece { last: fences.last()?.last, begin, fences };
            begin += fenced.fences.len();
            Some(fenced)
        });
        let mut pieces: Vec<FencedPiece> = pieces.collect();
        let fences = match pieces.len() {
            1 => pieces.pop().map(|only| only.fences),
            _ => None,
        };
        let (count, fences, pieces) = (LevelCounts::one(level), fences.unwrap_or_default(), pieces.into());
        RunGroup::append(groups, shared, Run { level, count, begin: 0, fences, pieces });
    }

    /// Appends a run to the last group, if its keys share the same prefix, or to a new one.
    fn append(groups: &mut Vec<RunGroup>, shared: &[u8], run: Run) {
        match groups.last_mut() {
            Some(last) if *last.shared.bytes == *shared && last.runs.len() < GROUP_RUNS_MAX => {
                last.runs.push(run)
            }
            _ => groups.push(RunGroup { shared: SharedPrefix::new(shared), runs: vec![run] }),
        }
    }

    /// The runs, newest first.
    #[inline]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The smallest and the largest fence of keys within these runs that start with `prefix`; `None` if none
    /// of them can hold such a key.
    #[inline]
    pub fn fences(&self, prefix: &[u8]) -> Option<(u64, u64)> {
        if self.shared.bytes.starts_with(prefix) {
            return Some((0, u64::MAX)); // Every key in these runs does.
        }
        let rest = self.shared.rest_of(prefix)?;
        let behind = u64::MAX.checked_shr(8 * rest.len() as u32).unwrap_or(0);
        Some((prefix8(rest), prefix8(rest) | behind))
    }

    /// The key's fence within these runs; `None` if none of them can hold the key.
    #[inline(always)]
    pub fn fence(&self, key: &[u8]) -> Option<u64> {
        self.shared.rest_of(key).map(prefix8)
    }
}

impl Run {
    /// Number of segments.
    pub fn segments(&self) -> usize {
        self.fences.len() + self.pieces.last().map_or(0, |last| last.begin + last.fences.len())
    }

    /// Its level.
    #[inline]
    pub fn level(&self) -> usize {
        self.level
    }

    /// The count of one event in its level.
    #[inline]
    pub fn count(&self) -> LevelCounts {
        self.count
    }

    /// The segments that may hold a key with a fence between these, inclusive.
    #[inline]
    pub fn within(&self, (from, to): (u64, u64)) -> impl Iterator<Item = &Fenced> {
        let first = self.fences.partition_point(|fenced| fenced.last < from);
        let piece = self.pieces.partition_point(|piece| piece.last < from);
        let in_pieces = self.pieces.iter().skip(piece).flat_map(|piece| &*piece.fences);
        let from_first = self.fences.iter().skip(first).chain(in_pieces.skip_while(move |f| f.last < from));
        from_first.take_while(move |fenced| fenced.first <= to)
    }

    /// The one segment whose range includes the key, given the key's fence within the run's group.
    #[inline(always)]
    pub fn find(&self, fence: u64, key: &[u8]) -> Option<&Fenced> {
        self.find_at(fence, key).map(|(_, fenced)| fenced)
    }

    /// The number in its level of the segment found by [`find`](Self::find).
    #[inline]
    pub fn position(&self, fence: u64, key: &[u8]) -> Option<usize> {
        self.find_at(fence, key).map(|(at, _)| self.begin + at)
    }

    /// [`position`](Self::position) of the segment found by [`find`](Self::find). Mostly from its address, so
    /// that only a segment that is read is numbered.
    #[inline]
    pub fn position_of(&self, found: &Fenced, fence: u64, key: &[u8]) -> Option<usize> {
        let bytes = std::ptr::from_ref(found).addr().wrapping_sub(self.fences.as_ptr().addr());
        let at = bytes / size_of::<Fenced>();
        if at < self.fences.len() { Some(self.begin + at) } else { self.position(fence, key) }
    }

    #[inline(always)]
    fn find_at(&self, fence: u64, key: &[u8]) -> Option<(usize, &Fenced)> {
        let (at, fenced) = match &*self.fences {
            [only] => (0, only),
            [] => return self.find_in_pieces(fence, key),
            many => {
                let at = many.partition_point(|fenced| fenced.last < fence);
                (at, many.get(at)?)
            }
        };
        if fenced.first < fence && fence < fenced.last {
            Some((at, fenced))
        } else {
            self.find_by_keys(at, fence, key)
        }
    }

    /// The search in a run of more than one piece.
    #[inline(never)]
    fn find_in_pieces(&self, fence: u64, key: &[u8]) -> Option<(usize, &Fenced)> {
        let first = self.pieces.partition_point(|piece| piece.last < fence);
        for (number, piece) in self.pieces.iter().enumerate().skip(first) {
            let at = if number == first { piece.fences.partition_point(|f| f.last < fence) } else { 0 };
            for (at, fenced) in piece.fences.iter().enumerate().skip(at) {
                if let Some(includes) = fenced.includes_or_follows(fence, key) {
                    return includes.then_some((piece.begin + at, fenced));
                }
            }
        }
        None
    }

    /// The search where fences alone may not decide, from segment `at` on. Earlier ones end before the key.
    #[inline(never)]
    fn find_by_keys(&self, at: usize, fence: u64, key: &[u8]) -> Option<(usize, &Fenced)> {
        for (at, fenced) in self.fences.iter().enumerate().skip(at) {
            if let Some(includes) = fenced.includes_or_follows(fence, key) {
                return includes.then_some((at, fenced));
            }
        }
        None
    }
}

/// A prefix that keys have in common.
#[derive(PartialEq, Eq)]
struct SharedPrefix {
    bytes: Box<[u8]>,
    /// Its first eight bytes from [`prefix8`], and which bits of them belong to it.
    head: u64,
    mask: u64,
}

impl SharedPrefix {
    fn new(bytes: &[u8]) -> Self {
        let mask = prefix8(&vec![0xff; bytes.len().min(8)]);
        SharedPrefix { bytes: bytes.into(), head: prefix8(bytes), mask }
    }

    /// The rest of a key that starts with the prefix.
    #[inline]
    fn rest_of<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let rest = key.get(self.bytes.len()..)?;
        let starts = prefix8(key) & self.mask == self.head;
        (starts && (self.bytes.len() <= 8 || key.starts_with(&self.bytes))).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::FileId;
    use crate::live::LiveSet;
    use crate::manifest::{Place, SegmentMeta};
    use crate::segment::{Facts, OpenFiles, SegmentFile, SegmentSummary};
    use crate::support::SimFs;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::path::Path;

    fn segment(files: &Arc<OpenFiles>, id: u64, level: u8, smallest: &[u8], largest: &[u8]) -> LiveSegment {
        let (smallest, largest) = (smallest.to_vec(), largest.to_vec().into());
        let facts = Facts { smallest, largest, entries: 1, min_seq: 1, max_seq: id, ..Facts::default() };
        let (id, version, digest, file_bytes, data_bytes) = (FileId(id), 0, 0, 1, 1);
        let summary = SegmentSummary { id, version, digest, file_bytes, data_bytes, facts };
        let file = Arc::new(SegmentFile::new(Arc::clone(files), id, digest));
        LiveSegment {
            meta: Arc::new(SegmentMeta { place: Place::Level(level), summary }),
            file,
            sidecar: None,
        }
    }

    proptest! {
        #[test]
        fn the_rest_of_a_key_is_what_follows_the_prefix(
            prefix in vec(0u8..2, 0..12),
            key in vec(0u8..2, 0..14),
            longer: bool,
        ) {
            let key = if longer { [&prefix[..], &key].concat() } else { key };
            prop_assert_eq!(SharedPrefix::new(&prefix).rest_of(&key), key.strip_prefix(&prefix[..]));
        }

        #[test]
        fn runs_find_the_segments_that_a_linear_search_finds(
            common in "a{0,10}",
            level0 in vec((vec(0u8..3, 0..11), vec(0u8..3, 0..11)), 0..5),
            sorted in proptest::collection::btree_set(vec(0u8..3, 0..11), 0..10),
            sought in vec(vec(0u8..3, 0..11), 1..20),
        ) {
            let whole = |rest: &[u8]| [common.as_bytes(), rest].concat();
            let files = Arc::new(OpenFiles::new(Arc::new(SimFs::new()), Path::new("/"), 0, 8));
            let of_level0 = level0.iter().enumerate().map(|(i, (a, b))| {
                segment(&files, i as u64, 0, &whole(a.min(b)), &whole(a.max(b)))
            });
            let ends: Vec<_> = sorted.iter().map(|key| whole(key)).collect();
            let of_level1 = ends.chunks_exact(2).enumerate().map(|(i, ends)| {
                segment(&files, 100 + i as u64, 1, &ends[0], &ends[1])
            });
            let live = LiveSet::new(of_level0.chain(of_level1));
            for prefix in sought.iter().map(|key| whole(key)).chain(sought.clone()).chain(ends.clone()) {
                let holds = |s: &&LiveSegment| {
                    let end = crate::key::prefix_end(&prefix);
                    s.meta.largest >= prefix && end.is_none_or(|end| s.meta.smallest < end)
                };
                let found: Vec<FileId> = live
                    .run_groups()
                    .iter()
                    .filter_map(|group| Some((group, group.fences(&prefix)?)))
                    .flat_map(|(group, fences)| group.runs().iter().flat_map(move |run| run.within(fences)))
                    .map(|fenced| fenced.meta.id)
                    .collect();
                for needed in live.segments().filter(holds) {
                    prop_assert!(found.contains(&needed.meta.id), "{:?}", prefix);
                }
            }
            for key in sought.iter().map(|key| whole(key)).chain(sought.clone()).chain(ends.clone()) {
                let linear: Vec<FileId> =
                    live.segments().filter(|s| s.overlaps(&key, &key)).map(|s| s.meta.id).collect();
                let mut found = Vec::new();
                for group in live.run_groups().iter() {
                    let Some(fence) = group.fence(&key) else { continue };
                    for run in group.runs() {
                        let at = run.position(fence, &key);
                        let segment = at.map(|at| live.levels()[run.level()].segments().get(at).unwrap().meta.id);
                        let fenced = run.find(fence, &key);
                        prop_assert_eq!(fenced.map(|fenced| fenced.meta.id), segment);
                        prop_assert_eq!(fenced.and_then(|fenced| run.position_of(fenced, fence, &key)), at);
                        found.extend(segment);
                    }
                }
                prop_assert_eq!(found, linear);
            }
        }
    }
}

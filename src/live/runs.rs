//! Sorted runs with their fences, which pick the one segment of a run that could hold a key.
//!
//! A key's *fence* within some runs is the 8 bytes after the prefix that all keys of these runs share. It
//! decides most comparisons of a lookup with the ends of segments. Neighbouring runs with the same shared
//! prefix form a group, so that a key's fence is computed once.

use super::level_counts::LevelCounts;
use super::segment::LiveSegment;
use crate::filter::{ProbeHash, Probes};
use crate::key::{HEADS_START, Space, common_prefix, prefix8};
use crate::manifest::SegmentMeta;
use crate::sidecar::{LiveSidecar, Sidecar};
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

/// What a lookup needs of a segment whose filter denies the key. Does not keep the segment's files.
pub struct Fenced {
    /// The fences of its smallest and its largest key.
    first: u64,
    last: u64,
    /// From its [`LiveSegment`]. Its denials count only while a view has the segment.
    pub sidecar: Option<Arc<Sidecar>>,
    pub(crate) meta: Arc<SegmentMeta>,
}

/// What a fence alone tells.
pub enum Sought<'r> {
    /// The segment whose range includes all keys with this fence.
    In(&'r Fenced),
    /// No segment's range includes such a key.
    Nowhere,
    /// It depends on the key.
    Unclear,
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

    /// Appends a level below 0, given its smallest and its largest key and the fences of its pieces.
    pub(crate) fn append_level<'p>(
        groups: &mut Vec<RunGroup>,
        level: usize,
        (smallest, largest): (&[u8], &[u8]),
        pieces: impl Iterator<Item = &'p Arc<[Fenced]>>,
    ) {
        let shared = smallest.get(..common_prefix(smallest, largest)).unwrap_or_default();
        let mut begin = 0;
        let pieces = pieces.filter_map(|fences| {
            let fenced = FencedPiece { last: fences.last()?.last, begin, fences: Arc::clone(fences) };
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

    /// The one keyspace that its keys are in, if the prefix that they share tells it.
    pub(super) fn keyspace(&self) -> Option<Space> {
        let shared = &self.shared.bytes;
        let tells =
            if shared.starts_with(HEADS_START) { Space::head_bytes(shared) > 0 } else { !shared.is_empty() };
        Space::of(shared).filter(|_| tells)
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
        self.shared.fence(key)
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

    /// What the fence alone tells about the segment that [`find`](Self::find) finds.
    #[inline(always)]
    pub fn seek(&self, fence: u64) -> Sought<'_> {
        let fenced = match &*self.fences {
            [only] => only,
            [] => match self.pieces.get(self.pieces.partition_point(|piece| piece.last < fence)) {
                Some(piece) => match first_from(&piece.fences, fence) {
                    Some(fenced) => fenced,
                    None => return Sought::Nowhere,
                },
                None => return Sought::Nowhere,
            },
            many => match first_from(many, fence) {
                Some(fenced) => fenced,
                None => return Sought::Nowhere,
            },
        };
        if fenced.first < fence && fence < fenced.last {
            Sought::In(fenced)
        } else if fenced.first == fence || fenced.last == fence {
            Sought::Unclear
        } else {
            Sought::Nowhere
        }
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

/// The first segment that does not end before the fence.
#[inline(always)]
fn first_from(fences: &[Fenced], fence: u64) -> Option<&Fenced> {
    fences.get(fences.partition_point(|fenced| fenced.last < fence))
}

impl Fenced {
    /// A segment of a run whose keys share the first `shared` bytes.
    pub(crate) fn new(segment: &LiveSegment, shared: usize) -> Self {
        let fence = |key: &[u8]| prefix8(key.get(shared..).unwrap_or_default());
        Fenced {
            first: fence(&segment.meta.smallest),
            last: fence(&segment.meta.largest),
            sidecar: segment.sidecar.as_ref().map(LiveSidecar::shared),
            meta: Arc::clone(&segment.meta),
        }
    }

    /// Whether the first probe of the segment's filter denies the hash, in a loop compiled for an instruction
    /// set. If not, [`denies`](Self::denies) decides. A caller that relies on either must check afterwards
    /// that no map has faulted ([`any_fault`](crate::fs::any_fault)).
    #[inline(always)]
    pub fn denies_first<P: Probes>(&self, probes: P, hash: &P::Hash) -> bool {
        let first = self.sidecar.as_deref().and_then(Sidecar::first_probe);
        first.is_some_and(|(first, lines)| probes.denies(hash, first, lines))
    }

    /// [`denies`](Self::denies) without a first probe, which has not denied.
    #[inline(always)]
    pub fn denies_wholly(&self, hash: u64) -> bool {
        self.sidecar.as_deref().is_some_and(|sidecar| sidecar.denies(hash))
    }

    /// Whether the segment's filter denies the hash.
    #[inline(always)]
    pub fn denies(&self, hash: &ProbeHash) -> bool {
        let Some(sidecar) = self.sidecar.as_deref() else { return false };
        match sidecar.first_probe() {
            Some((first, lines)) if first.denies(lines, hash) => true,
            _ => sidecar.denies(hash.hash()),
        }
    }

    /// Whether the segment's range includes the key with this fence; `None` if it ends before the key.
    #[inline]
    fn includes_or_follows(&self, fence: u64, key: &[u8]) -> Option<bool> {
        if self.last < fence || self.last == fence && &*self.meta.largest < key {
            return None;
        }
        Some(self.first < fence || self.first == fence && self.meta.smallest.as_slice() <= key)
    }
}

/// A prefix that keys have in common.
#[derive(PartialEq, Eq)]
struct SharedPrefix {
    bytes: Box<[u8]>,
    /// Its length, if that is 8 or less.
    short: usize,
    /// Its first eight bytes as they lie in memory, and which bits of them belong to it.
    head: u64,
    mask: u64,
}

impl SharedPrefix {
    fn new(bytes: &[u8]) -> Self {
        let mask = prefix8(&vec![0xff; bytes.len().min(8)]).to_be();
        let short = if bytes.len() <= 8 { bytes.len() } else { usize::MAX };
        SharedPrefix { bytes: bytes.into(), short, head: prefix8(bytes).to_be(), mask }
    }

    /// The fence of a key: [`prefix8`] of its rest.
    #[inline(always)]
    fn fence(&self, key: &[u8]) -> Option<u64> {
        let rest = key.get(self.short..).and_then(<[u8]>::first_chunk);
        if let (Some(first), Some(rest)) = (key.first_chunk(), rest) {
            let starts = (u64::from_ne_bytes(*first) ^ self.head) & self.mask == 0;
            return starts.then_some(u64::from_be_bytes(*rest));
        }
        self.fence_of_any(key)
    }

    /// [`fence`](Self::fence) for any lengths.
    #[inline(never)]
    fn fence_of_any(&self, key: &[u8]) -> Option<u64> {
        self.rest_of(key).map(prefix8)
    }

    /// The rest of a key that starts with the prefix.
    fn rest_of<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        key.strip_prefix(&*self.bytes)
    }
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;

//! Sorted runs with their fences, which pick the one segment of a run that could hold a key.
//!
//! A key's *fence* within some runs is the 8 bytes after the prefix that all keys of these runs share. It
//! decides most comparisons of a lookup with the ends of segments. Neighbouring runs with the same shared
//! prefix form a group, so that a key's fence is computed once.

use super::segment::LiveSegment;
use crate::filter::{ProbeHash, Verdict};
use crate::key::{common_prefix, prefix8};
use crate::manifest::{LEVELS, SegmentMeta};
use crate::sidecar::{LiveSidecar, Sidecar};
use std::ops::{Add, AddAssign};
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

    /// Whether the segment's filter denies the hash. A caller that relies on it must check afterwards that no
    /// map has faulted ([`any_fault`](crate::fs::any_fault)).
    #[inline(always)]
    pub fn denies(&self, hash: &ProbeHash) -> bool {
        let denies = |s: &Sidecar| s.denies(hash) || s.ask(hash.hash()) == Some(Verdict::Absent);
        self.sidecar.as_deref().is_some_and(denies)
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

/// A count of up to [`MAX`](Self::MAX) for each level, before one of them [`is_full`](Self::is_full).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LevelCounts(u64);

/// Bits of a count. The highest is set when the count is full.
const COUNT_BITS: usize = u64::BITS as usize / LEVELS;

/// The highest bit of each count.
const FULL_COUNTS: u64 = {
    let (mut full, mut level) = (0, 0);
    while level < LEVELS {
        full |= 1 << (COUNT_BITS * level + COUNT_BITS - 1);
        level += 1;
    }
    full
};

impl LevelCounts {
    /// The largest count that is not full. Counts that are not full can be added.
    pub const MAX: usize = (1 << (COUNT_BITS - 1)) - 1;

    /// 1 for this level, 0 for the others.
    pub const fn one(level: usize) -> Self {
        LevelCounts(1 << (COUNT_BITS * level))
    }

    /// The count of a level.
    pub const fn of(self, level: usize) -> u64 {
        self.0 >> (COUNT_BITS * level) & ((1 << COUNT_BITS) - 1)
    }

    /// Whether a count has exceeded [`MAX`](Self::MAX).
    #[inline]
    pub const fn is_full(self) -> bool {
        self.0 & FULL_COUNTS != 0
    }

    /// All counts, to store them in an atomic.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The counts from [`to_bits`](Self::to_bits).
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        LevelCounts(bits)
    }
}

impl Add for LevelCounts {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        LevelCounts(self.0 + other.0)
    }
}

impl AddAssign for LevelCounts {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;

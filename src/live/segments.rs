//! The segments of one level.
//!
//! 1. A level is a list of pieces of up to 128 segments. The next live set shares the unchanged pieces: the
//!    cost of a publication depends on what it changes, not on the size of the store.
//! 2. A piece that has become small is joined with a neighbour.

use super::runs::Fenced;
use super::segment::LiveSegment;
use crate::key::{Time, common_prefix};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most segments of a piece.
const PIECE_MAX: usize = 128;
/// A changed piece with fewer segments is joined with the next one.
const PIECE_MIN: usize = 32;

/// The number of the next piece. Only for identity, so no thread waits for it.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The segments of one level: newest first in level 0, in key order in the others.
#[derive(Clone, Default)]
pub struct Level {
    segments: Segments,
    file_bytes: u64,
    entries: u64,
}

impl Level {
    /// Level `number`, made of these segments in any order.
    pub(crate) fn new(number: usize, mut segments: Vec<LiveSegment>) -> Self {
        segments.sort_by(|a, b| order(number, a, b));
        let mut pieces = Vec::new();
        split(&segments, &mut pieces);
        Level::of(number, pieces)
    }

    fn of(number: usize, mut pieces: Vec<Piece>) -> Self {
        let (first, last) = (pieces.first().map(Piece::hull), pieces.last().map(Piece::hull));
        let shared =
            first.zip(last).map_or(0, |((smallest, _), (_, largest))| common_prefix(smallest, largest));
        if number > 0 {
            pieces.iter_mut().for_each(|piece| piece.fence(shared));
        }
        let mut begin = 0;
        let begins = pieces.iter().map(|piece| {
            begin += piece.segments().len();
            begin - piece.segments().len()
        });
        let begins: Arc<[usize]> = begins.collect();
        Level {
            file_bytes: pieces.iter().map(|piece| piece.file_bytes).fold(0, u64::saturating_add),
            entries: pieces.iter().map(|piece| piece.entries).fold(0, u64::saturating_add),
            segments: Segments { pieces: pieces.into(), begins, len: begin },
        }
    }

    /// The level without some of its segments and with others.
    pub(crate) fn with(&self, number: usize, gone: &[&LiveSegment], mut added: Vec<LiveSegment>) -> Self {
        if gone.is_empty() && added.is_empty() {
            return self.clone();
        }
        added.sort_by(|a, b| order(number, a, b));
        let mut changes = Changes::of(&self.segments.pieces, number, gone, added);
        let mut pieces: Vec<Piece> = Vec::with_capacity(self.segments.pieces.len() + 1);
        let mut changed: Vec<LiveSegment> = Vec::new();
        for (at, piece) in self.segments.pieces.iter().enumerate() {
            match changes.take(at) {
                None if changed.is_empty() || changed.len() >= PIECE_MIN => {
                    split(&changed, &mut pieces);
                    changed.clear();
                    pieces.push(piece.clone());
                }
                None => changed.extend(piece.segments().iter().cloned()),
                Some((gone, added)) => {
                    let stays = |s: &&LiveSegment| gone.iter().all(|gone| gone.meta.id != s.meta.id);
                    let mut left: Vec<_> = piece.segments().iter().filter(stays).cloned().collect();
                    left.extend(added);
                    left.sort_by(|a, b| order(number, a, b));
                    changed.append(&mut left);
                }
            }
        }
        changed.extend(changes.take(self.segments.pieces.len()).into_iter().flat_map(|(_, added)| added));
        if changed.len() < PIECE_MIN
            && let Some(last) = pieces.pop_if(|_| !changed.is_empty())
        {
            changed.splice(0..0, last.segments().iter().cloned());
        }
        split(&changed, &mut pieces);
        Level::of(number, pieces)
    }

    /// The segments.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Total length of the segment files, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Number of entries, tombstones included.
    pub fn entries(&self) -> u64 {
        self.entries
    }
}

/// The order of the segments of a level.
fn order(number: usize, a: &LiveSegment, b: &LiveSegment) -> Ordering {
    match number {
        0 => b.meta.max_seq.cmp(&a.meta.max_seq),
        _ => a.meta.smallest.cmp(&b.meta.smallest),
    }
}

/// Cuts sorted segments into pieces of about equal size.
fn split(segments: &[LiveSegment], pieces: &mut Vec<Piece>) {
    let count = segments.len().div_ceil(PIECE_MAX).max(1);
    let size = segments.len().div_ceil(count).max(1);
    pieces.extend(segments.chunks(size).map(Piece::new));
}

/// The changes of each piece, by index.
struct Changes<'a> {
    gone: std::iter::Peekable<std::vec::IntoIter<(usize, &'a LiveSegment)>>,
    added: std::iter::Peekable<std::vec::IntoIter<(usize, LiveSegment)>>,
}

impl<'a> Changes<'a> {
    fn of(pieces: &[Piece], number: usize, gone: &[&'a LiveSegment], added: Vec<LiveSegment>) -> Self {
        let ends_before = |piece: &Piece, segment: &LiveSegment| {
            piece.segments().last().is_some_and(|last| order(number, last, segment).is_lt())
        };
        let place = |segment: &LiveSegment| pieces.partition_point(|piece| ends_before(piece, segment));
        let has = |at: &usize, segment: &LiveSegment| {
            pieces.get(*at).is_some_and(|piece| piece.segments().iter().any(|s| s.meta.id == segment.meta.id))
        };
        // In level 0 several may have the same place in the order.
        let home = |segment: &LiveSegment| (place(segment)..pieces.len()).find(|at| has(at, segment));
        let mut gone: Vec<_> = gone.iter().filter_map(|&s| Some((home(s)?, s))).collect();
        gone.sort_by_key(|(at, _)| *at);
        let added: Vec<_> = added.into_iter().map(|s| (place(&s), s)).collect();
        Changes { gone: gone.into_iter().peekable(), added: added.into_iter().peekable() }
    }

    /// The changes of the piece at `at`. The index after the last piece has what is added there.
    fn take(&mut self, at: usize) -> Option<(Vec<&'a LiveSegment>, Vec<LiveSegment>)> {
        let gone: Vec<_> =
            std::iter::from_fn(|| self.gone.next_if(|(place, _)| *place == at).map(|(_, s)| s)).collect();
        let added: Vec<_> =
            std::iter::from_fn(|| self.added.next_if(|(place, _)| *place == at).map(|(_, s)| s)).collect();
        (!gone.is_empty() || !added.is_empty()).then_some((gone, added))
    }
}

/// Segments in the order of their level.
#[derive(Clone, Default)]
pub struct Segments {
    pieces: Arc<[Piece]>,
    /// The number of segments before each piece.
    begins: Arc<[usize]>,
    len: usize,
}

impl Segments {
    /// The number of segments.
    pub fn len(&self) -> usize {
        self.len
    }

    /// All segments, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &LiveSegment> + Clone {
        self.pieces.iter().flat_map(|piece| piece.segments())
    }

    /// The segments at these positions.
    pub fn range(&self, within: Range<usize>) -> impl Iterator<Item = &LiveSegment> + Clone {
        let piece = self.piece_of(within.start);
        let skipped = within.start - self.begins.get(piece).copied().unwrap_or(within.start);
        let pieces = self.pieces.iter().skip(piece).flat_map(|piece| piece.segments());
        pieces.skip(skipped).take(within.len())
    }

    /// The segment at this position.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&LiveSegment> {
        match &*self.pieces {
            [only] => only.segments().get(at),
            pieces => {
                let piece = self.piece_of(at);
                pieces.get(piece)?.segments().get(at - self.begins.get(piece)?)
            }
        }
    }

    /// The piece that has the position; 0 if there are no pieces.
    fn piece_of(&self, at: usize) -> usize {
        self.begins.partition_point(|begin| *begin <= at).saturating_sub(1)
    }

    /// The first segment.
    pub fn first(&self) -> Option<&LiveSegment> {
        self.get(0)
    }

    /// The last segment.
    pub fn last(&self) -> Option<&LiveSegment> {
        self.pieces.last()?.segments().last()
    }

    /// The number of segments before the first one for which `is_before` is false, like the method of slices.
    pub fn partition_point(&self, mut is_before: impl FnMut(&LiveSegment) -> bool) -> usize {
        let piece = self.pieces.partition_point(|piece| piece.segments().last().is_some_and(&mut is_before));
        match (self.pieces.get(piece), self.begins.get(piece)) {
            (Some(piece), Some(begin)) => begin + piece.segments().partition_point(is_before),
            _ => self.len,
        }
    }

    /// The positions of the segments that overlap the closed range, in a level below 0.
    pub fn overlapping(&self, smallest: &[u8], largest: &[u8]) -> Range<usize> {
        let first = self.partition_point(|s| &*s.meta.largest < smallest);
        let behind = self.partition_point(|s| s.meta.smallest.as_slice() <= largest);
        first..behind.max(first)
    }

    /// The pieces.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }
}

/// Some neighbours in a level, which successive live sets share. Never changes: it is replaced.
#[derive(Clone)]
pub struct Piece {
    number: u64,
    segments: Arc<[LiveSegment]>,
    /// Their fences in the level, if the level is a sorted run.
    fences: Option<Fences>,
    file_bytes: u64,
    entries: u64,
    longest_streak: u64,
    ranges: u64,
    has_expired_from: Option<Time>,
    rewrite_from: Option<Time>,
}

/// The fences of a piece within a level whose keys share this many bytes.
#[derive(Clone)]
struct Fences {
    shared: usize,
    fenced: Arc<[Fenced]>,
}

impl Piece {
    fn new(segments: &[LiveSegment]) -> Self {
        let sum = |of: fn(&LiveSegment) -> u64| segments.iter().map(of).fold(0, u64::saturating_add);
        Piece {
            number: NUMBER.fetch_add(1, Relaxed),
            fences: None,
            file_bytes: sum(|s| s.meta.file_bytes),
            entries: sum(|s| s.meta.entries),
            longest_streak: segments.iter().map(|s| s.meta.longest_streak).max().unwrap_or(0),
            ranges: sum(|s| s.meta.ranges),
            has_expired_from: segments.iter().filter_map(LiveSegment::has_expired_from).min(),
            rewrite_from: segments.iter().filter_map(LiveSegment::rewrite_from).min(),
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

    /// From when on all rows of one of its segments have expired; `None` if that never happens.
    pub fn has_expired_from(&self) -> Option<Time> {
        self.has_expired_from
    }

    /// From when on one of its segments is [worth rewriting](LiveSegment::rewrite_from); `None` if never.
    pub fn rewrite_from(&self) -> Option<Time> {
        self.rewrite_from
    }

    /// The smallest key of its first segment and the largest of its last one.
    pub fn hull(&self) -> (&[u8], &[u8]) {
        let smallest = self.segments.first().map(|s| s.meta.smallest.as_slice());
        let largest = self.segments.last().map(|s| &*s.meta.largest);
        (smallest.unwrap_or_default(), largest.unwrap_or_default())
    }

    /// Computes the fences, unless it has those already.
    fn fence(&mut self, shared: usize) {
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

//! The cost of merging each segment of a sorted level into the next one, kept between picks.
//!
//! 1. The cost of a segment is the number of bytes that it overlaps in the next level, per byte of its own.
//! 2. Costs are kept per piece of a level ([`Piece`]), with the pieces of the next level that it overlaps.
//!    They hold as long as these pieces are the same. A publication changes few pieces, so only their
//!    neighbours are recomputed.

use crate::live::{Level, LiveSegment, LiveSet, Piece, Segments};
use crate::manifest::LEVELS;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

/// The costs of all levels.
#[derive(Default)]
pub(crate) struct MergeCosts {
    /// By piece number.
    levels: [BTreeMap<u64, PieceCosts>; LEVELS],
}

/// The costs of the segments of a piece.
struct PieceCosts {
    /// The numbers of the overlapped pieces.
    below: Vec<u64>,
    /// Cost and index in the piece of each segment, cheapest first.
    by_cost: Vec<(f64, usize)>,
}

impl MergeCosts {
    /// The segments of a level below 0, cheapest first; in key order when costs are equal.
    pub fn cheapest_first<'a>(
        &'a mut self,
        live: &'a LiveSet,
        level: usize,
    ) -> impl Iterator<Item = &'a LiveSegment> {
        let upper = live.levels().get(level).map_or(&[][..], |level| level.segments().pieces());
        let kept = self.levels.get_mut(level).map(std::mem::take).unwrap_or_default();
        let costs = update(kept, upper, live.levels().get(level + 1).map(Level::segments));
        let costs = match self.levels.get_mut(level) {
            Some(place) => {
                *place = costs;
                &*place
            }
            None => const { &BTreeMap::new() },
        };
        let of_piece = |(number, piece): (usize, &'a Piece)| {
            let by_cost = costs.get(&piece.number())?.by_cost.as_slice();
            Next::of(number, by_cost).map(Reverse)
        };
        let mut heap: BinaryHeap<Reverse<Next<'a>>> = upper.iter().enumerate().filter_map(of_piece).collect();
        std::iter::from_fn(move || {
            let Reverse(next) = heap.pop()?;
            heap.extend(Next::of(next.piece, next.later).map(Reverse));
            upper.get(next.piece)?.segments().get(next.at)
        })
    }
}

/// The costs of these pieces; reuses the known ones that still hold.
fn update(
    mut kept: BTreeMap<u64, PieceCosts>,
    upper: &[Piece],
    below: Option<&Segments>,
) -> BTreeMap<u64, PieceCosts> {
    let Some(below) = below else { return BTreeMap::new() };
    let costs = upper.iter().map(|piece| {
        let (smallest, largest) = piece.hull();
        let first = below.pieces().partition_point(|other| other.hull().1 < smallest);
        let overlapped = below.pieces().iter().skip(first).take_while(|other| other.hull().0 <= largest);
        let overlapped: Vec<u64> = overlapped.map(Piece::number).collect();
        match kept.remove(&piece.number()) {
            Some(known) if known.below == overlapped => (piece.number(), known),
            _ => (piece.number(), PieceCosts { by_cost: costs_of(piece, below), below: overlapped }),
        }
    });
    costs.collect()
}

/// Cost and index of each segment, cheapest first. Walks both levels in key order, in parallel.
fn costs_of(piece: &Piece, below: &Segments) -> Vec<(f64, usize)> {
    let first = below.partition_point(|other| &*other.meta.largest < piece.hull().0);
    let mut others = below.range(first..below.len());
    let cost = |segment: &LiveSegment| {
        let meta = &segment.meta;
        while others.clone().next().is_some_and(|other| other.meta.largest < meta.smallest) {
            others.next();
        }
        let overlapping = others.clone().take_while(|other| other.meta.smallest <= meta.largest);
        let bytes = overlapping.map(|other| other.meta.file_bytes).fold(0, u64::saturating_add);
        bytes as f64 / meta.file_bytes.max(1) as f64
    };
    let mut by_cost: Vec<(f64, usize)> = piece.segments().iter().map(cost).zip(0..).collect();
    by_cost.sort_by(|a, b| a.0.total_cmp(&b.0));
    by_cost
}

/// The cheapest segment of a piece that was not returned yet.
struct Next<'a> {
    cost: f64,
    piece: usize,
    at: usize,
    later: &'a [(f64, usize)],
}

impl<'a> Next<'a> {
    fn of(piece: usize, by_cost: &'a [(f64, usize)]) -> Option<Self> {
        let (&(cost, at), later) = by_cost.split_first()?;
        Some(Next { cost, piece, at, later })
    }
}

impl Ord for Next<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cost.total_cmp(&other.cost).then((self.piece, self.at).cmp(&(other.piece, other.at)))
    }
}

impl PartialOrd for Next<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Next<'_> {}

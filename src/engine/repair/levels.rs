//! Assigns levels to segments whose manifest is lost.
//!
//! 1. If two segments overlap and one has only newer entries than the other, the newer one goes above the
//!    older one (I10). A read that finds a key in a level then need not look below it.
//! 2. If two segments overlap and their ages interleave, both go to level 0, where reads and compactions
//!    compare sequence numbers. So does everything newer that overlaps one of them: nothing is above level 0.
//! 3. So do segments with entries that the logs may repeat: the next open writes these to level 0 again,
//!    where they must not hide newer ones.
//! 4. All others go as deep as that allows, counted from the deepest level that can hold all of them: a
//!    segment that overlaps nothing older has no run below it. Range tombstones are within the bounds of
//!    their segment, so rules 1 and 2 hold for what they hide.

use crate::engine::compact::pick::deepest_bytes_max;
use crate::key::Seq;
use crate::manifest::{LEVELS, Place, SegmentMeta};

/// Gives each segment its level. The logs hold no operation up to `last_seq`.
pub(super) fn assign_levels(metas: &mut [SegmentMeta], last_seq: Seq) {
    // Oldest first. Each is placed above what is already placed.
    metas.sort_by_key(|meta| (meta.max_seq, meta.min_seq, meta.id));
    let heights = heights(metas, last_seq);
    let layers = heights.iter().flatten().max().map_or(0, |highest| highest + 1);
    let deepest = deepest_level(metas).max(layers.min(LEVELS - 1));
    for (meta, height) in metas.iter_mut().zip(heights) {
        let level = height.and_then(|height| deepest.checked_sub(height)).unwrap_or(0);
        meta.place = Place::Level(u8::try_from(level).unwrap_or(0));
    }
}

/// How many segments are below each one; `None` for those in level 0.
fn heights(oldest_first: &[SegmentMeta], last_seq: Seq) -> Vec<Option<usize>> {
    let mut keys: Vec<&[u8]> = oldest_first.iter().flat_map(|s| [&*s.smallest, &*s.largest]).collect();
    keys.sort_unstable();
    keys.dedup();
    let place = |key: &[u8]| keys.partition_point(|other| *other < key);
    let span = |meta: &SegmentMeta| (place(&meta.smallest), place(&meta.largest));
    let spans: Vec<(usize, usize)> = oldest_first.iter().map(span).collect();

    let mut interleaves: Vec<bool> = oldest_first.iter().map(|meta| meta.max_seq > last_seq).collect();
    let mut newest = SpanMaxima::new(keys.len());
    for ((meta, span), interleaves) in oldest_first.iter().zip(&spans).zip(&mut interleaves) {
        *interleaves |= newest.max(*span).is_some_and(|older| older >= meta.min_seq);
        newest.raise(*span, meta.max_seq);
    }
    // The complement makes the oldest one the greatest.
    let mut oldest = SpanMaxima::new(keys.len());
    for ((meta, span), interleaves) in oldest_first.iter().zip(&spans).zip(&mut interleaves).rev() {
        *interleaves |= oldest.max(*span).is_some_and(|newer| !newer <= meta.max_seq);
        oldest.raise(*span, !meta.min_seq);
    }
    const LEVEL0: u64 = u64::MAX;
    let mut heights = SpanMaxima::new(keys.len());
    let height = |(span, interleaves): (&(usize, usize), bool)| {
        let height = match heights.max(*span) {
            _ if interleaves => LEVEL0,
            None => 0,
            Some(below) => below.saturating_add(1),
        };
        heights.raise(*span, height);
        usize::try_from(height).ok().filter(|_| height != LEVEL0)
    };
    spans.iter().zip(interleaves).map(height).collect()
}

/// The first level that holds them all, if most of them are full.
fn deepest_level(metas: &[SegmentMeta]) -> usize {
    let mut sizes: Vec<u64> = metas.iter().map(|meta| meta.file_bytes).collect();
    sizes.sort_unstable();
    let full = sizes.get(sizes.len() / 2).copied().unwrap_or(0);
    let all = sizes.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    (1..LEVELS).find(|level| deepest_bytes_max(*level, full) >= all).unwrap_or(LEVELS - 1)
}

/// The greatest number given to any position of a span: a segment tree.
struct SpanMaxima {
    places: usize,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Default)]
struct Node {
    /// Of some position below.
    any: Option<u64>,
    /// Of every position below.
    every: Option<u64>,
}

impl SpanMaxima {
    fn new(places: usize) -> Self {
        SpanMaxima { places, nodes: vec![Node::default(); 4 * places.max(1)] }
    }

    /// The greatest number of the positions from the first to the last.
    fn max(&self, span: (usize, usize)) -> Option<u64> {
        self.max_below(0, (0, self.places), span)
    }

    fn max_below(&self, at: usize, (from, to): (usize, usize), (first, last): (usize, usize)) -> Option<u64> {
        let node = self.nodes.get(at)?;
        if last < from || to <= first {
            return None;
        }
        if first <= from && to <= last + 1 {
            return node.any;
        }
        let middle = from.midpoint(to);
        let halves = self.max_below(2 * at + 1, (from, middle), (first, last)).max(self.max_below(
            2 * at + 2,
            (middle, to),
            (first, last),
        ));
        node.every.max(halves)
    }

    /// Gives a number to the positions from the first to the last.
    fn raise(&mut self, span: (usize, usize), number: u64) {
        self.raise_below(0, (0, self.places), span, number);
    }

    fn raise_below(
        &mut self,
        at: usize,
        (from, to): (usize, usize),
        (first, last): (usize, usize),
        number: u64,
    ) {
        if last < from || to <= first {
            return;
        }
        let Some(node) = self.nodes.get_mut(at) else { return };
        node.any = node.any.max(Some(number));
        if first <= from && to <= last + 1 {
            node.every = node.every.max(Some(number));
            return;
        }
        let middle = from.midpoint(to);
        self.raise_below(2 * at + 1, (from, middle), (first, last), number);
        self.raise_below(2 * at + 2, (middle, to), (first, last), number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::FileId;
    use crate::segment::{Facts, SegmentSummary};
    use proptest::prelude::*;

    fn meta(id: u64, keys: [u8; 2], seqs: [u64; 2]) -> SegmentMeta {
        let (smallest, largest) = (vec![keys[0]], vec![keys[1]].into());
        let [min_seq, max_seq] = seqs;
        let facts = Facts { smallest, largest, min_seq, max_seq, entries: 1, ..Facts::default() };
        let (id, version, digest, file_bytes, data_bytes) = (FileId(id), 0, 0, 1000, 1);
        let summary = SegmentSummary { id, version, digest, file_bytes, data_bytes, facts };
        SegmentMeta { place: Place::Level(9), summary }
    }

    fn overlap(a: &SegmentMeta, b: &SegmentMeta) -> bool {
        a.smallest <= b.largest && b.smallest <= a.largest
    }

    proptest! {
        #[test]
        fn i10_repaired_levels_have_newer_segments_above_older_ones(
            found in prop::collection::vec((any::<[u8; 2]>(), [0u64..200, 0..4]), 0..60),
            narrow: bool,
            last_seq in 0u64..300,
        ) {
            let mut metas: Vec<SegmentMeta> = found.into_iter().zip(1..).map(|((mut keys, [seq, more]), id)| {
                keys[1] = if narrow { keys[0].saturating_add(keys[1] % 8) } else { keys[1] };
                keys.sort_unstable();
                meta(id, keys, [seq, seq + more])
            }).collect();
            assign_levels(&mut metas, last_seq);
            let level = |meta: &SegmentMeta| usize::from(meta.place.level().unwrap());
            let interleave = |a: &SegmentMeta, b: &SegmentMeta| a.min_seq <= b.max_seq && b.min_seq <= a.max_seq;
            for (number, a) in metas.iter().enumerate() {
                prop_assert!(level(a) < LEVELS);
                prop_assert!(level(a) == 0 || a.max_seq <= last_seq);
                for b in metas.iter().skip(number + 1).filter(|b| overlap(a, b)) {
                    if level(a) == level(b) {
                        prop_assert_eq!(level(a), 0, "{:?} {:?}", a, b);
                    } else {
                        let (above, below) = if level(a) < level(b) { (a, b) } else { (b, a) };
                        prop_assert!(above.min_seq > below.max_seq, "{:?} above {:?}", above, below);
                    }
                }
                // Nothing is in level 0 without need.
                let older = || metas.iter().filter(|b| b.id != a.id && overlap(a, b) && b.max_seq < a.min_seq);
                let must = a.max_seq > last_seq
                    || metas.iter().any(|b| b.id != a.id && overlap(a, b) && interleave(a, b))
                    || older().any(|b| level(b) <= 1);
                prop_assert!(level(a) > 0 || must, "{:?}", a);
            }
        }
    }

    #[test]
    fn segments_that_do_not_overlap_share_the_level_that_holds_them() {
        let level_of = |count: usize| {
            let one = meta(1, [1, 1], [1, 1]);
            let many = (0..count).map(|n| {
                let mut meta = one.clone();
                (meta.summary.facts.smallest, meta.summary.facts.largest) =
                    (n.to_be_bytes().to_vec(), n.to_be_bytes().to_vec().into());
                meta
            });
            let mut metas: Vec<SegmentMeta> = many.collect();
            assign_levels(&mut metas, 1);
            assert!(metas.iter().all(|meta| meta.place == metas[0].place));
            metas[0].place.level().unwrap()
        };
        assert_eq!([1, 16, 17, 160, 161, 5000].map(level_of), [1, 1, 2, 2, 3, 4]);
    }
}

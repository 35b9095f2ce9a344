//! The segments of a live set that have range tombstones.

use super::segment::LiveSegment;
use super::segments::Level;
use crate::error::Result;
use crate::key::Seq;
use crate::manifest::LEVELS;
use crate::ranges::{RangeTombstones, Span};
use std::sync::Arc;

/// The segments with range tombstones, by runs. The tombstones themselves are read when first needed.
#[derive(Default)]
pub struct RangedRuns {
    /// In key order and disjoint within each run.
    runs: Vec<Vec<LiveSegment>>,
}

impl RangedRuns {
    /// Collects them from the levels and from quarantine.
    pub(crate) fn of(levels: &[Level; LEVELS], quarantined: &[LiveSegment]) -> Self {
        let [level0, sorted @ ..] = levels;
        let is_ranged = |s: &&LiveSegment| s.meta.ranges > 0;
        let ranged = |level: &Level| -> Vec<LiveSegment> {
            let pieces = level.segments().pieces().iter().filter(|piece| piece.ranges() > 0);
            pieces.flat_map(|piece| piece.segments()).filter(is_ranged).cloned().collect()
        };
        let alone = ranged(level0).into_iter().chain(quarantined.iter().filter(is_ranged).cloned());
        let runs = alone.map(|segment| vec![segment]).chain(sorted.iter().map(ranged));
        RangedRuns { runs: runs.filter(|run| !run.is_empty()).collect() }
    }

    /// Whether no segment has any.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The segments whose range includes the key.
    fn around<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a LiveSegment> {
        self.runs.iter().filter_map(move |run| {
            let at = run.partition_point(|s| &*s.meta.largest < key);
            run.get(at).filter(|s| s.meta.smallest.as_slice() <= key)
        })
    }

    /// Whether a range tombstone deletes an entry of the key.
    ///
    /// # Errors
    /// The errors of reading a segment's tombstones, one of which may or may not delete the entry.
    pub fn delete(&self, key: &[u8], seq: Seq) -> Result<bool> {
        for segment in self.around(key).filter(|s| s.meta.max_seq > seq) {
            if segment.file.ask_ranges(|ranges| ranges.seq_at(key))? > seq {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Narrows a span around `key` to where the tombstones stay the same, and adds them to it. `ask` does so
    /// for one segment.
    ///
    /// # Errors
    /// The errors of `ask`.
    pub fn narrow(
        &self,
        key: &[u8],
        span: &mut Span,
        mut ask: impl FnMut(&LiveSegment, &mut Span) -> Result<()>,
    ) -> Result<()> {
        for run in &self.runs {
            let at = run.partition_point(|s| &*s.meta.largest < key);
            let before = at.checked_sub(1).and_then(|at| run.get(at));
            match run.get(at) {
                Some(segment) if segment.meta.smallest.as_slice() <= key => {
                    ask(segment, span)?;
                    span.narrow(None, run.get(at + 1).map(|s| s.meta.smallest.as_slice()));
                }
                // Between two segments. Nothing after a segment's largest key is its own.
                next => span.narrow(None, next.map(|s| s.meta.smallest.as_slice())),
            }
            if let Some(before) = before {
                span.narrow(Some(&after(&before.meta.largest)), None);
            }
        }
        Ok(())
    }

    /// Whether one segment's range tombstones, if in memory, delete everything in `segment`.
    fn cover(&self, segment: &LiveSegment) -> bool {
        let meta = &segment.meta;
        self.around(&meta.smallest).filter(|s| s.meta.max_seq > meta.max_seq && !s.is_quarantined()).any(
            |s| {
                let ranges = s.file.ranges_in_memory();
                ranges.is_some_and(|ranges| ranges.cover(&meta.smallest, &meta.largest, meta.max_seq))
            },
        )
    }

    /// The segments that range tombstones in other segments delete entirely.
    pub(crate) fn covered<'a>(&self, segments: impl Iterator<Item = &'a LiveSegment>) -> Vec<LiveSegment> {
        if self.is_empty() {
            Vec::new()
        } else {
            segments.filter(|s| !s.is_quarantined() && self.cover(s)).cloned().collect()
        }
    }

    /// The tombstones of some segments together.
    ///
    /// # Errors
    /// The errors of reading them.
    pub fn of_all<'a>(segments: impl Iterator<Item = &'a LiveSegment>) -> Result<RangeTombstones> {
        let ranged = segments.filter(|s| s.meta.ranges > 0);
        let sets: Vec<Arc<RangeTombstones>> =
            ranged.map(|s| s.file.ask_ranges(Arc::clone)).collect::<Result<_>>()?;
        Ok(RangeTombstones::all(sets.iter().map(Arc::as_ref)))
    }
}

/// A key after `key`, with no possible key of a segment in between.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

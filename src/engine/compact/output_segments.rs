//! The outputs of a compaction: segments of about equal size, with the remaining range tombstones.
//!
//! 1. A segment ends after its last entry and owns the range tombstones up to there; the next segment gets
//!    the rest. So segments stay disjoint (I10), no matter how long a range is.
//! 2. Range tombstones count towards a segment's size, as entries do. Where there are many and no entries, a
//!    tombstone of a deleted key serves as an entry, after which the segment can end.

use super::compaction::Compaction;
use crate::engine::filters::FilterKeeper;
use crate::engine::filters::plan::FilterPlan;
use crate::engine::storage::segment_builder::{RANGE_BYTES_MAX, SegmentBuilder};
use crate::error::Result;
use crate::key::{EntryKind, Seq};
use crate::live::LiveSegment;
use crate::ranges::{RangeTombstones, successor};

/// Call order: `new append* finish`.
pub(crate) struct CompactionOutput<'a> {
    filters: &'a FilterKeeper,
    level: u8,
    plan: Option<&'a FilterPlan>,
    built: &'a mut Vec<LiveSegment>,
    current: Option<SegmentBuilder<'a>>,
    /// The range tombstones from the start of the current segment on.
    ranges: RangeTombstones,
    /// How many of their steps the current segment has passed, and about how many bytes they take.
    passed: usize,
    passed_bytes: usize,
    /// The ranges that are not counted yet.
    uncounted: u64,
}

impl<'a> CompactionOutput<'a> {
    /// Appends the written segments to `built`; `ranges` are the range tombstones.
    pub fn new(
        filters: &'a FilterKeeper,
        compaction: &Compaction,
        plan: Option<&'a FilterPlan>,
        ranges: RangeTombstones,
        built: &'a mut Vec<LiveSegment>,
    ) -> Self {
        let level = compaction.output_level;
        let (current, passed, passed_bytes, uncounted) = (None, 0, 0, 0);
        CompactionOutput { filters, level, plan, built, current, ranges, passed, passed_bytes, uncounted }
    }

    /// Adds the next entry.
    pub fn append(&mut self, key: &[u8], seq: Seq, kind: EntryKind, value: &[u8]) -> Result<()> {
        self.pass_ranges(Some(key))?;
        let ranges = std::mem::take(&mut self.uncounted);
        let builder = self.builder()?;
        builder.pass_ranges(ranges);
        builder.append(key, seq, kind, value)?;
        if self.is_full() { self.end_segment(successor(key)) } else { Ok(()) }
    }

    /// Completes the last segment, with all remaining range tombstones.
    pub fn finish(mut self) -> Result<()> {
        self.pass_ranges(None)?;
        if self.current.is_some() || !self.ranges.is_empty() { self.end_segment(None) } else { Ok(()) }
    }

    fn builder(&mut self) -> Result<&mut SegmentBuilder<'a>> {
        let builder = match self.current.take() {
            Some(builder) => builder,
            None => SegmentBuilder::new(self.filters.storage(), self.level, self.plan)?,
        };
        Ok(self.current.insert(builder))
    }

    /// Counts the range tombstones that begin before `key`, and ends segments that they fill.
    fn pass_ranges(&mut self, key: Option<&[u8]>) -> Result<()> {
        while let Some((from, seq)) = self.ranges.step(self.passed)
            && key.is_none_or(|key| from < key)
        {
            self.passed += 1;
            self.uncounted += u64::from(seq > 0);
            self.passed_bytes += from.len() + RangeTombstones::STEP_BYTES;
            // A segment needs more than one step: the first may just continue a range, at a key that alone
            // fills a segment.
            if seq > 0 && self.passed > 1 && self.is_full() {
                // The last key is this one if the range begins at an entry, and never a greater one.
                let from = from.to_vec();
                if self.current.as_ref().is_none_or(|builder| from.as_slice() > builder.last_key()) {
                    self.builder()?.append(&from, seq, EntryKind::Tombstone, &[])?;
                }
                self.end_segment(self.current.as_ref().and_then(|builder| successor(builder.last_key())))?;
            }
        }
        Ok(())
    }

    /// In level 0, a run is one segment, so a segment is never full.
    fn is_full(&self) -> bool {
        let bytes = self.current.as_ref().map_or(0, SegmentBuilder::file_bytes) + self.passed_bytes as u64;
        self.level > 0
            && (bytes >= self.filters.storage().options.segment_bytes || self.passed_bytes >= RANGE_BYTES_MAX)
    }

    /// Ends the segment, with the range tombstones before `behind`, or with all of them.
    fn end_segment(&mut self, behind: Option<Vec<u8>>) -> Result<()> {
        self.builder()?;
        let Some(mut builder) = self.current.take() else { return Ok(()) };
        let rest = behind.map(|behind| self.ranges.split_off(&behind)).unwrap_or_default();
        builder.set_ranges(std::mem::replace(&mut self.ranges, rest))?;
        (self.passed, self.passed_bytes, self.uncounted) = (0, 0, 0); // The rest counts at the end.
        self.built.push(self.filters.finish_segment(builder)?);
        Ok(())
    }
}

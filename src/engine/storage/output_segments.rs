//! The segments that a flush or a compaction writes: of about equal size, with the remaining range
//! tombstones.
//!
//! 1. A segment ends after its last entry and owns the range tombstones up to there; the next segment gets
//!    the rest. So segments stay disjoint (I10), no matter how long a range is. At the border of a keyspace,
//!    it owns all up to the border, which no range tombstone passes.
//! 2. Range tombstones count towards a segment's size, as entries do. Where there are many and no entries, a
//!    tombstone of a deleted key serves as an entry, after which the segment can end.
//! 3. Small keyspaces share segments. One that has more than a 64th of a segment gets segments of its own. If
//!    that was not known before, it shares no more than that with the one before.
//! 4. In level 0, where segments may overlap, they only end at the border of a large keyspace. So no keyspace
//!    gets two of them. Windowed keyspaces count as large: no segment spans one, not even from an entry
//!    before it to a range tombstone after it. A merge of that segment would take along what it spans.

use super::Storage;
use super::segment_builder::{RANGE_BYTES_MAX, SegmentBuilder, UnpublishedSegments};
use crate::engine::filters::plans::FilterPlans;
use crate::error::Result;
use crate::key::{EntryKind, Seq, Space, Time};
use crate::ranges::{RangeTombstones, successor};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// About how many keyspaces share a segment if each is just too small for one of its own.
const KEYSPACES_MAX: u64 = 64;

/// The least bytes of a keyspace with segments of its own.
pub(super) fn own_bytes_min(storage: &Storage) -> u64 {
    storage.options.segment_bytes / KEYSPACES_MAX
}

/// The keyspaces that are known to have enough bytes for segments of their own.
pub(crate) fn large_keyspaces(
    storage: &Storage,
    bytes: impl Iterator<Item = (Space, u64)>,
) -> BTreeSet<Space> {
    let mut sums: BTreeMap<Space, u64> = BTreeMap::new();
    for (space, bytes) in bytes {
        let sum = sums.entry(space).or_default();
        *sum = sum.saturating_add(bytes);
    }
    let least = own_bytes_min(storage);
    sums.into_iter().filter(|(_, bytes)| *bytes >= least).map(|(space, _)| space).collect()
}

/// Call order: `new append* finish`.
pub(crate) struct SegmentOutput<'a> {
    storage: &'a Storage,
    level: u8,
    plans: Arc<FilterPlans>,
    large: BTreeSet<Space>,
    /// When the time bucket of the rows ends.
    bucket: Time,
    built: UnpublishedSegments<'a>,
    current: Option<SegmentBuilder<'a>>,
    /// The keyspace of the last entry.
    space: Space,
    /// The bytes of the current segment before its first entry, if that has entries of other keyspaces.
    shared_bytes: Option<u64>,
    /// The range tombstones from the start of the current segment on.
    ranges: RangeTombstones,
    /// How many of their steps the current segment has passed, and about how many bytes they take.
    passed: usize,
    passed_bytes: usize,
    /// The ranges that are not counted yet.
    uncounted: u64,
}

impl<'a> SegmentOutput<'a> {
    /// Writes segments of a level. `large` are keyspaces that get segments of their own, `ranges` the range
    /// tombstones.
    pub fn new(
        storage: &'a Storage,
        level: u8,
        plans: Arc<FilterPlans>,
        mut large: BTreeSet<Space>,
        ranges: RangeTombstones,
    ) -> Self {
        large.extend(storage.keyspaces.windows().into_keys());
        SegmentOutput {
            storage,
            level,
            plans,
            large,
            bucket: Time::START,
            built: UnpublishedSegments::new(storage),
            current: None,
            space: Space::DEFAULT,
            shared_bytes: None,
            ranges,
            passed: 0,
            passed_bytes: 0,
            uncounted: 0,
        }
    }

    /// The same for rows of a time bucket, which ends then.
    pub fn in_bucket(self, end: Time) -> Self {
        SegmentOutput { bucket: end, ..self }
    }

    /// Adds the next entry.
    pub fn append(&mut self, key: &[u8], seq: Seq, kind: EntryKind, value: &[u8]) -> Result<()> {
        self.pass_ranges(Some(key))?;
        if !self.space.contains(key) {
            self.enter_keyspace(Space::of(key).unwrap_or(Space::DEFAULT))?;
        }
        let ranges = std::mem::take(&mut self.uncounted);
        let builder = self.builder(key)?;
        builder.pass_ranges(ranges);
        builder.append(key, seq, kind, value)?;
        if self.is_full() || self.shared_bytes.is_some() && self.has_become_large() {
            self.end_segment(successor(key))
        } else {
            Ok(())
        }
    }

    /// The bytes of all segments and their filters so far.
    pub fn written_bytes(&self) -> u64 {
        let current = self.current.as_ref().map_or(0, SegmentBuilder::file_bytes);
        self.built.written_bytes().saturating_add(current)
    }

    /// Before the first entry or deleted range of another keyspace: ends the segment, unless both keyspaces
    /// and those between them are small.
    fn enter_keyspace(&mut self, next: Space) -> Result<()> {
        // A key that only a newer version stores counts as one of the default keyspace.
        let between = self.space.min(next)..=self.space.max(next);
        let is_border = self.large.range(between).next().is_some() || self.has_become_large();
        self.space = next;
        let has_entries = self.current.as_ref().is_some_and(|builder| !builder.is_empty());
        if is_border && (has_entries || !self.ranges.is_empty() && self.ranges.start() < next.first_key()) {
            self.end_segment(Some(next.first_key().to_vec()))?;
        }
        let shared = self.current.as_ref().filter(|builder| !builder.is_empty());
        self.shared_bytes = shared.map(SegmentBuilder::file_bytes);
        Ok(())
    }

    /// Whether the current segment has enough of the last entry's keyspace for segments of its own.
    fn has_become_large(&self) -> bool {
        let bytes = self.current.as_ref().map_or(0, SegmentBuilder::file_bytes);
        self.level > 0 && bytes.saturating_sub(self.shared_bytes.unwrap_or(0)) >= own_bytes_min(self.storage)
    }

    /// Completes the last segment, with all remaining range tombstones.
    pub fn finish(mut self) -> Result<UnpublishedSegments<'a>> {
        self.pass_ranges(None)?;
        if self.current.is_some() || !self.ranges.is_empty() {
            self.end_segment(None)?;
        }
        Ok(self.built)
    }

    /// The builder of the current segment. `key` is the first one in a new segment.
    fn builder(&mut self, key: &[u8]) -> Result<&mut SegmentBuilder<'a>> {
        let builder = match self.current.take() {
            Some(builder) => builder,
            None => SegmentBuilder::new(self.storage, self.level, Space::of(key), &self.plans)?,
        };
        Ok(self.current.insert(builder))
    }

    /// Counts the range tombstones that begin before `key`, and ends segments that they fill.
    fn pass_ranges(&mut self, key: Option<&[u8]>) -> Result<()> {
        while let Some((from, seq)) = self.ranges.step(self.passed)
            && key.is_none_or(|key| from < key)
        {
            let space = Space::of(from).unwrap_or(Space::DEFAULT);
            if seq > 0 && space != self.space {
                self.enter_keyspace(space)?;
                continue; // A segment may have ended, and the steps with it.
            }
            self.passed += 1;
            self.uncounted += u64::from(seq > 0);
            self.passed_bytes += from.len() + RangeTombstones::STEP_BYTES;
            // A segment needs more than one step: the first may just continue a range, at a key that alone
            // fills a segment.
            if seq > 0 && self.passed > 1 && self.is_full() {
                // The last key is this one if the range begins at an entry, and never a greater one.
                let from = from.to_vec();
                if self.current.as_ref().is_none_or(|builder| from.as_slice() > builder.last_key()) {
                    self.builder(&from)?.append(&from, seq, EntryKind::TOMBSTONE, &[])?;
                }
                self.end_segment(self.current.as_ref().and_then(|builder| successor(builder.last_key())))?;
            }
        }
        Ok(())
    }

    /// In level 0, a segment is never full.
    fn is_full(&self) -> bool {
        let bytes = self.current.as_ref().map_or(0, SegmentBuilder::file_bytes) + self.passed_bytes as u64;
        self.level > 0
            && (bytes >= self.storage.options.segment_bytes || self.passed_bytes >= RANGE_BYTES_MAX)
    }

    /// Ends the segment, with the range tombstones before `behind`, or with all of them.
    fn end_segment(&mut self, behind: Option<Vec<u8>>) -> Result<()> {
        let first = self.ranges.start().to_vec();
        self.builder(&first)?;
        let Some(mut builder) = self.current.take() else { return Ok(()) };
        let rest = behind.map(|behind| self.ranges.split_off(&behind)).unwrap_or_default();
        builder.set_ranges(std::mem::replace(&mut self.ranges, rest))?;
        (self.shared_bytes, self.passed, self.passed_bytes, self.uncounted) = (None, 0, 0, 0); // The rest counts at the end.
        builder.set_bucket(self.bucket);
        self.built.segments.push(builder.finish()?);
        Ok(())
    }
}

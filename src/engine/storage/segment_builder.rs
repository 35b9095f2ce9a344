//! Builds a segment and its sidecar, for flushes, compactions and bulk loads.

use super::Storage;
use crate::engine::filters::plans::FilterPlans;
use crate::error::Result;
use crate::id::{FileId, FileKind};
use crate::key::{EntryKind, Seq, Space, Time};
use crate::live::LiveSegment;
use crate::manifest::{Place, SegmentMeta};
use crate::ranges::RangeTombstones;
use crate::segment::{
    OpenFiles, SegmentFile, SegmentSummary, SegmentWriter, UnnumberedSegment, WriterOptions,
};
use crate::sidecar::Members;
use std::sync::Arc;

/// A memtable or segment with this many bytes of range tombstones is full. One more batch of them still fits
/// into one block.
pub(crate) const RANGE_BYTES_MAX: usize = 32 << 20;

/// Unpublished segments. If dropped after an error or a panic, removes their files.
pub(crate) struct UnpublishedSegments<'a> {
    storage: &'a Storage,
    pub segments: Vec<LiveSegment>,
}

impl<'a> UnpublishedSegments<'a> {
    pub fn new(storage: &'a Storage) -> Self {
        UnpublishedSegments { storage, segments: Vec::new() }
    }

    /// The size of their files, filters included.
    pub fn written_bytes(&self) -> u64 {
        let filter = |s: &LiveSegment| s.sidecar.as_ref()?.facts().ok().map(|facts| facts.filter_bytes());
        let bytes = self.segments.iter().map(|s| s.meta.file_bytes.saturating_add(filter(s).unwrap_or(0)));
        bytes.fold(0, u64::saturating_add)
    }

    /// The segments, for the caller to publish.
    pub fn take(mut self) -> Vec<LiveSegment> {
        std::mem::take(&mut self.segments)
    }
}

impl Drop for UnpublishedSegments<'_> {
    fn drop(&mut self) {
        self.segments.iter().for_each(|segment| self.storage.discard(segment.meta.id, FileKind::Segment));
    }
}

/// The files of a segment that is being written. Removes them if dropped.
struct UnfinishedSegment<'a> {
    storage: &'a Storage,
    id: FileId,
    kind: FileKind,
}

impl Drop for UnfinishedSegment<'_> {
    fn drop(&mut self) {
        self.storage.discard(self.id, self.kind);
    }
}

/// Call order: `new append+ finish`. Removes the unfinished files if dropped before `finish`.
pub(crate) struct SegmentBuilder<'a> {
    storage: &'a Storage,
    unfinished: UnfinishedSegment<'a>,
    level: u8,
    /// The keyspace of its first keys.
    first: Option<Space>,
    /// `None` if it gets no filter.
    plans: Option<Arc<FilterPlans>>,
    writer: SegmentWriter,
    members: Members,
    ranges: RangeTombstones,
}

impl<'a> SegmentBuilder<'a> {
    /// Starts a segment for `level`, whose first keys are of the keyspace `first`, with the filter that the
    /// plans give it.
    pub fn new(
        storage: &'a Storage,
        level: u8,
        first: Option<Space>,
        plans: &Arc<FilterPlans>,
    ) -> Result<Self> {
        SegmentBuilder::create(storage, FileKind::Segment, level, first, Some(plans))
    }

    /// Starts a segment without a filter that no manifest will name. Its files are removed when the finished
    /// segment is dropped. A repair or the next open treats it as obsolete.
    pub fn temporary(storage: &'a Storage) -> Result<Self> {
        SegmentBuilder::create(storage, FileKind::Obsolete, 0, None, None)
    }

    /// Starts a segment whose rows get their sequence number at publication. Until then it has an obsolete
    /// segment's name, as above.
    pub fn unnumbered(
        storage: &'a Storage,
        level: u8,
        first: Option<Space>,
        plans: &Arc<FilterPlans>,
    ) -> Result<Self> {
        SegmentBuilder::create(storage, FileKind::Obsolete, level, first, Some(plans))
    }

    fn create(
        storage: &'a Storage,
        kind: FileKind,
        level: u8,
        first: Option<Space>,
        plans: Option<&Arc<FilterPlans>>,
    ) -> Result<Self> {
        let id = storage.take_id();
        let (options, own) = (&storage.options, storage.keyspaces.options(first.unwrap_or(Space::DEFAULT)));
        let writer_options = WriterOptions {
            block_bytes: own.block_bytes.unwrap_or(options.block_bytes),
            compression: own.compression.unwrap_or(options.compression),
        };
        let path = storage.path_of(id, kind);
        let writer = SegmentWriter::create(&*storage.fs, &path, id, storage.header, writer_options)?;
        // Only now: an earlier file of that name is somebody else's.
        let unfinished = UnfinishedSegment { storage, id, kind };
        let (members, ranges) = (storage.members(first), RangeTombstones::default());
        let plans = plans.filter(|plans| plans.are_on()).cloned();
        Ok(SegmentBuilder { storage, unfinished, level, first, plans, writer, members, ranges })
    }

    /// Sets when the time bucket of its rows ends.
    pub fn set_bucket(&mut self, end: Time) {
        self.writer.set_bucket(end);
    }

    /// Counts range tombstones that begin before the next entry. Others count as after the last entry.
    pub fn pass_ranges(&mut self, count: u64) {
        self.writer.pass_ranges(count);
    }

    pub fn append(&mut self, key: &[u8], seq: Seq, kind: EntryKind, value: &[u8]) -> Result<()> {
        let hash = self.writer.append(key, seq, kind, value)?;
        if self.plans.is_some() {
            self.members.add(key, hash);
        }
        Ok(())
    }

    /// Sets the range tombstones. Every segment has an entry, so if there is none, adds a tombstone of the
    /// first deleted key.
    pub fn set_ranges(&mut self, ranges: RangeTombstones) -> Result<()> {
        if let Some((start, _, seq)) = ranges.ranges().next().filter(|_| self.is_empty()) {
            self.append(start, seq, EntryKind::TOMBSTONE, &[])?;
        }
        self.writer.set_ranges(ranges.clone());
        self.ranges = ranges;
        Ok(())
    }

    /// The key of the last entry; empty if there is none.
    pub fn last_key(&self) -> &[u8] {
        self.writer.last_key()
    }

    /// Whether it has no entry yet.
    pub fn is_empty(&self) -> bool {
        self.writer.entries() == 0
    }

    /// Size of the file so far, in bytes, without range tombstones.
    pub fn file_bytes(&self) -> u64 {
        self.writer.file_bytes()
    }

    /// Makes the segment durable, then its sidecar if that can be written. The caller publishes both.
    pub fn finish(self) -> Result<LiveSegment> {
        let file = if self.unfinished.kind == FileKind::Obsolete {
            SegmentFile::temporary
        } else {
            SegmentFile::new
        };
        Ok(self.finish_with(SegmentWriter::finish, SegmentSummary::clone, file)?.0)
    }

    /// [`finish`](Self::finish), except the number of its rows, which were appended with sequence number 0.
    pub fn finish_unnumbered(self) -> Result<(LiveSegment, UnnumberedSegment)> {
        self.finish_with(SegmentWriter::finish_unnumbered, |of| of.summary.clone(), SegmentFile::new)
    }

    fn finish_with<T>(
        self,
        finish: impl FnOnce(SegmentWriter) -> Result<T>,
        summary: impl FnOnce(&T) -> SegmentSummary,
        file: impl FnOnce(Arc<OpenFiles>, FileId, u64) -> SegmentFile,
    ) -> Result<(LiveSegment, T)> {
        let SegmentBuilder { storage, unfinished, level, first, plans, mut writer, members, ranges } = self;
        let owner = first.filter(|space| space.contains(writer.last_key()));
        if let Some(name) = owner.and_then(|space| storage.keyspaces.name_of(space)) {
            writer.set_keyspace(name);
        }
        let finished = finish(writer)?;
        let meta = SegmentMeta { place: Place::Level(level), summary: summary(&finished) };
        let spec = plans.and_then(|plans| plans.filter_for(&meta));
        let sidecar = spec.and_then(|spec| storage.try_sidecar(&meta, &members, spec));
        let file = file(Arc::clone(&storage.files), unfinished.id, meta.digest);
        file.keep_ranges(ranges);
        std::mem::forget(unfinished);
        Ok((LiveSegment { meta: Arc::new(meta), file: Arc::new(file), sidecar }, finished))
    }
}

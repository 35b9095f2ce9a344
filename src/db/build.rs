//! Builds a segment and its sidecar, for flush, compaction and recovery alike.

use super::core::Core;
use super::metrics::add;
use super::policy::FilterPlan;
use super::recover::TEMPORARY;
use crate::error::Result;
use crate::filter::FilterSpec;
use crate::id::{FileId, FileKind};
use crate::key::{EntryKind, Seq};
use crate::manifest::{LiveSegment, SegmentMeta};
use crate::segment::{SegmentFile, SegmentWriter, WriterOptions};
use crate::sidecar::{self, Binding, Expect, Sidecar};
use std::path::Path;
use std::sync::Arc;

/// Segments that are not published yet. Dropped, by an error or a panic, it removes their files.
pub(crate) struct Built<'a> {
    core: &'a Core,
    pub segments: Vec<LiveSegment>,
}

impl<'a> Built<'a> {
    pub fn new(core: &'a Core) -> Self {
        Built { core, segments: Vec::new() }
    }

    /// The segments, for the caller to publish.
    pub fn take(mut self) -> Vec<LiveSegment> {
        std::mem::take(&mut self.segments)
    }
}

impl Drop for Built<'_> {
    fn drop(&mut self) {
        self.segments.iter().for_each(|segment| self.core.discard(segment.meta.id));
    }
}

/// The files of a segment that is being written. Dropped, it removes them.
struct Partial<'a> {
    core: &'a Core,
    id: FileId,
}

impl Drop for Partial<'_> {
    fn drop(&mut self) {
        self.core.discard(self.id);
    }
}

/// Call order: `new append+ finish`. Dropped before `finish`, it removes the partial file.
pub(crate) struct SegmentBuilder<'a> {
    core: &'a Core,
    partial: Partial<'a>,
    level: u8,
    filter: Option<FilterSpec>,
    writer: SegmentWriter,
    /// The hash of every key, tombstones included (I9): the filter is sized from the exact count.
    hashes: Vec<u64>,
}

impl<'a> SegmentBuilder<'a> {
    /// A segment for `level`, with the filter that the plan has for it; without one when filters are off.
    pub fn new(core: &'a Core, level: u8, plan: Option<&FilterPlan>) -> Result<Self> {
        let id = core.take_id();
        let options =
            WriterOptions { block_bytes: core.options.block_bytes, compression: core.options.compression };
        let path = core.path_of(id, FileKind::Segment);
        let partial = Partial { core, id };
        let writer = SegmentWriter::create(&*core.fs, &path, id, core.header, options)?;
        let filter = plan.map(|plan| plan.choose(level, id));
        Ok(SegmentBuilder { core, partial, level, filter, writer, hashes: Vec::new() })
    }

    pub fn append(&mut self, key: &[u8], seq: Seq, kind: EntryKind, value: &[u8]) -> Result<()> {
        if self.filter.is_some() {
            self.hashes.push(self.core.header.hasher.hash(key));
        }
        self.writer.append(key, seq, kind, value)
    }

    /// Size of the file so far, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.writer.file_bytes()
    }

    /// Segment durable, then sidecar durable, if it can be written; the caller publishes.
    pub fn finish(self) -> Result<LiveSegment> {
        let SegmentBuilder { core, partial, level, filter, writer, hashes } = self;
        let id = partial.id;
        let meta = SegmentMeta { level, summary: writer.finish()? };
        let sidecar = filter.and_then(|spec| core.try_sidecar(&meta, &hashes, spec));
        let file = SegmentFile::new(Arc::clone(&core.files), id, meta.digest);
        std::mem::forget(partial);
        Ok(LiveSegment { meta: Arc::new(meta), file: Arc::new(file), sidecar })
    }
}

fn binding(meta: &SegmentMeta) -> Binding {
    Binding { segment: meta.id, digest: meta.digest }
}

impl Core {
    /// What a sidecar must be bound to in order to answer for a segment.
    pub fn expected_sidecar(&self, meta: &SegmentMeta) -> Expect {
        Expect { binding: binding(meta), hasher: self.header.hasher }
    }

    /// Writes a segment's filter durably (but for its directory entry) and opens it, verified.
    pub fn create_sidecar(
        &self,
        meta: &SegmentMeta,
        hashes: &[u64],
        spec: FilterSpec,
    ) -> Result<Option<Arc<Sidecar>>> {
        let path = self.path_of(meta.id, FileKind::Filter);
        let bytes = sidecar::create(&*self.fs, &path, hashes, spec, self.header.hasher, Some(binding(meta)))?;
        add(&self.metrics.filter_bytes, bytes);
        let opened = self.open_verified(meta).inspect_err(|reason| {
            self.report_unusable(meta.id, reason);
            self.look_again_later();
        });
        Ok(opened.ok().map(Arc::new))
    }

    /// [`create_sidecar`](Self::create_sidecar), but derived data never stops a write (I2): what cannot be written is counted and warned
    /// of, and the background tries again after a while.
    pub fn try_sidecar(&self, meta: &SegmentMeta, hashes: &[u64], spec: FilterSpec) -> Option<Arc<Sidecar>> {
        self.create_sidecar(meta, hashes, spec).unwrap_or_else(|error| {
            self.report_unusable(meta.id, &sidecar::Unusable::Io(error));
            self.look_again_later();
            None
        })
    }

    /// Opens a segment's sidecar and verifies its lines.
    pub fn open_verified(&self, meta: &SegmentMeta) -> Result<Sidecar, sidecar::Unusable> {
        let path = self.path_of(meta.id, FileKind::Filter);
        let sidecar = Sidecar::open(&self.maps, &path, &self.expected_sidecar(meta), self.options.residency)?;
        sidecar.verify().map(|_| sidecar)
    }

    /// Opens a segment's sidecar without reading its lines. `None`, counted and warned of, when it is unusable (I2).
    pub fn open_sidecar(&self, meta: &SegmentMeta) -> Option<Sidecar> {
        let path = self.path_of(meta.id, FileKind::Filter);
        match Sidecar::open(&self.maps, &path, &self.expected_sidecar(meta), self.options.residency) {
            Ok(sidecar) => Some(sidecar),
            Err(reason) => {
                self.report_unusable(meta.id, &reason);
                None
            }
        }
    }

    pub fn report_unusable(&self, id: FileId, reason: &sidecar::Unusable) {
        add(&self.metrics.filters_unavailable, 1);
        let file = self.path_of(id, FileKind::Filter);
        tracing::warn!(file = %file.display(), %reason, "a filter is unusable: its segment is read instead until it is rebuilt");
    }

    pub fn remove_if_there(&self, path: &Path) {
        if let Ok(Some(_)) = self.fs.file_len(path)
            && let Err(error) = self.fs.remove(path)
        {
            tracing::warn!(%error, "an unfinished file stays until the next open");
        }
    }

    /// Removes the files of a segment that was never published.
    fn discard(&self, id: FileId) {
        let [segment, sidecar] = [FileKind::Segment, FileKind::Filter].map(|kind| self.path_of(id, kind));
        let unfinished_sidecar = self.dir.join(id.file_name(FileKind::Filter) + TEMPORARY);
        for path in [segment, sidecar, unfinished_sidecar] {
            self.remove_if_there(&path);
        }
    }
}

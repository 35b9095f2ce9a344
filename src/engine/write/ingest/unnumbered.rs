//! Segments of ingested rows before they are published: complete, except for their rows' sequence number.
//!
//! The number is only known at publication, which must not wait for gigabytes to be rewritten. So the blocks
//! have none, and the number is in the footer, 56 bytes appended last (`segment/format.rs`). Until then a
//! segment has an obsolete segment's name: a repair leaves it out, and the next open removes what a crash
//! left.

use crate::engine::filters::FilterKeeper;
use crate::engine::storage::segment_builder::{SegmentBuilder, UnpublishedSegments};
use crate::error::Result;
use crate::id::FileKind;
use crate::key::Seq;
use crate::live::LiveSegment;
use crate::manifest::SegmentMeta;
use crate::segment::UnnumberedSegment;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many segments are open while they get their number. Journaling file systems sync them together.
const OPEN_MAX: usize = 32;

/// Call order: `push* number`. Removes the files if dropped before that.
pub(crate) struct UnnumberedSegments<'a> {
    filters: &'a FilterKeeper,
    segments: VecDeque<(LiveSegment, UnnumberedSegment)>,
}

impl Drop for UnnumberedSegments<'_> {
    fn drop(&mut self) {
        self.segments.iter().for_each(|(s, _)| self.filters.storage().discard(s.meta.id, FileKind::Obsolete));
    }
}

impl<'a> UnnumberedSegments<'a> {
    pub fn new(filters: &'a FilterKeeper) -> Self {
        UnnumberedSegments { filters, segments: VecDeque::new() }
    }

    /// Completes a segment, except for its number.
    pub fn push(&mut self, builder: SegmentBuilder<'_>) -> Result<()> {
        let (segment, unnumbered) = builder.finish_unnumbered()?;
        self.filters.note_missing_sidecar(&segment);
        self.segments.push_back((segment, unnumbered));
        Ok(())
    }

    /// The last key of the last segment; `None` without any.
    pub fn last_key(&self) -> Option<&[u8]> {
        self.segments.back().map(|(segment, _)| segment.meta.largest.as_ref())
    }

    /// Gives all rows this number and makes it durable. The caller syncs the directory.
    pub fn number(mut self, number: Seq) -> Result<UnpublishedSegments<'a>> {
        let storage = self.filters.storage();
        let mut numbered = UnpublishedSegments::new(storage);
        while !self.segments.is_empty() {
            let mut files = Vec::new();
            for (segment, unnumbered) in self.segments.iter().take(OPEN_MAX) {
                let mut file = storage.fs.append(&storage.path_of(segment.meta.id, FileKind::Obsolete))?;
                file.append(&unnumbered.footer(number)?)?;
                files.push(file);
            }
            files.iter_mut().try_for_each(|file| file.sync())?;
            for _ in files {
                let Some((segment, unnumbered)) = self.segments.front() else { break };
                let path = |kind| storage.path_of(segment.meta.id, kind);
                storage.fs.rename(&path(FileKind::Obsolete), &path(FileKind::Segment))?;
                let meta = SegmentMeta { place: segment.meta.place, summary: unnumbered.numbered(number) };
                numbered.segments.push(LiveSegment { meta: Arc::new(meta), ..segment.clone() });
                self.segments.pop_front();
            }
        }
        Ok(numbered)
    }
}

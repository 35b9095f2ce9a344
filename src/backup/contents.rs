//! What backups copy: the files of a store, checked while they are read.

use super::progress::Counter;
use super::storage::Contents;
use crate::engine::copies::file_set::{FileSet, SegmentEntry};
use crate::error::{Error, Result};
use crate::fs::{ReadFile, read_pieces};
use crate::segment::CopyCheck;

/// A segment. It is compared with the digest that the manifest has for it, so a damaged one is never backed
/// up.
pub(super) struct SegmentContents<'a, 'p> {
    pub set: &'a FileSet,
    pub segment: &'a SegmentEntry,
    pub progress: &'a Counter<'p>,
}

impl Contents for SegmentContents<'_, '_> {
    fn read(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let SegmentContents { set, segment, progress } = self;
        progress.rewind();
        let (file, mut check) = (set.open_segment(segment)?, CopyCheck::new(segment.bytes));
        let len = file.len()?;
        if len != segment.bytes {
            let what = format!("the file has {len} bytes, but the manifest says {}", segment.bytes);
            return Err(Error::corruption(file.path(), len.min(segment.bytes), what));
        }
        read_pieces(&*file, len, &mut |piece| {
            check.update(piece);
            progress.advance(piece.len());
            each(piece)
        })?;
        let checked = check.finish(file.path(), segment.id(), segment.digest);
        // Now the check of each block, which names the offset.
        checked.map_err(|error| set.check_segment(segment).err().unwrap_or(error))
    }
}

/// A file that is open, as it is.
pub(super) struct OpenContents<'a, 'p> {
    pub file: &'a dyn ReadFile,
    pub bytes: u64,
    pub progress: &'a Counter<'p>,
}

impl Contents for OpenContents<'_, '_> {
    fn read(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.progress.rewind();
        read_pieces(self.file, self.bytes, &mut |piece| {
            self.progress.advance(piece.len());
            each(piece)
        })
    }
}

/// The log of a copy.
pub(super) struct LogContents<'a, 'p> {
    pub set: &'a FileSet,
    pub progress: &'a Counter<'p>,
}

impl Contents for LogContents<'_, '_> {
    fn read(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.progress.rewind();
        let Some(log) = &self.set.log else { return Ok(()) };
        log.read(&mut |piece| {
            self.progress.advance(piece.len());
            each(piece)
        })
    }
}

/// Bytes in memory.
pub(super) struct Bytes<'a, 'p> {
    pub bytes: &'a [u8],
    pub progress: &'a Counter<'p>,
}

impl Contents for Bytes<'_, '_> {
    fn read(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.progress.rewind();
        self.progress.advance(self.bytes.len());
        each(self.bytes)
    }
}

//! Checkpoints: a second store made of hard links, or of copies where the file system has no links.

use super::file_set::{FileSet, is_missing};
use super::new_copy::make_copy;
use crate::error::Result;
use crate::progress::{Tell, Tracker};
use std::path::Path;

impl FileSet {
    /// Links or copies the files into the new directory `target`, and writes the log.
    pub(crate) fn link_into(&self, target: &Path, progress: &mut Tell<'_>) -> Result<()> {
        let target = &*self.fs.absolute(target)?;
        let mut progress = Tracker::new(progress, Some(self.segments().map(|segment| segment.bytes).sum()));
        make_copy(&self.fs, target, self.manifest(), |copy| {
            for segment in self.segments() {
                self.with_segment(&segment, |path| copy.link_or_copy(path, &segment.name()))?;
                match copy.link_or_copy(&self.sidecar(&segment), &segment.sidecar_name()) {
                    Err(error) if is_missing(&error) => {} // The segment has none.
                    done => done?,
                }
                _ = progress.advance(segment.bytes);
            }
            match &self.log {
                Some(log) => copy.write(&log.name(), &|each| log.read(each)),
                None => Ok(()),
            }
        })?;
        progress.finish();
        Ok(())
    }
}

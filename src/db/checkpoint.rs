//! Checkpoints: a second store from hard links.

use super::core::{Core, lock};
use super::recover::LOCK;
use crate::error::{Error, Result};
use crate::fs::create_dir_durably;
use crate::id::{FileId, FileKind};
use crate::manifest::{Manifest, State};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Core {
    /// Flushes, then links the segments and sidecars into `target`. Its manifest comes last: until then it is no store.
    pub fn checkpoint(&self, target: &Path) -> Result<()> {
        if !self.options.read_only {
            self.flush()?;
        }
        if self.fs.file_len(target)?.is_some() {
            let what = format!("the checkpoint's target {} exists already", target.display());
            return Err(Error::InvalidArgument(what));
        }
        // Nothing is published meanwhile: state, files and sidecars belong together.
        let manifest = lock(&self.manifest);
        let (_, state) = manifest.as_ref().ok_or(Error::ReadOnly)?;
        create_dir_durably(&*self.fs, target)?;
        for id in state.segments.keys() {
            self.link(*id, FileKind::Segment, target)?;
            if self.fs.file_len(&self.path_of(*id, FileKind::Filter))?.is_some() {
                self.link(*id, FileKind::Filter, target)?;
            }
        }
        self.fs.create(&target.join(LOCK))?;
        let next_id = FileId(self.next_id.load(Ordering::Relaxed));
        let state = State { next_id, log_floor: next_id, ..state.clone() };
        Manifest::create(Arc::clone(&self.fs), target, &state).map(|_| ())
    }

    fn link(&self, id: FileId, kind: FileKind, target: &Path) -> Result<()> {
        self.fs.hard_link(&self.path_of(id, kind), &target.join(id.file_name(kind)))
    }
}

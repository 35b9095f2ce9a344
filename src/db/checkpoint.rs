//! Checkpoints: a second store, from hard links where the file system has them, and from copies elsewhere.

use super::inner::Inner;
use super::lock::lock;
use super::names::LOCK;
use crate::error::{Error, Result};
use crate::fs::create_dir_durably;
use crate::id::{FileId, FileKind};
use crate::manifest::{MANIFEST, MANIFEST_TMP, Manifest, ManifestState};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Bytes copied at once.
const COPY_BYTES: usize = 1 << 20;

impl Inner {
    /// Flushes, then links or copies the segments and sidecars into `target`. Its manifest comes last: until then it is no store.
    pub fn checkpoint(&self, target: &Path) -> Result<()> {
        if !self.storage.options.read_only {
            self.flush()?;
        }
        if self.storage.fs.file_len(target)?.is_some() {
            return Err(Error::AlreadyExists { path: target.to_path_buf() });
        }
        // Nothing is published meanwhile, so the view has the segments of the state. It keeps their files for as long as it is held: a
        // copy may take long, and holds up nobody.
        let (state, _held) = {
            let manifest = lock(&self.manifest);
            let (_, state) = manifest.as_ref().ok_or(Error::ReadOnly)?;
            (state.clone(), self.live())
        };
        let next_id = self.storage.next_id();
        let state = ManifestState { next_id, log_floor: next_id, log_mark: None, ..state };
        create_dir_durably(&*self.storage.fs, target)?;
        let made = self.fill_checkpoint(&state, target);
        if made.is_err() {
            self.remove_checkpoint(&state, target);
        }
        made
    }

    fn fill_checkpoint(&self, state: &ManifestState, target: &Path) -> Result<()> {
        for id in state.segments.keys() {
            self.link_or_copy_segment(*id, target)?;
            if self.storage.fs.file_len(&self.storage.path_of(*id, FileKind::Filter))?.is_some() {
                let (from, to) = (
                    self.storage.path_of(*id, FileKind::Filter),
                    target.join(id.file_name(FileKind::Filter)),
                );
                self.link_or_copy(&from, &to)?;
            }
        }
        self.storage.fs.create(&target.join(LOCK))?;
        Manifest::create(Arc::clone(&self.storage.fs), target, state).map(|_| ())
    }

    /// A compaction that ends meanwhile gives its inputs another name.
    fn link_or_copy_segment(&self, id: FileId, target: &Path) -> Result<()> {
        let [live, obsolete] =
            [FileKind::Segment, FileKind::Obsolete].map(|kind| self.storage.path_of(id, kind));
        let to = target.join(id.file_name(FileKind::Segment));
        match self.link_or_copy(&live, &to) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                self.link_or_copy(&obsolete, &to)
            }
            done => done,
        }
    }

    /// The name is as durable as the directory, the bytes are durable on return.
    fn link_or_copy(&self, from: &Path, to: &Path) -> Result<()> {
        match self.storage.fs.hard_link(from, to) {
            Err(Error::Io { source, .. }) if has_no_links(source.kind()) => self.copy(from, to),
            linked => linked,
        }
    }

    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let from = self.storage.fs.open(from)?;
        let (mut copy, len) = (self.storage.fs.create(to)?, from.len()?);
        let mut buffer = vec![0; COPY_BYTES.min(usize::try_from(len).unwrap_or(COPY_BYTES))];
        let mut at = 0;
        while at < len {
            let piece = usize::try_from(len - at).unwrap_or(usize::MAX).min(buffer.len());
            let piece = buffer.get_mut(..piece).unwrap_or_default();
            from.read_exact_at(piece, at)?;
            copy.append(piece)?;
            at += piece.len() as u64;
        }
        copy.sync()
    }

    /// Removes what a checkpoint that failed has made, so that it can be tried again. What cannot be removed stays.
    fn remove_checkpoint(&self, state: &ManifestState, target: &Path) {
        let ids = state.segments.keys();
        let files = ids.flat_map(|id| [FileKind::Segment, FileKind::Filter].map(|kind| id.file_name(kind)));
        for name in files.chain([LOCK, MANIFEST_TMP, MANIFEST].map(str::to_owned)) {
            let path = target.join(name);
            if let Ok(Some(_)) = self.storage.fs.file_len(&path) {
                let _ = self.storage.fs.remove(&path);
            }
        }
        if let Err(error) = self.storage.fs.remove_dir(target) {
            tracing::warn!(%error, "the checkpoint failed, and a part of it stays: remove it");
        }
    }
}

/// Whether a link failed because the target is on another file system, or on one without hard links, or the file has too many names.
fn has_no_links(kind: ErrorKind) -> bool {
    use ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    matches!(kind, CrossesDevices | Unsupported | PermissionDenied | TooManyLinks)
}

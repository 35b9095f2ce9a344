//! Checkpoints: a second store made of hard links, or of copies where the file system has no links.
//!
//! Whoever creates and locks the target's `LOCK` file owns the directory. So of several checkpoints to one
//! target, in any process, one succeeds; the others touch no file in it. Nobody opens an incomplete store
//! there.

use super::file_set::{FileSet, is_missing};
use crate::engine::storage::names::LOCK;
use crate::error::{Error, Result};
use crate::fs::{Fs, LockGuard, LockMode, LockedFs, create_dir_durably, open_dir};
use crate::progress::{Tell, Tracker};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Buffer size of a copy, in bytes.
const COPY_BYTES: usize = 1 << 20;

impl FileSet {
    /// Links or copies the files into the new directory `target`. The manifest comes first, under a name that
    /// neither `open` nor `repair` takes for a store. Renaming it, last, turns the directory into a store.
    pub(crate) fn link_into(&self, target: &Path, progress: &mut Tell<'_>) -> Result<()> {
        let fs = &*self.fs;
        let target = &*fs.absolute(target)?;
        if fs.file_len(target)?.is_some() {
            return Err(Error::AlreadyExists { path: target.to_path_buf() });
        }
        let claimed = create_dir_durably(fs, target).and_then(|()| claim(&self.fs, target));
        let (copy, _lock) = match claimed {
            Ok(claimed) => claimed,
            Err(error) => {
                // The directory exists even if it could not be made durable. If it is not empty, somebody
                // else owns it, and it stays.
                let _ = fs.remove_dir(target);
                return Err(error);
            }
        };
        let mut copy = Copy { fs: copy, target, created: vec![target.join(LOCK)] };
        let mut progress = Tracker::new(progress, Some(self.segments().map(|segment| segment.bytes).sum()));
        let filled = self.fill(&mut copy, &mut progress);
        if filled.is_err() {
            copy.remove_files();
            if !matches!(fs.file_len(target), Ok(None))
                && let Err(error) = fs.remove_dir(target)
            {
                tracing::warn!(%error, "cannot remove a failed checkpoint; remove it yourself");
            }
        }
        filled
    }

    fn fill(&self, copy: &mut Copy<'_>, progress: &mut Tracker<'_>) -> Result<()> {
        let [unfinished, manifest] =
            [Self::MANIFEST_OF_COPY, Self::MANIFEST].map(|name| copy.target.join(name));
        copy.write(&unfinished, self.manifest())?;
        copy.fs.sync_dir(copy.target)?;
        for segment in self.segments() {
            self.with_segment(&segment, |path| copy.link_or_copy(path, &segment.name()))?;
            match copy.link_or_copy(&self.sidecar(&segment), &segment.sidecar_name()) {
                Err(error) if is_missing(&error) => {} // The segment has none.
                done => done?,
            }
            _ = progress.advance(segment.bytes);
        }
        // After a power cut, a manifest without its files would look like a damaged store.
        copy.fs.sync_dir(copy.target)?;
        copy.created.push(manifest.clone());
        copy.fs.rename(&unfinished, &manifest)?;
        copy.fs.sync_dir(copy.target)?;
        progress.finish();
        Ok(())
    }
}

/// Makes the caller the owner of the new directory, or fails if somebody else came first. Returns a handle of
/// the directory that also reaches the store's.
fn claim(fs: &Arc<dyn Fs>, target: &Path) -> Result<(Arc<dyn Fs>, Box<dyn LockGuard>)> {
    let fs = open_dir(fs, target)?;
    let path = target.join(LOCK);
    match fs.create(&path) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {
            return Err(Error::AlreadyExists { path: target.to_path_buf() });
        }
        created => created.map(drop)?,
    }
    let locked = fs.lock(&path, LockMode::Exclusive);
    if let Err(error @ Error::Locked { .. }) = locked {
        return Err(error); // Somebody else has it now.
    }
    let checked = locked.and_then(|lock| match &*fs.list(target)? {
        [only] if only == LOCK => Ok((LockedFs::wrap(Arc::clone(&fs), target, LOCK, &*lock), lock)),
        _ => Err(Error::AlreadyExists { path: target.to_path_buf() }),
    });
    checked.inspect_err(|_| {
        let _ = fs.remove(&path);
    })
}

/// A checkpoint that is being written.
struct Copy<'a> {
    /// Also reaches the store's directory.
    fs: Arc<dyn Fs>,
    target: &'a Path,
    /// The files created so far, or about to be.
    created: Vec<PathBuf>,
}

impl Copy<'_> {
    /// Removes the files of a failed checkpoint, as far as possible, so that the caller can try again. The
    /// lock file was created first and is removed last: until then, nobody else takes the directory.
    fn remove_files(&self) {
        for path in self.created.iter().rev() {
            if let Ok(Some(_)) = self.fs.file_len(path) {
                let _ = self.fs.remove(path);
            }
        }
    }

    /// As durable as after [`link_or_copy`](Self::link_or_copy).
    fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = self.fs.create(path)?;
        self.created.push(path.to_path_buf());
        file.append(bytes)?;
        file.sync()
    }

    /// On return the bytes are durable; the name is as durable as its directory.
    fn link_or_copy(&mut self, from: &Path, name: &str) -> Result<()> {
        let to = self.target.join(name);
        match self.fs.hard_link(from, &to) {
            Err(Error::Io { source, .. }) if has_no_links(source.kind()) => self.copy(from, to),
            linked => linked.map(|()| self.created.push(to)),
        }
    }

    fn copy(&mut self, from: &Path, to: PathBuf) -> Result<()> {
        let from = self.fs.open(from)?;
        let mut copy = self.fs.create(&to)?;
        self.created.push(to);
        let len = from.len()?;
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
}

/// Whether a link failed for a reason that a copy avoids: another file system, no hard links, too many names.
fn has_no_links(kind: ErrorKind) -> bool {
    use ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    matches!(kind, CrossesDevices | Unsupported | PermissionDenied | TooManyLinks)
}

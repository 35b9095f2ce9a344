//! A directory that becomes a store once all of its files are there.
//!
//! Whoever creates and locks the target's `LOCK` file owns the directory. So of several copies to one target,
//! in any process, one succeeds; the others touch no file in it. Nobody opens an incomplete store there.

use crate::engine::storage::names::{LOCK, MANIFEST_OF_COPY};
use crate::error::{Error, Result};
use crate::fs::{Fs, LockGuard, LockMode, LockedFs, create_dir_durably, open_dir, read_pieces};
use crate::manifest::MANIFEST;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Passes the pieces of a file to the function that it is given.
pub(crate) type Pieces<'a> = dyn Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a;

/// A copy that is being written.
pub(crate) struct NewCopy<'a> {
    /// Also reaches the original's directory.
    fs: Arc<dyn Fs>,
    target: &'a Path,
    /// The files created so far, or about to be.
    created: Vec<PathBuf>,
}

/// Makes a store of a manifest and of the files that `fill` adds, in the new directory `target`. The manifest
/// comes first, under a name that neither `open` nor `repair` takes for a store. Renaming it, last, turns the
/// directory into a store. After an error, what was created is removed.
pub(crate) fn make_copy(
    fs: &Arc<dyn Fs>,
    target: &Path,
    manifest: &[u8],
    fill: impl FnOnce(&mut NewCopy<'_>) -> Result<()>,
) -> Result<()> {
    if fs.file_len(target)?.is_some() {
        return Err(Error::AlreadyExists { path: target.to_path_buf() });
    }
    let claimed = create_dir_durably(&**fs, target).and_then(|()| claim(fs, target));
    let (locked, _lock) = match claimed {
        Ok(claimed) => claimed,
        Err(error) => {
            // The directory exists even if it could not be made durable. If it is not empty, somebody else
            // owns it, and it stays.
            let _ = fs.remove_dir(target);
            return Err(error);
        }
    };
    let mut copy = NewCopy { fs: locked, target, created: vec![target.join(LOCK)] };
    let made = copy.begin(manifest).and_then(|()| fill(&mut copy)).and_then(|()| copy.complete());
    if made.is_err() {
        copy.remove_files();
        if !matches!(fs.file_len(target), Ok(None))
            && let Err(error) = fs.remove_dir(target)
        {
            tracing::warn!(%error, "cannot remove a failed copy of a store; remove it yourself");
        }
    }
    made
}

/// Makes the caller the owner of the new directory, or fails if somebody else came first. Returns a handle of
/// the directory that also reaches the original's.
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

impl NewCopy<'_> {
    fn begin(&mut self, manifest: &[u8]) -> Result<()> {
        self.write(MANIFEST_OF_COPY, &|each| each(manifest))?;
        self.fs.sync_dir(self.target)
    }

    fn complete(&mut self) -> Result<()> {
        // After a power cut, a manifest without its files would look like a damaged store.
        self.fs.sync_dir(self.target)?;
        let [unfinished, manifest] = [MANIFEST_OF_COPY, MANIFEST].map(|name| self.target.join(name));
        self.created.push(manifest.clone());
        self.fs.rename(&unfinished, &manifest)?;
        self.fs.sync_dir(self.target)
    }

    /// Removes the files of a failed copy, as far as possible, so that the caller can try again. The lock
    /// file was created first and is removed last: until then, nobody else takes the directory.
    fn remove_files(&self) {
        for path in self.created.iter().rev() {
            if let Ok(Some(_)) = self.fs.file_len(path) {
                let _ = self.fs.remove(path);
            }
        }
    }

    /// Writes a file. On return the bytes are durable; the name is as durable as its directory.
    pub fn write(&mut self, name: &str, read: &Pieces<'_>) -> Result<()> {
        let path = self.target.join(name);
        let mut file = self.fs.create(&path)?;
        self.created.push(path);
        read(&mut |piece| file.append(piece))?;
        file.sync()
    }

    /// Removes a file that was written in vain.
    pub fn remove(&mut self, name: &str) -> Result<()> {
        self.fs.remove(&self.target.join(name))
    }

    /// Links a file, or copies it. As durable as after [`write`](Self::write).
    pub fn link_or_copy(&mut self, from: &Path, name: &str) -> Result<()> {
        let to = self.target.join(name);
        match self.fs.hard_link(from, &to) {
            Err(Error::Io { source, .. }) if has_no_links(source.kind()) => self.copy(from, name),
            linked => linked.map(|()| self.created.push(to)),
        }
    }

    fn copy(&mut self, from: &Path, name: &str) -> Result<()> {
        let from = self.fs.open(from)?;
        self.write(name, &|each| read_pieces(&*from, from.len()?, each))
    }
}

/// Whether a link failed for a reason that a copy avoids: another file system, no hard links, too many names.
fn has_no_links(kind: ErrorKind) -> bool {
    use ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    matches!(kind, CrossesDevices | Unsupported | PermissionDenied | TooManyLinks)
}

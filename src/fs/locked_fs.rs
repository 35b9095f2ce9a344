//! A file system for the owner of a locked directory (I13).
//!
//! A lock belongs to a file, not to its name. If the lock file of an open store is removed, another process
//! can create and lock a new one, and both believe that they are alone. So before anything in the directory
//! is created, removed, renamed or made durable, the lock file must still be the one that was locked. That
//! costs one stat call. Appending to an open file needs no check: nothing counts as durable before a sync.

use super::file::{AppendFile, ReadFile};
use super::map::Map;
use super::traits::{Fs, LockGuard, LockMode, ReaderLocks, Stamp};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file system that changes a directory only while the lock on it holds. Checks nothing outside it.
#[derive(Debug, Clone)]
pub struct LockedFs {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    lock: Arc<LockFile>,
}

/// How often to check the lock file before an error counts. A failed read is not a failed write, but a store
/// that cannot find out whether its lock holds has to stop.
const LOOKS: usize = 3;

/// The lock file, as locked.
#[derive(Debug)]
struct LockFile {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    /// Its [`Stamp::file`].
    file: u64,
}

impl LockFile {
    fn check(&self) -> Result<()> {
        let look = || self.fs.stamp(&self.path);
        match (1..LOOKS).find_map(|_| look().ok()).map_or_else(look, Ok)? {
            Some(stamp) if stamp.file == self.file => Ok(()),
            _ => Err(Error::LockLost { path: self.path.clone() }),
        }
    }
}

impl LockedFs {
    /// Wraps `fs`; `guard` holds the lock on the file `lock` in the directory `dir`. The directory must not
    /// be changed through `fs` directly.
    pub fn wrap(fs: Arc<dyn Fs>, dir: &Path, lock: &str, guard: &dyn LockGuard) -> Arc<dyn Fs> {
        let Some(file) = guard.file() else { return fs };
        let lock = Arc::new(LockFile { fs: Arc::clone(&fs), path: dir.join(lock), file });
        Arc::new(LockedFs { fs, dir: dir.to_path_buf(), lock })
    }

    fn check(&self, path: &Path) -> Result<()> {
        if path.starts_with(&self.dir) { self.lock.check() } else { Ok(()) }
    }

    /// The outcome of creating a file. If it failed, the next owner of the lock may have created that file.
    fn created(&self, path: &Path, outcome: Result<Box<dyn AppendFile>>) -> Result<Box<dyn AppendFile>> {
        match outcome {
            Ok(file) => Ok(self.checked(path, file)),
            Err(error) => match self.check(path) {
                Err(lost @ Error::LockLost { .. }) => Err(lost),
                _ => Err(error),
            },
        }
    }

    fn checked(&self, path: &Path, file: Box<dyn AppendFile>) -> Box<dyn AppendFile> {
        if path.starts_with(&self.dir) {
            Box::new(LockedFile { file, lock: Arc::clone(&self.lock) })
        } else {
            file
        }
    }
}

/// A file in the locked directory.
#[derive(Debug)]
struct LockedFile {
    file: Box<dyn AppendFile>,
    lock: Arc<LockFile>,
}

impl AppendFile for LockedFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes)
    }

    fn sync(&mut self) -> Result<()> {
        self.lock.check()?;
        self.file.sync()
    }
}

impl Fs for LockedFs {
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.check(path)?;
        self.created(path, self.fs.create(path))
    }

    fn create_private(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.check(path)?;
        self.created(path, self.fs.create_private(path))
    }

    fn append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.check(path)?;
        Ok(self.checked(path, self.fs.append(path)?))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.check(path)?;
        self.fs.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.check(if from.starts_with(&self.dir) { from } else { to })?;
        self.fs.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.check(path)?;
        self.fs.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.check(path)?;
        self.fs.remove_dir(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.check(to)?;
        self.fs.hard_link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.check(dir)?;
        self.fs.sync_dir(dir)
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        self.fs.absolute(path)
    }

    /// A directory within this one may have its own lock.
    fn open_dir(&self, path: &Path) -> Result<Option<Arc<dyn Fs>>> {
        self.fs.open_dir(path)
    }

    fn with_mode(&self, mode: u32) -> Option<Arc<dyn Fs>> {
        let fs = self.fs.with_mode(mode)?;
        Some(Arc::new(LockedFs { fs, ..self.clone() }))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.fs.list(dir)
    }

    fn file_len(&self, path: &Path) -> Result<Option<u64>> {
        self.fs.file_len(path)
    }

    fn stamp(&self, path: &Path) -> Result<Option<Stamp>> {
        self.fs.stamp(path)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.fs.open(path)
    }

    unsafe fn map(&self, path: &Path) -> Result<Map> {
        // SAFETY: the caller makes the same promise.
        unsafe { self.fs.map(path) }
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>> {
        self.fs.lock(path, mode)
    }

    fn reader_locks(&self, path: &Path) -> Result<Option<Box<dyn ReaderLocks>>> {
        self.fs.reader_locks(path)
    }
}

//! The file system of an open store: frees descriptors when needed, changes nothing in a forked process.

use super::file::{AppendFile, ReadFile};
use super::map::Map;
use super::process::{Process, ProcessFile};
use super::traits::{Fs, LockGuard, LockMode, ReaderLocks, Stamp};
use crate::error::Result;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A holder of reclaimable descriptors.
pub trait Reclaim: Send + Sync + Debug {
    /// Closes some descriptors; `false` if none is left to close.
    fn close_some(&self) -> bool;
}

/// Runs an operation that needs a descriptor. If it fails for lack of one, it has changed nothing, and is
/// retried as long as `holder` can close some.
pub fn with_descriptor<T>(holder: &dyn Reclaim, operation: impl Fn() -> Result<T>) -> Result<T> {
    loop {
        match operation() {
            Err(error) if error.is_out_of_descriptors() && holder.close_some() => {}
            outcome => return outcome,
        }
    }
}

/// Wraps a file system and runs every operation that needs a descriptor in [`with_descriptor`]. In a forked
/// process, every operation that changes something fails with [`Error::Forked`](crate::Error::Forked).
#[derive(Debug)]
pub struct StoreFs {
    /// The wrapped file system.
    pub fs: Arc<dyn Fs>,
    /// Closes descriptors on demand.
    pub holder: Arc<dyn Reclaim>,
    /// The process that may change files.
    pub process: Process,
}

impl StoreFs {
    fn with_descriptor<T>(&self, operation: impl Fn(&dyn Fs) -> Result<T>) -> Result<T> {
        with_descriptor(&*self.holder, || operation(&*self.fs))
    }

    /// The file system, for an operation that changes something.
    fn own(&self) -> Result<&dyn Fs> {
        self.process.check()?;
        Ok(&*self.fs)
    }

    fn open_own(&self, open: impl Fn(&dyn Fs) -> Result<Box<dyn AppendFile>>) -> Result<Box<dyn AppendFile>> {
        self.own()?;
        Ok(Box::new(ProcessFile::new(self.with_descriptor(open)?, self.process)))
    }
}

impl Fs for StoreFs {
    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        self.fs.absolute(path)
    }

    fn open_dir(&self, path: &Path) -> Result<Option<Arc<dyn Fs>>> {
        let opened = self.with_descriptor(|fs| fs.open_dir(path))?;
        Ok(opened
            .map(|fs| Arc::new(StoreFs { fs, holder: Arc::clone(&self.holder), process: self.process }) as _))
    }

    fn with_mode(&self, mode: u32) -> Option<Arc<dyn Fs>> {
        let fs = self.fs.with_mode(mode)?;
        Some(Arc::new(StoreFs { fs, holder: Arc::clone(&self.holder), process: self.process }))
    }

    fn create_private(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.open_own(|fs| fs.create_private(path))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.with_descriptor(|fs| fs.list(dir))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.open_own(|fs| fs.create(path))
    }

    fn append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.open_own(|fs| fs.append(path))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.with_descriptor(|fs| fs.open(path))
    }

    unsafe fn map(&self, path: &Path) -> Result<Map> {
        // SAFETY: the caller makes the same promise.
        self.with_descriptor(|fs| unsafe { fs.map(path) })
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.own()?;
        self.with_descriptor(|fs| fs.sync_dir(dir))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>> {
        self.own()?;
        self.with_descriptor(|fs| fs.lock(path, mode))
    }

    fn reader_locks(&self, path: &Path) -> Result<Option<Box<dyn ReaderLocks>>> {
        self.with_descriptor(|fs| fs.reader_locks(path))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.own()?.create_dir(path)
    }

    fn stamp(&self, path: &Path) -> Result<Option<Stamp>> {
        self.fs.stamp(path)
    }

    fn file_len(&self, path: &Path) -> Result<Option<u64>> {
        self.fs.file_len(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.own()?.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.own()?.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.own()?.remove_dir(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.own()?.hard_link(from, to)
    }
}

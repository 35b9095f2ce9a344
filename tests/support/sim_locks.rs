//! Locks held on a simulated disk.

use super::disk::{File, Holder};
use super::faults::OpKind;
use super::sim_fs::SimFs;
use sidebloom::Result;
use sidebloom::fs::{LockGuard, ReaderLocks};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Distinguishes the openings of [`VersionLocks`].
static OPENINGS: AtomicU64 = AtomicU64::new(0);

/// Versions that one opening of a lock file holds.
#[derive(Debug)]
pub struct VersionLocks {
    fs: SimFs,
    path: PathBuf,
    file: Arc<File>,
    opening: u64,
}

impl VersionLocks {
    pub fn new(fs: SimFs, path: PathBuf, file: Arc<File>) -> Self {
        VersionLocks { fs, path, file, opening: OPENINGS.fetch_add(1, Ordering::Relaxed) }
    }
}

impl ReaderLocks for VersionLocks {
    fn hold(&self, version: u64) -> Result<()> {
        let held = (self.file.number, self.opening, version);
        self.fs.begin(OpKind::Lock, &self.path)?.held_versions.insert(held);
        Ok(())
    }

    fn release(&self, version: u64) {
        self.fs.disk().held_versions.remove(&(self.file.number, self.opening, version));
    }

    fn lowest_held(&self) -> Result<Option<u64>> {
        let disk = self.fs.begin(OpKind::Lock, &self.path)?;
        let is_other =
            |(file, opening, _): &&(u64, u64, u64)| *file == self.file.number && *opening != self.opening;
        Ok(disk.held_versions.iter().filter(is_other).map(|(_, _, held)| *held).min())
    }
}

impl Drop for VersionLocks {
    fn drop(&mut self) {
        self.fs.disk().held_versions.retain(|(_, opening, _)| *opening != self.opening);
    }
}

#[derive(Debug)]
pub struct Lock {
    fs: SimFs,
    file: Arc<File>,
}

impl Lock {
    /// A lock that was just taken.
    pub fn new(fs: SimFs, file: Arc<File>) -> Self {
        Lock { fs, file }
    }
}

impl LockGuard for Lock {
    fn file(&self) -> Option<u64> {
        Some(self.file.number)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut disk = self.fs.disk();
        match disk.locks.remove(&self.file.number) {
            Some(Holder::Shared(n)) if n > 1 => {
                disk.locks.insert(self.file.number, Holder::Shared(n - 1));
            }
            _ => {}
        }
    }
}

//! Locks that are held on a simulated disk.

use super::disk::Holder;
use super::faults::OpKind;
use super::sim_fs::SimFs;
use sidebloom::Result;
use sidebloom::fs::{LockGuard, ReaderLocks};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells the openings of [`VersionLocks`] apart.
static OPENINGS: AtomicU64 = AtomicU64::new(0);

/// Versions that one opening of a lock file holds.
#[derive(Debug)]
pub struct VersionLocks {
    fs: SimFs,
    path: PathBuf,
    opening: u64,
}

impl VersionLocks {
    pub fn new(fs: SimFs, path: PathBuf) -> Self {
        VersionLocks { fs, path, opening: OPENINGS.fetch_add(1, Ordering::Relaxed) }
    }
}

impl ReaderLocks for VersionLocks {
    fn hold(&self, version: u64) -> Result<()> {
        let held = (self.path.clone(), self.opening, version);
        self.fs.begin(OpKind::Lock, &self.path)?.held_versions.insert(held);
        Ok(())
    }

    fn release(&self, version: u64) {
        self.fs.disk().held_versions.remove(&(self.path.clone(), self.opening, version));
    }

    fn held_below(&self, version: u64) -> Result<bool> {
        let disk = self.fs.begin(OpKind::Lock, &self.path)?;
        let is_below = |(path, opening, held): &(PathBuf, u64, u64)| {
            *path == self.path && *opening != self.opening && *held < version
        };
        Ok(disk.held_versions.iter().any(is_below))
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
    path: PathBuf,
}

impl Lock {
    /// A lock that was just taken.
    pub fn new(fs: SimFs, path: &Path) -> Self {
        Lock { fs, path: path.to_path_buf() }
    }
}

impl LockGuard for Lock {}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut disk = self.fs.disk();
        match disk.locks.remove(&self.path) {
            Some(Holder::Shared(n)) if n > 1 => {
                disk.locks.insert(self.path.clone(), Holder::Shared(n - 1));
            }
            _ => {}
        }
    }
}

//! The versions of a store that this process reads while another one writes.
//!
//! A version is a state of the manifest, numbered by its next file number. That rises with every edit, and
//! with every rewrite after a failed edit, so no two states that another process can read share a number. The
//! writer removes a segment's files only if nobody holds a version below the first one without the segment
//! ([`ReaderLocks`]). So whoever holds a version can read its files, and those of all later versions.

use crate::error::Result;
use crate::fs::{Fs, Process, ReaderLocks};
use crate::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The versions that one open store holds.
pub(crate) struct Versions {
    locks: Box<dyn ReaderLocks>,
    /// The process that holds them. A forked process shares the locks, so it must not release them.
    process: Process,
    /// The locked file.
    pub file: Option<u64>,
    /// The path of that file, and what finds it by this path.
    path: PathBuf,
    named: Arc<dyn Fs>,
    /// The number of [`HeldVersion`]s of each version.
    held: Mutex<BTreeMap<u64, usize>>,
}

impl Versions {
    /// `file` is the [`Stamp::file`](crate::fs::Stamp::file) of the locked file; `named` finds it at `path`.
    pub fn new(
        locks: Box<dyn ReaderLocks>,
        file: Option<u64>,
        named: Arc<dyn Fs>,
        path: PathBuf,
    ) -> Arc<Self> {
        Arc::new(Versions { locks, process: Process::current(), file, path, named, held: Mutex::default() })
    }

    /// Whether another store has replaced the opened one at its path. A store that only moved is followed.
    pub fn is_replaced(&self) -> Result<bool> {
        let found = self.named.stamp(&self.path)?.map(|stamp| stamp.file);
        Ok(found.is_some() && found != self.file)
    }

    /// Holds a version until the result is dropped. Version 0 is older than all others.
    pub fn hold(self: &Arc<Self>, version: u64) -> Result<Arc<HeldVersion>> {
        let mut held = lock(&self.held);
        self.locks.hold(version)?;
        *held.entry(version).or_default() += 1;
        Ok(Arc::new(HeldVersion { versions: Arc::clone(self), version }))
    }

    /// Gives up a forked process's share of the locks. The parent keeps them.
    pub fn abandon(&self) {
        self.locks.abandon();
    }
}

/// A version that is held.
pub(crate) struct HeldVersion {
    versions: Arc<Versions>,
    version: u64,
}

impl Drop for HeldVersion {
    fn drop(&mut self) {
        if !self.versions.process.is_current() {
            return;
        }
        let mut held = lock(&self.versions.held);
        let holders = held.entry(self.version).or_default();
        *holders = holders.saturating_sub(1);
        if *holders == 0 {
            held.remove(&self.version);
            self.versions.locks.release(self.version);
        }
    }
}

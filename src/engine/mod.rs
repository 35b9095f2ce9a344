//! The store behind [`Db`](crate::Db). `read` serves a get; a put passes `write`, and later `compact`.

pub(crate) mod backoff;
pub(crate) mod clock;
pub(crate) mod compact;
pub(crate) mod control;
pub(crate) mod copies;
pub(crate) mod events;
pub(crate) mod failure;
pub(crate) mod filters;
pub(crate) mod follow;
pub(crate) mod keyspaces;
pub(crate) mod latency;
pub(crate) mod metrics;
pub(crate) mod open;
pub(crate) mod publish;
pub(crate) mod quarantine;
pub(crate) mod read;
pub(crate) mod repair;
pub(crate) mod shared;
pub(crate) mod storage;
pub(crate) mod tasks;
pub(crate) mod transaction;
pub(crate) mod unsynced_logs;
pub(crate) mod verify;
pub(crate) mod write;

#[cfg(test)]
mod hostile_tests;

use self::compact::Compactor;
use self::copies::file_set::{FileSet, file_set};
use self::copies::from_outside::file_set_from_outside;
use self::filters::FilterKeeper;
use self::follow::Follower;
use self::follow::read_position::Following;
use self::publish::Publisher;
use self::shared::Shared;
use self::write::Writer;
use self::write::log::InheritedLogs;
use crate::bounds::{KeyRange, is_empty};
use crate::error::Result;
use crate::manifest::{Manifest, ManifestState};
use crate::progress::Tell;
use std::path::Path;
use std::sync::Arc;

/// The parts of an open store. Each has its own state; what they share is in [`Shared`].
pub(crate) struct Engine {
    pub shared: Arc<Shared>,
    pub publisher: Arc<Publisher>,
    pub filters: Arc<FilterKeeper>,
    pub writer: Writer,
    pub compactor: Compactor,
    /// Only in a store that another process writes.
    pub follower: Option<Follower>,
}

impl Engine {
    /// Puts the parts together. Without a manifest and logs, the store is read-only.
    pub fn new(shared: Shared, writable: Option<Writable>, following: Option<Following>) -> Self {
        let shared = Arc::new(shared);
        let (manifest, logs) = writable.map(|its| ((its.manifest, its.state), its.logs)).unzip();
        let publisher = Arc::new(Publisher::new(Arc::clone(&shared), manifest));
        let filters = Arc::new(FilterKeeper::new(Arc::clone(&shared), Arc::clone(&publisher)));
        let writer = Writer::new(Arc::clone(&shared), Arc::clone(&publisher), Arc::clone(&filters), logs);
        let compactor = Compactor::new(Arc::clone(&shared), Arc::clone(&publisher), Arc::clone(&filters));
        let follower = following.map(|its| Follower::new(Arc::clone(&shared), Arc::clone(&filters), its));
        Engine { shared, publisher, filters, writer, compactor, follower }
    }

    /// Flushes, then compacts the segments with keys in the range. An empty range does nothing.
    pub fn compact_range(&self, range: KeyRange, progress: &mut Tell<'_>) -> Result<()> {
        if is_empty(&range) {
            return self.shared.check_writable();
        }
        let newest = self.shared.visible();
        self.writer.flush()?;
        self.compactor.compact_range(range, newest, progress)
    }

    /// Makes a copy of the store in a new directory.
    pub fn checkpoint(&self, target: &Path, progress: &mut Tell<'_>) -> Result<()> {
        self.files_to_copy()?.link_into(target, progress)
    }

    /// The files of everything written so far, for a copy: what was not flushed yet is flushed, or, if
    /// another process writes the store, in the set's log.
    pub fn files_to_copy(&self) -> Result<FileSet> {
        let storage = &self.shared.storage;
        match &self.follower {
            Some(follower) => file_set_from_outside(storage, Some(&follower.following().versions)),
            None if storage.options.read_only => file_set_from_outside(storage, None),
            None => self.file_set(),
        }
    }

    /// Flushes everything written so far and returns the files that hold it.
    pub fn file_set(&self) -> Result<FileSet> {
        self.writer.flush()?;
        file_set(&self.publisher)
    }
}

/// The parts that only a writable store has.
pub(crate) struct Writable {
    pub logs: InheritedLogs,
    pub manifest: Manifest,
    pub state: ManifestState,
}

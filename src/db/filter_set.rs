//! The filters of one moment, to be copied elsewhere.

use super::handle::Db;
use super::inner::Inner;
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::manifest::{LiveSet, ManifestState, encode_snapshot};
use crate::sync::lock;
use std::path::PathBuf;
use std::sync::Arc;

/// Everything that was written before, as filters. While it exists, their files do.
#[derive(Clone)]
pub(crate) struct FilterSet {
    /// The contents of a manifest of these segments alone, without logs.
    pub manifest: Vec<u8>,
    /// Each segment with the path of its sidecar.
    pub sidecars: Vec<(FileId, PathBuf)>,
    /// Keeps them.
    _live: Arc<LiveSet>,
}

impl Db {
    /// Flushes, and takes the filters of everything written before.
    pub(crate) fn filter_set(&self) -> Result<FilterSet> {
        self.inner().filter_set()
    }
}

impl Inner {
    fn filter_set(&self) -> Result<FilterSet> {
        self.flush()?;
        // Under this lock nothing is published, so the live set has exactly the segments of the state.
        let manifest = lock(&self.manifest);
        let (_, state) = manifest.as_ref().ok_or(Error::ReadOnly)?;
        let next_id = self.storage.next_id();
        let snapshot = ManifestState { next_id, log_floor: next_id, log_mark: None, ..state.clone() };
        let sidecar = |id: &FileId| (*id, self.storage.path_of(*id, FileKind::Filter));
        Ok(FilterSet {
            manifest: encode_snapshot(&snapshot)?,
            sidecars: state.segments.keys().map(sidecar).collect(),
            _live: self.live(),
        })
    }
}

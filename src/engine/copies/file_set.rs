//! The files of a store at one moment, to be copied elsewhere while the store stays in use.

use crate::engine::publish::Publisher;
use crate::error::{Error, Result};
use crate::fs::{Fs, ReadFile};
use crate::id::{FileId, FileKind};
use crate::live::LiveSet;
use crate::manifest::{ManifestState, encode_snapshot};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A store's segments and sidecars at one moment, and their manifest. The files stay while this exists.
///
/// To make a store, write the manifest to a directory under the name [`MANIFEST`](Self::MANIFEST), the files
/// under their own names, and an empty file `LOCK`.
pub struct FileSet {
    pub(super) fs: Arc<dyn Fs>,
    dir: PathBuf,
    store_id: u64,
    version: u64,
    manifest: Vec<u8>,
    live: Arc<LiveSet>,
}

/// A segment of a [`FileSet`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentEntry {
    id: FileId,
    /// The segment's own digest.
    pub digest: u64,
    /// The length of its file, in bytes.
    pub bytes: u64,
    /// The offset where its data blocks end, in bytes. From there on, the file holds its indexes and what is
    /// needed to open it.
    pub tail_at: u64,
}

impl SegmentEntry {
    /// Its number, which the store uses for no other segment.
    pub fn number(&self) -> u64 {
        self.id.0
    }

    /// The name of its file.
    pub fn name(&self) -> String {
        self.id.file_name(FileKind::Segment)
    }

    /// The name of its sidecar.
    pub fn sidecar_name(&self) -> String {
        self.id.file_name(FileKind::Filter)
    }
}

impl FileSet {
    /// The name of the manifest.
    pub const MANIFEST: &str = crate::manifest::MANIFEST;

    /// An incomplete copy's manifest. It is the first file in its directory, so neither `open` nor `repair`
    /// takes the directory for a store. Renaming it to [`MANIFEST`](Self::MANIFEST) completes the copy.
    pub const MANIFEST_OF_COPY: &str = crate::engine::storage::names::MANIFEST_OF_COPY;

    /// Refuses a directory with such a copy.
    ///
    /// # Errors
    /// [`Error::Locked`] while the copy is made, [`Error::NotAStore`] if it is incomplete, and [`Error::Io`].
    pub fn refuse_unfinished_copy(fs: &dyn Fs, dir: &Path) -> Result<()> {
        crate::engine::storage::names::refuse_unfinished_copy(fs, dir, &fs.list(dir)?)
    }

    /// The directory of the store.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Identifies the store; its copies have the same number.
    pub fn store_id(&self) -> u64 {
        self.store_id
    }

    /// Rises whenever segments are added or removed: sets with the same number have the same segments.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The contents of the manifest.
    pub fn manifest(&self) -> &[u8] {
        &self.manifest
    }

    /// The segments.
    pub fn segments(&self) -> impl Iterator<Item = SegmentEntry> + '_ {
        self.live.segments().map(|s| SegmentEntry {
            id: s.meta.id,
            digest: s.meta.digest,
            bytes: s.meta.file_bytes,
            tail_at: s.meta.data_bytes,
        })
    }

    /// Opens a segment.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open_segment(&self, segment: &SegmentEntry) -> Result<Arc<dyn ReadFile>> {
        self.with_segment(segment, |path| self.fs.open(path))
    }

    /// Opens the sidecar of a segment; `None` if it has none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open_sidecar(&self, segment: &SegmentEntry) -> Result<Option<Arc<dyn ReadFile>>> {
        match self.fs.open(&self.sidecar(segment)) {
            Err(error) if is_missing(&error) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Acts on the file of a segment, which a compaction may have renamed.
    pub(super) fn with_segment<T>(
        &self,
        segment: &SegmentEntry,
        mut act: impl FnMut(&Path) -> Result<T>,
    ) -> Result<T> {
        match act(&self.path(segment, FileKind::Segment)) {
            Err(error) if is_missing(&error) => act(&self.path(segment, FileKind::Obsolete)),
            done => done,
        }
    }

    pub(super) fn sidecar(&self, segment: &SegmentEntry) -> PathBuf {
        self.path(segment, FileKind::Filter)
    }

    fn path(&self, segment: &SegmentEntry, kind: FileKind) -> PathBuf {
        self.dir.join(segment.id.file_name(kind))
    }
}

pub(super) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

/// The files of what was flushed.
pub(crate) fn file_set(publisher: &Publisher) -> Result<FileSet> {
    let shared = publisher.shared();
    // Nothing is published under this lock, so the view has the state's segments and keeps their files.
    let (state, live) = publisher.with_state(|state| (state.clone(), shared.live()))?;
    // The logs are not part of the set, and segments have everything up to the last number. File numbers
    // taken since do not count: the next process may take them again, and the version with them.
    let time = shared.storage.clock.shown().unwrap_or_default().max(state.time);
    let state = ManifestState { log_floor: state.next_id, log_mark: None, time, ..state };
    Ok(FileSet {
        fs: Arc::clone(&shared.storage.fs),
        dir: shared.storage.dir.clone(),
        store_id: shared.storage.header.store_id,
        version: state.next_id.0,
        manifest: encode_snapshot(&state)?,
        live,
    })
}

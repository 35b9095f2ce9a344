//! The files of a store at one moment, to be copied elsewhere while the store stays in use.

use super::copied_log::CopiedLog;
use crate::engine::follow::versions::HeldVersion;
use crate::engine::publish::Publisher;
use crate::engine::storage::Storage;
use crate::error::{Error, Result};
use crate::fs::{Fs, ReadFile};
use crate::id::{FileId, FileKind};
use crate::live::LiveSet;
use crate::manifest::{ManifestState, SegmentMeta, encode_snapshot};
use crate::segment::OpenFiles;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes at the beginning of a sidecar that identify its filter: they include its segment's digest.
const SIDECAR_HEAD_BYTES: u64 = 4096;

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
    segments: Vec<SegmentMeta>,
    /// What segments do not have yet; never in a set that [`Db::file_set`](crate::Db::file_set) returns.
    pub(crate) log: Option<CopiedLog>,
    opened: Arc<OpenFiles>,
    _kept: Kept,
}

/// What keeps the files.
pub(crate) enum Kept {
    /// In the process that writes the store.
    Live { _live: Arc<LiveSet> },
    /// In one that follows it; `None` if a lock keeps writers away.
    Version(#[expect(dead_code, reason = "held until it is dropped")] Option<Arc<HeldVersion>>),
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

    pub(crate) fn id(&self) -> FileId {
        self.id
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
        self.segments.iter().map(|meta| SegmentEntry {
            id: meta.id,
            digest: meta.digest,
            bytes: meta.file_bytes,
            tail_at: meta.data_bytes,
        })
    }

    /// The files of a state, and a log that continues it.
    pub(super) fn new(
        storage: &Storage,
        state: ManifestState,
        log: Option<CopiedLog>,
        kept: Kept,
    ) -> Result<Self> {
        let time = storage.clock.shown().unwrap_or_default().max(state.time);
        let version = state.next_id.0;
        let (log_floor, mut next_id) = (state.next_id, state.next_id);
        if let Some(log) = &log {
            next_id = FileId(log.id().0.saturating_add(1));
        }
        let state =
            ManifestState { log_floor, next_id, log_mark: log.as_ref().map(CopiedLog::mark), time, ..state };
        Ok(FileSet {
            fs: Arc::clone(&storage.fs),
            dir: storage.dir.clone(),
            store_id: storage.header.store_id,
            version,
            manifest: encode_snapshot(&state)?,
            segments: state.segments.into_values().collect(),
            log,
            opened: Arc::clone(&storage.files),
            _kept: kept,
        })
    }

    /// Entries of the segments, those that others hide included, and operations in the log.
    pub(crate) fn entries(&self) -> u64 {
        let in_log = self.log.as_ref().map_or(0, |log| log.operations);
        self.segments.iter().map(|meta| meta.entries).fold(in_log, u64::saturating_add)
    }

    /// The path of a segment in quarantine, if there is one.
    pub(crate) fn quarantined(&self) -> Option<PathBuf> {
        let found = self.segments.iter().find(|meta| meta.place.quarantine().is_some());
        found.map(|meta| self.dir.join(meta.id.file_name(FileKind::Segment)))
    }

    /// Reads a whole segment and looks for damage, to name the block that has it.
    pub(crate) fn check_segment(&self, segment: &SegmentEntry) -> Result<()> {
        self.opened.open_apart(segment.id, segment.digest)?.verify(&mut |_, _, _| Ok(()))
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
    FileSet::new(&shared.storage, state, None, Kept::Live { _live: live })
}

/// The beginning of a sidecar, which identifies its filter: a sidecar with the same head and the same length
/// need not be copied again.
///
/// # Errors
/// [`Error::Io`].
pub fn sidecar_head(file: &dyn ReadFile) -> Result<Vec<u8>> {
    let bytes = usize::try_from(SIDECAR_HEAD_BYTES.min(file.len()?)).unwrap_or_default();
    let mut head = vec![0; bytes];
    file.read_exact_at(&mut head, 0)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::RealFs;

    #[test]
    fn the_head_of_a_sidecar_is_its_beginning_or_all_of_it() {
        let dir = tempfile::tempdir().unwrap();
        for (bytes, expected) in [(0, 0), (7, 7), (4096, 4096), (5000, 4096)] {
            let path = dir.path().join(bytes.to_string());
            let content: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            std::fs::write(&path, &content).unwrap();
            let head = sidecar_head(&*RealFs.open(&path).unwrap()).unwrap();
            assert_eq!(head, content[..expected]);
        }
    }
}

//! Writes the manifest file.
//!
//! Every edit is synced before the next one is written, so a crash can only cut short the last edit. The file
//! is never modified in place: a rewrite goes to a new file, which is synced and renamed over it.

use super::edit::{Edit, ManifestState};
use super::format::{encode_edit, encode_header, tag};
use super::reader::{MANIFEST, read_state};
use crate::error::{Error, Result};
use crate::fs::{AppendFile, Fs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of a manifest that is being written. A leftover one is ignored.
pub const MANIFEST_TMP: &str = "MANIFEST.tmp";
/// The manifest is rewritten when it is longer than this, in bytes, …
const REWRITE_BYTES: u64 = 1 << 20;
/// … and longer than this many times its initial snapshot.
const REWRITE_FACTOR: u64 = 4;

/// Appends edits to a store's manifest.
#[derive(Debug)]
pub struct Manifest {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    /// `None` while the end of the file is unknown and nothing may be appended: since it was opened, or since
    /// an append failed.
    file: Option<Box<dyn AppendFile>>,
    tag: u32,
    len: u64,
    /// Length of the header and the snapshot.
    snapshot_len: u64,
}

impl Manifest {
    /// Makes `dir` a store with the state `initial`. Durable on return; until then, it is not a store.
    pub fn create(fs: Arc<dyn Fs>, dir: &Path, initial: &ManifestState) -> Result<Self> {
        let mut manifest = Self::unwritten(fs, dir, initial);
        manifest.rewrite(initial)?;
        Ok(manifest)
    }

    fn unwritten(fs: Arc<dyn Fs>, dir: &Path, state: &ManifestState) -> Self {
        Manifest { fs, dir: dir.to_path_buf(), file: None, tag: tag(state.header), len: 0, snapshot_len: 0 }
    }

    /// Opens the manifest of the store in `dir`, and writes nothing. It must be [rewritten](Self::rewrite)
    /// before the first edit. Until then its state may not be durable, so unlisted files must stay.
    ///
    /// Syncing the old file would not suffice: after a failed sync the kernel may serve bytes that never
    /// reached the disk, and a later sync succeeds without writing them (Rebello et al., "Can Applications
    /// Recover from fsync Failures?", USENIX ATC 2020).
    ///
    /// # Errors
    /// [`Error::NotAStore`] when there is no manifest; [`Error::Corruption`], also for overlapping segments
    /// in a level; [`Error::UnsupportedVersion`], [`Error::UnknownCode`].
    pub fn open(fs: Arc<dyn Fs>, dir: &Path) -> Result<(Self, ManifestState)> {
        let state = read_state(&*fs, dir)?;
        check_levels(&state, dir)?;
        Ok((Self::unwritten(fs, dir, &state), state))
    }

    /// Appends `edit` and applies it to `state`. Durable on return. After an error the state is as before,
    /// and the outcome is unknown: reopening the store may find the edit. So no file of either state may be
    /// removed (invariant I5), and the manifest must be [rewritten](Self::rewrite) before the next edit.
    pub fn append(&mut self, edit: &Edit, state: &mut ManifestState) -> Result<()> {
        let encoded = encode_edit(edit, self.tag)?;
        let unwritten = || Error::Internal("the manifest must be rewritten before the next edit".into());
        state.check(edit).map_err(Error::Internal)?;
        let mut file = self.file.take().ok_or_else(unwritten)?;
        file.append(&encoded)?;
        file.sync()?;
        self.file = Some(file);
        self.len += encoded.len() as u64;
        let undo = state.apply(edit).map_err(Error::Internal)?;
        if self.len > REWRITE_BYTES && self.len > REWRITE_FACTOR * self.snapshot_len {
            match self.rewrite(state) {
                Ok(()) => {}
                // The edit is durable under one of the two names. The next edit rewrites the manifest first.
                Err(error) if error.is_out_of_descriptors() => {}
                Err(error) => {
                    state.take_back(edit, undo);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Whether it must be [rewritten](Self::rewrite) before the next edit.
    pub fn needs_rewrite(&self) -> bool {
        self.file.is_none()
    }

    /// Rewrites the manifest as one snapshot. On return, it durably holds `state` and nothing else, so files
    /// that `state` does not list may be removed.
    pub fn rewrite(&mut self, state: &ManifestState) -> Result<()> {
        self.file = None;
        let (file, len) = write_snapshot(&*self.fs, &self.dir, state)?;
        (self.len, self.snapshot_len) = (len, len);
        self.fs.sync_dir(&self.dir)?;
        self.file = Some(file);
        Ok(())
    }
}

/// Reports a failed [`ManifestState::check_levels`] as damage to the manifest in `dir`. A read uses one
/// segment per sorted level; if two overlapped, it would miss existing keys.
pub fn check_levels(state: &ManifestState, dir: &Path) -> Result<()> {
    state.check_levels().map_err(|what| overlapping_levels(&what, dir))
}

/// The error for segments that overlap in a sorted level, from the message that names them.
pub fn overlapping_levels(what: &str, dir: &Path) -> Error {
    Error::corruption(dir.join(MANIFEST), 0, format!("{what}; run `sidebloom repair`"))
}

/// The contents of a manifest that holds only `state`.
pub fn encode_snapshot(state: &ManifestState) -> Result<Vec<u8>> {
    let mut bytes = encode_header(state.header);
    bytes.extend(encode_edit(&state.snapshot(), tag(state.header))?);
    Ok(bytes)
}

/// Replaces the manifest with one that holds only `state`, and syncs it. The caller makes its name durable.
fn write_snapshot(fs: &dyn Fs, dir: &Path, state: &ManifestState) -> Result<(Box<dyn AppendFile>, u64)> {
    let (path, tmp) = (dir.join(MANIFEST), dir.join(MANIFEST_TMP));
    if fs.file_len(&tmp)?.is_some() {
        fs.remove(&tmp)?;
    }
    let bytes = encode_snapshot(state)?;
    let mut file = fs.create(&tmp)?;
    file.append(&bytes)?;
    file.sync()?;
    fs.rename(&tmp, &path)?;
    // Reopened only so that errors use the file's new name.
    match fs.append(&path) {
        Err(error) if error.is_out_of_descriptors() => {}
        renamed => file = renamed?,
    }
    Ok((file, bytes.len() as u64))
}

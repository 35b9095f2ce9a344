//! Reads and writes the manifest file.
//!
//! Every edit is synced before the next one is written, so a crash can only cut short the last edit. A last edit that was cut short never
//! took effect; any other damage is [`Error::Corruption`]. The file is never modified in place: a rewrite goes to a new file, which is
//! synced and renamed over it.

use super::edit::{Edit, ManifestState};
use super::format::{
    EDIT_HEAD_BYTES, EditHead, HEADER_BYTES, decode_header, decode_payload, encode_edit, encode_header, tag,
};
use crate::error::{Error, Result};
use crate::fs::{AppendFile, Fs, has_lost_sector};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the manifest in a store's directory.
pub const MANIFEST: &str = "MANIFEST";
/// Name of a manifest that is being written. One left by a crash is ignored.
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
    /// `None` while the end of the file is unknown, and nothing may be appended: since it was opened, or since an append failed.
    file: Option<Box<dyn AppendFile>>,
    tag: u32,
    len: u64,
    /// Length of the header and the snapshot.
    snapshot_len: u64,
}

impl Manifest {
    /// Makes `dir` a store with the state `initial`. Durable when this returns; until then, the directory is not a store.
    pub fn create(fs: Arc<dyn Fs>, dir: &Path, initial: &ManifestState) -> Result<Self> {
        let mut manifest = Self::unwritten(fs, dir, initial);
        manifest.rewrite(initial)?;
        Ok(manifest)
    }

    fn unwritten(fs: Arc<dyn Fs>, dir: &Path, state: &ManifestState) -> Self {
        Manifest { fs, dir: dir.to_path_buf(), file: None, tag: tag(state.header), len: 0, snapshot_len: 0 }
    }

    /// Opens the manifest of the store in `dir`, and writes nothing. It must be [rewritten](Self::rewrite) before the first edit. Until then
    /// the state that was read may not be durable, so files that it does not list must stay.
    ///
    /// Syncing the old file would not suffice: after a failed sync the kernel may serve bytes that never reached the disk, and a later
    /// sync succeeds without writing them (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020).
    ///
    /// # Errors
    /// [`Error::NotAStore`] when there is no manifest; [`Error::Corruption`], also for overlapping segments in a level;
    /// [`Error::UnsupportedVersion`].
    pub fn open(fs: Arc<dyn Fs>, dir: &Path) -> Result<(Self, ManifestState)> {
        let state = read_state(&*fs, dir)?;
        check_levels(&state, dir)?;
        Ok((Self::unwritten(fs, dir, &state), state))
    }

    /// Appends `edit`; `state_after` is the state with it applied. Durable when this returns. After an error the outcome is unknown: the
    /// edit may be found when the store is reopened, so no file of either state may be removed (invariant I5), and the manifest must be
    /// [rewritten](Self::rewrite) before the next edit.
    pub fn append(&mut self, edit: &Edit, state_after: &ManifestState) -> Result<()> {
        let encoded = encode_edit(edit, self.tag)?;
        let unwritten = || Error::Internal("the manifest takes no edit before it is rewritten".into());
        let mut file = self.file.take().ok_or_else(unwritten)?;
        file.append(&encoded)?;
        file.sync()?;
        self.file = Some(file);
        self.len += encoded.len() as u64;
        if self.len > REWRITE_BYTES && self.len > REWRITE_FACTOR * self.snapshot_len {
            match self.rewrite(state_after) {
                // The edit is durable under one of the two names. The next edit rewrites the manifest first.
                Err(error) if error.is_out_of_descriptors() => {}
                outcome => return outcome,
            }
        }
        Ok(())
    }

    /// Whether it must be [rewritten](Self::rewrite) before the next edit.
    pub fn needs_rewrite(&self) -> bool {
        self.file.is_none()
    }

    /// Rewrites the manifest as one snapshot. When this returns, it durably holds `state` and nothing else, so files that `state` does not
    /// list may be removed.
    pub fn rewrite(&mut self, state: &ManifestState) -> Result<()> {
        self.file = None;
        let (file, len) = write_snapshot(&*self.fs, &self.dir, state)?;
        (self.len, self.snapshot_len) = (len, len);
        self.fs.sync_dir(&self.dir)?;
        self.file = Some(file);
        Ok(())
    }
}

/// Reports a failed [`ManifestState::check_levels`] as damage to the manifest in `dir`. A read consults one segment per
/// sorted level; if two overlapped, it would miss existing keys.
pub fn check_levels(state: &ManifestState, dir: &Path) -> Result<()> {
    let overlap = |what| Error::corruption(dir.join(MANIFEST), 0, format!("{what}; run `sidebloom repair`"));
    state.check_levels().map_err(overlap)
}

/// The state of the store in `dir`, without writing anything. Returns the errors of [`Manifest::open`].
pub fn read_state(fs: &dyn Fs, dir: &Path) -> Result<ManifestState> {
    let path = dir.join(MANIFEST);
    if fs.file_len(&path)?.is_none() {
        let what = format!("it contains no {MANIFEST}");
        return Err(Error::NotAStore { path: dir.to_path_buf(), what });
    }
    let file = fs.open(&path)?;
    let mut bytes = vec![0; file.len()? as usize];
    file.read_exact_at(&mut bytes, 0)?;
    replay(&bytes, &path)
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

/// Folds the edits of a whole manifest.
fn replay(bytes: &[u8], path: &Path) -> Result<ManifestState> {
    let header = decode_header(bytes, path)?;
    let mut state = ManifestState::new(header);
    let mut at = HEADER_BYTES;
    loop {
        let damage =
            |what: &str| Error::corruption(path, at as u64, format!("{what}; run `sidebloom repair`"));
        // The snapshot was synced before the file was renamed, so no crash cuts it short.
        let is_snapshot = at == HEADER_BYTES;
        let Some(payload) = payload_at(bytes, at, tag(header)) else {
            let ends_here = at == bytes.len() || was_cut_short(bytes, at, tag(header));
            return if ends_here && !is_snapshot { Ok(state) } else { Err(damage("edit checksum mismatch")) };
        };
        let edit = decode_payload(payload).ok_or_else(|| damage("the edit is invalid"))?;
        state.apply(&edit).map_err(|what| damage(&what))?;
        at += EDIT_HEAD_BYTES + payload.len();
    }
}

/// The payload of the edit at `at`; `None` unless it is complete and valid.
fn payload_at(bytes: &[u8], at: usize, tag: u32) -> Option<&[u8]> {
    let edit = bytes.get(at..)?;
    let head = EditHead::decode(edit, tag)?;
    let payload = edit.get(EDIT_HEAD_BYTES..)?.get(..head.payload_len)?;
    (crate::codec::crc32(&[payload]) == head.payload_crc).then_some(payload)
}

/// Whether the invalid edit at `at` is the last one and was cut short by a crash: the file ends within it, or one of its sectors was
/// lost. If its head is damaged, its end is unknown, but no valid head may follow it.
fn was_cut_short(bytes: &[u8], at: usize, tag: u32) -> bool {
    let rest = &bytes[at..];
    match EditHead::decode(rest, tag) {
        Some(head) if rest.len() - EDIT_HEAD_BYTES < head.payload_len => true,
        Some(head) => rest.len() - EDIT_HEAD_BYTES == head.payload_len && has_lost_sector(rest, at as u64),
        None if rest.len() < EDIT_HEAD_BYTES => true,
        None => {
            let is_head = |later: &[u8]| EditHead::decode(later, tag).is_some();
            has_lost_sector(rest, at as u64) && !rest.windows(EDIT_HEAD_BYTES).any(is_head)
        }
    }
}

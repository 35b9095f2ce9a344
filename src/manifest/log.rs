//! Reads and writes the manifest file.
//!
//! Every edit is synced before the next is written, so a crash can only have cut short the last one. A last edit that was cut short
//! never counted; any other damage is [`Error::Corruption`]. The file is never written in place: what must change is written anew,
//! synced, and renamed over it.

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
/// Name of a manifest that is being written; one that a crash leaves behind means nothing.
pub const MANIFEST_TMP: &str = "MANIFEST.tmp";
/// The manifest is written anew when it is longer than this, in bytes, …
const REWRITE_BYTES: u64 = 1 << 20;
/// … and longer than this many times the snapshot that it starts with.
const REWRITE_FACTOR: u64 = 4;

/// Appends edits to a store's manifest.
#[derive(Debug)]
pub struct Manifest {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    file: Box<dyn AppendFile>,
    tag: u32,
    len: u64,
    /// Length of the header and the snapshot behind it.
    snapshot_len: u64,
    /// An append failed: what the file ends with is unknown, and nothing may be appended to it.
    torn: bool,
}

impl Manifest {
    /// Makes `dir` a store; `initial` is its state. Durable when this returns; before that, the directory is no store.
    pub fn create(fs: Arc<dyn Fs>, dir: &Path, initial: &ManifestState) -> Result<Self> {
        let (file, len) = write_anew(&*fs, dir, initial)?;
        fs.sync_dir(dir)?;
        let (tag, snapshot_len) = (tag(initial.header), len);
        Ok(Manifest { fs, dir: dir.to_path_buf(), file, tag, len, snapshot_len, torn: false })
    }

    /// Opens the manifest of the store in `dir` for writing: writes it anew, without the edits that cancelled out and without a last
    /// one that was cut short. The state is durable when this returns, and files that it does not name may be removed.
    ///
    /// Syncing the old file would not do: after a failed sync the kernel may serve bytes that never reached the disk, and a later
    /// sync succeeds without writing them (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020).
    ///
    /// # Errors
    /// [`Error::NotAStore`] when there is no manifest, [`Error::Corruption`], also for levels that overlap,
    /// [`Error::UnsupportedVersion`].
    pub fn open(fs: Arc<dyn Fs>, dir: &Path) -> Result<(Self, ManifestState)> {
        let state = read_state(&*fs, dir)?;
        check_levels(&state, dir)?;
        Ok((Self::create(fs, dir, &state)?, state))
    }

    /// Appends `edit`; `state_after` is the state with it applied. Durable when this returns. After an error nothing is known: the
    /// edit may be there when the store is opened again, so no file of either state may be removed (invariant I5), and the manifest must
    /// be [written anew](Self::rewrite) before the next edit.
    pub fn append(&mut self, edit: &Edit, state_after: &ManifestState) -> Result<()> {
        let encoded = encode_edit(edit, self.tag)?;
        self.torn = true;
        self.file.append(&encoded)?;
        self.file.sync()?;
        self.torn = false;
        self.len += encoded.len() as u64;
        if self.len > REWRITE_BYTES && self.len > REWRITE_FACTOR * self.snapshot_len {
            match self.rewrite(state_after) {
                // The edit is durable, under whichever of the two names; the next one finds the manifest torn.
                Err(error) if error.is_out_of_descriptors() => {}
                outcome => return outcome,
            }
        }
        Ok(())
    }

    /// Whether an append has failed since the manifest was last written anew.
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    /// Writes the manifest anew. When this returns it holds `state`, durably, and nothing else.
    pub fn rewrite(&mut self, state: &ManifestState) -> Result<()> {
        self.torn = true;
        (self.file, self.len) = write_anew(&*self.fs, &self.dir, state)?;
        self.snapshot_len = self.len;
        self.fs.sync_dir(&self.dir)?;
        self.torn = false;
        Ok(())
    }
}

/// [`ManifestState::check_levels`] as the error of the manifest in `dir`. Reads of a sorted level look at one segment only: with two that
/// overlap, keys that are there would count as missing.
pub fn check_levels(state: &ManifestState, dir: &Path) -> Result<()> {
    let overlap = |what| Error::corruption(dir.join(MANIFEST), 0, format!("{what}; run `sidebloom repair`"));
    state.check_levels().map_err(overlap)
}

/// The state of the store in `dir`, for those who only read: nothing is written. Errors as [`Manifest::open`].
pub fn read_state(fs: &dyn Fs, dir: &Path) -> Result<ManifestState> {
    let path = dir.join(MANIFEST);
    if fs.file_len(&path)?.is_none() {
        let what = format!("it has no {MANIFEST}");
        return Err(Error::NotAStore { path: dir.to_path_buf(), what });
    }
    let file = fs.open(&path)?;
    let mut bytes = vec![0; file.len()? as usize];
    file.read_exact_at(&mut bytes, 0)?;
    replay(&bytes, &path)
}

/// Writes a manifest that holds `state` only, durably, and puts it in the place of the one before. The caller makes its name durable.
fn write_anew(fs: &dyn Fs, dir: &Path, state: &ManifestState) -> Result<(Box<dyn AppendFile>, u64)> {
    let (path, tmp) = (dir.join(MANIFEST), dir.join(MANIFEST_TMP));
    if fs.file_len(&tmp)?.is_some() {
        fs.remove(&tmp)?;
    }
    let mut bytes = encode_header(state.header);
    bytes.extend(encode_edit(&state.snapshot(), tag(state.header))?);
    let mut file = fs.create(&tmp)?;
    file.append(&bytes)?;
    file.sync()?;
    fs.rename(&tmp, &path)?;
    // Opened anew only so that errors name the file as it is called now.
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
        // The snapshot was synced before the file had its name: no crash cuts it short.
        let is_snapshot = at == HEADER_BYTES;
        let Some(payload) = payload_at(bytes, at, tag(header)) else {
            let ends_here = at == bytes.len() || was_cut_short(bytes, at, tag(header));
            return if ends_here && !is_snapshot {
                Ok(state)
            } else {
                Err(damage("an edit fails its checksum"))
            };
        };
        let edit = decode_payload(payload).ok_or_else(|| damage("the edit holds something unknown"))?;
        state.apply(&edit).map_err(|what| damage(&what))?;
        at += EDIT_HEAD_BYTES + payload.len();
    }
}

/// The payload of the edit at `at`; `None` when it is not whole and valid.
fn payload_at(bytes: &[u8], at: usize, tag: u32) -> Option<&[u8]> {
    let edit = bytes.get(at..)?;
    let head = EditHead::decode(edit, tag)?;
    let payload = edit.get(EDIT_HEAD_BYTES..)?.get(..head.payload_len)?;
    (crate::codec::crc32(&[payload]) == head.payload_crc).then_some(payload)
}

/// Whether the invalid edit at `at` is the last one and a crash kept it from being written whole: the file ends within it, or one of
/// its sectors was lost. Without its head nobody knows where it ends, but nothing may follow it.
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

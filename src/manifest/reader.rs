//! Reads the manifest file.
//!
//! A last edit cut short by a crash never took effect; any other damage is [`Error::Corruption`]. The file is
//! read in pieces, and an edit is decoded field by field, so memory depends on contents, not on a length.

use super::edit::{Edit, ManifestState};
use super::format::{
    EDIT_HEAD_BYTES, EditHead, FIELD_BYTES_MAX, HEADER_BYTES, WRITES, decode_field, decode_header,
    is_later_field, tag,
};
use crate::codec::Decoder;
use crate::error::{Error, Result};
use crate::fs::{Fs, HOLE_BYTES, Pieces, SECTOR_BYTES, has_lost_sector};
use crate::segment::StoreIdentity;
use std::path::Path;

/// Name of the manifest in a store's directory.
pub const MANIFEST: &str = "MANIFEST";
/// The longest edit: its payload's length has 32 bits.
const EDIT_BYTES_MAX: u64 = EDIT_HEAD_BYTES as u64 + u32::MAX as u64;

/// The state of the store in `dir`, without writing anything. Returns the errors of
/// [`Manifest::open`](super::Manifest::open).
pub fn read_state(fs: &dyn Fs, dir: &Path) -> Result<ManifestState> {
    ManifestReader::open(fs, dir)?.replay().map(|read| read.state)
}

/// A manifest read up to its last complete edit.
pub(super) struct ReadEdits {
    pub state: ManifestState,
    /// Where the last edit begins.
    pub last: u64,
    /// Where it ends.
    pub end: u64,
}

pub(super) struct ManifestReader {
    pub pieces: Pieces,
    tag: u32,
}

impl ManifestReader {
    /// Opens the manifest of the store in `dir`.
    pub fn open(fs: &dyn Fs, dir: &Path) -> Result<Self> {
        let path = dir.join(MANIFEST);
        if fs.file_len(&path)?.is_none() {
            let what = format!("it contains no {MANIFEST}");
            return Err(Error::NotAStore { path: dir.to_path_buf(), what });
        }
        let file = fs.open(&path)?;
        let len = file.len()?;
        Ok(ManifestReader { pieces: Pieces::new(file, len), tag: 0 })
    }

    /// Continues in the manifest of a known store.
    pub fn of(header: StoreIdentity, pieces: Pieces) -> Self {
        ManifestReader { pieces, tag: tag(header) }
    }

    /// Folds the edits of the whole manifest.
    pub fn replay(&mut self) -> Result<ReadEdits> {
        let path = self.pieces.path().to_path_buf();
        let header = self.pieces.view(0, HEADER_BYTES)?;
        let (version, header) = decode_header(header.get(..HEADER_BYTES).unwrap_or(header), &path)?;
        let earlier_version = (version < WRITES).then_some(version);
        self.tag = tag(header);
        let mut state = ManifestState { earlier_version, ..ManifestState::new(header) };
        let (mut last, mut at) = (HEADER_BYTES as u64, HEADER_BYTES as u64);
        loop {
            let damage = |what: &str| Error::corruption(&path, at, format!("{what}; run `sidebloom repair`"));
            // The snapshot was synced before the file was renamed, so no crash cuts it short.
            let is_snapshot = at == HEADER_BYTES as u64;
            let Some(end) = self.sound_edit(at)? else {
                let ends_here = at == self.pieces.len() || self.was_cut_short(at)?;
                if !ends_here || is_snapshot {
                    return Err(damage("edit checksum mismatch"));
                }
                state.check_totals().map_err(|what| damage(&what))?;
                return Ok(ReadEdits { state, last, end: at });
            };
            let edit = self.edit(at, end)?.ok_or_else(|| damage("the edit is invalid"))?;
            state.apply(&edit).map_err(|what| damage(&what))?;
            (last, at) = (at, end);
        }
    }

    /// The head of an edit at `at`, no matter what follows it.
    pub fn head(&mut self, at: u64) -> Result<Option<EditHead>> {
        let tag = self.tag;
        Ok(EditHead::decode(self.pieces.view(at, EDIT_HEAD_BYTES)?, tag))
    }

    /// The end of the edit at `at`; `None` unless it is complete and its checksums match.
    pub fn sound_edit(&mut self, at: u64) -> Result<Option<u64>> {
        let Some(head) = self.head(at)? else { return Ok(None) };
        let start = at + EDIT_HEAD_BYTES as u64;
        let end = start + head.payload_len as u64;
        let is_sound = end <= self.pieces.len() && self.pieces.crc(start, end)? == head.payload_crc;
        Ok(is_sound.then_some(end))
    }

    /// The edit from `at` to `end`; `None` if its payload is invalid. [`Error::UnknownCode`] for a later one.
    pub fn edit(&mut self, at: u64, end: u64) -> Result<Option<Edit>> {
        let path = self.pieces.path().to_path_buf();
        let (mut edit, mut at) = (Edit::default(), at + EDIT_HEAD_BYTES as u64);
        loop {
            let view = self.pieces.view(at, FIELD_BYTES_MAX)?;
            let rest = usize::try_from(end - at).unwrap_or(usize::MAX);
            let view = view.get(..rest).unwrap_or(view);
            if let Some(kind) = view.first().filter(|&&kind| is_later_field(kind)) {
                return Err(Error::unknown_code(path, at, format!("an edit with field {kind}")));
            }
            let mut fields = Decoder::new(view);
            let more = decode_field(&mut fields, &mut edit);
            at += fields.position() as u64;
            match more {
                Some(true) => {}
                Some(false) => return Ok((at == end).then_some(edit)),
                None => return Ok(None),
            }
        }
    }

    /// Whether the invalid edit at `at` is the last one and was cut short by a crash: the file ends within
    /// it, or one of its sectors was lost. If its head is damaged, its end is unknown; then no valid head may
    /// follow it, and the file may have at most one more edit's length.
    fn was_cut_short(&mut self, at: u64) -> Result<bool> {
        let rest = self.pieces.len().saturating_sub(at);
        match self.head(at)? {
            Some(head) => match rest.saturating_sub(EDIT_HEAD_BYTES as u64).cmp(&(head.payload_len as u64)) {
                std::cmp::Ordering::Less => Ok(true),
                std::cmp::Ordering::Equal => self.has_lost_sector(at),
                std::cmp::Ordering::Greater => Ok(false),
            },
            None if rest < EDIT_HEAD_BYTES as u64 => Ok(true),
            None => {
                Ok(rest <= EDIT_BYTES_MAX && self.has_lost_sector(at)? && !self.may_have_head_after(at)?)
            }
        }
    }

    /// Whether a sector from `at` to the end of the file was lost.
    fn has_lost_sector(&mut self, at: u64) -> Result<bool> {
        let (mut from, len) = (at, self.pieces.len());
        while from < len {
            let view = self.pieces.view(from, 2 * SECTOR_BYTES)?;
            let to_boundary = SECTOR_BYTES - (from % SECTOR_BYTES as u64) as usize;
            // Whole sectors, except at the end of the file.
            let whole = match view.len().checked_sub(to_boundary) {
                Some(more) if from + (view.len() as u64) < len => view.len() - more % SECTOR_BYTES,
                _ => view.len(),
            };
            let sectors = view.get(..whole).unwrap_or(view);
            if has_lost_sector(sectors, from) {
                return Ok(true);
            }
            from += whole.max(1) as u64;
        }
        Ok(false)
    }

    /// Whether a valid head begins anywhere from `at` on, or may begin after a hole, which is not searched.
    fn may_have_head_after(&mut self, mut at: u64) -> Result<bool> {
        let (tag, mark) = (self.tag, self.tag.to_le_bytes());
        while at + (EDIT_HEAD_BYTES as u64) <= self.pieces.len() {
            let zeros = self.pieces.zeros(at)?; // No head begins with one.
            if zeros > HOLE_BYTES {
                return Ok(true);
            }
            at += zeros;
            let view = self.pieces.view(at, EDIT_HEAD_BYTES)?;
            let is_head = |later: &[u8]| later.starts_with(&mark) && EditHead::decode(later, tag).is_some();
            if view.windows(EDIT_HEAD_BYTES).any(is_head) {
                return Ok(true);
            }
            at += (view.len() + 1).saturating_sub(EDIT_HEAD_BYTES).max(1) as u64;
        }
        Ok(false)
    }
}

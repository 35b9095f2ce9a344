//! Reads a manifest that another process writes: all of it first, then each edit as it is appended.
//!
//! 1. A manifest is only appended to, until another file replaces it. It is the same file if it has the same
//!    file number, and the same heads of the first and the last edit read, including their checksums: file
//!    numbers are reused.
//! 2. An incomplete edit does not exist yet. If anything else does not fit, or nothing was appended, the
//!    whole file is read again to find out why.

use super::edit::ManifestState;
use super::format::{EDIT_HEAD_BYTES, HEADER_BYTES};
use super::reader::{MANIFEST, ManifestReader, ReadEdits};
use crate::error::Result;
use crate::fs::{Fs, Pieces, Stamp};
use std::path::Path;

/// Header and head of the first edit.
const BEGINNING_BYTES: usize = HEADER_BYTES + EDIT_HEAD_BYTES;

/// The manifest of a store in another process.
#[derive(Default)]
pub struct ManifestTail {
    /// `None` if the whole file has to be read.
    read: Option<ReadSoFar>,
}

/// What was read, up to the end of an edit.
struct ReadSoFar {
    state: ManifestState,
    /// The number of the file; `None` if it had none.
    file: Option<u64>,
    beginning: [u8; BEGINNING_BYTES],
    /// Where the last edit begins, and its head.
    last_at: u64,
    last: [u8; EDIT_HEAD_BYTES],
    end: u64,
}

impl ManifestTail {
    /// The current state of the manifest in `dir`. `stamp` is its stamp, taken before this call.
    ///
    /// # Errors
    /// The errors of [`read_state`](super::read_state). The next call then reads the whole file.
    pub fn read(&mut self, fs: &dyn Fs, dir: &Path, stamp: Option<Stamp>) -> Result<&ManifestState> {
        let file = stamp.map(|stamp| stamp.file);
        let known = self.read.take().filter(|read| read.file.is_some() && read.file == file);
        let went_on = known.and_then(|mut read| read.go_on(fs, dir).is_ok_and(|fits| fits).then_some(read));
        let read = match went_on {
            Some(read) => read,
            None => ReadSoFar::whole(fs, dir, file)?,
        };
        Ok(&self.read.insert(read).state)
    }
}

impl ReadSoFar {
    fn whole(fs: &dyn Fs, dir: &Path, file: Option<u64>) -> Result<Self> {
        let mut reader = ManifestReader::open(fs, dir)?;
        let ReadEdits { state, last: last_at, end } = reader.replay()?;
        let beginning = reader.pieces.view(0, BEGINNING_BYTES)?.first_chunk().copied();
        let last = reader.pieces.view(last_at, EDIT_HEAD_BYTES)?.first_chunk().copied();
        let (beginning, last) = (beginning.unwrap_or([0; BEGINNING_BYTES]), last.unwrap_or_default());
        Ok(ReadSoFar { state, file, beginning, last_at, last, end })
    }

    /// Reads what was appended. `false` if something does not fit, or nothing was appended.
    fn go_on(&mut self, fs: &dyn Fs, dir: &Path) -> Result<bool> {
        let file = fs.open(&dir.join(MANIFEST))?;
        let len = file.len()?;
        if len <= self.end {
            return Ok(false);
        }
        let (mut beginning, mut last) = ([0; BEGINNING_BYTES], [0; EDIT_HEAD_BYTES]);
        file.read_exact_at(&mut beginning, 0)?;
        file.read_exact_at(&mut last, self.last_at)?;
        if (beginning, last) != (self.beginning, self.last) {
            return Ok(false);
        }
        let mut reader = ManifestReader::of(self.state.header, Pieces::new(file, len));
        while let Some(rest) = (len - self.end).checked_sub(EDIT_HEAD_BYTES as u64) {
            match reader.head(self.end)? {
                Some(head) if rest < head.payload_len as u64 => break,
                Some(_) => {}
                None => return Ok(false),
            }
            let Some(end) = reader.sound_edit(self.end)? else { return Ok(false) };
            let Some(edit) = reader.edit(self.end, end)? else { return Ok(false) };
            if self.state.apply(&edit).is_err() {
                return Ok(false);
            }
            let head = reader.pieces.view(self.end, EDIT_HEAD_BYTES)?.first_chunk();
            self.last = head.copied().unwrap_or_default();
            (self.last_at, self.end) = (self.end, end);
        }
        Ok(self.state.check_totals().is_ok())
    }
}

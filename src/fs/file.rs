//! Open files, as [`Fs`](super::Fs) returns them.

use super::map::Map;
use crate::error::Result;
use std::fmt::Debug;
use std::path::Path;

/// A file opened for appending.
pub trait AppendFile: Send + Debug {
    /// Appends all of `bytes`. After an error the end of the file is unknown; do not append again.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Makes all appended bytes durable (fdatasync). On error, the outcome is unknown; do not sync again.
    fn sync(&mut self) -> Result<()>;
}

/// The size of a piece in [`read_pieces`], in bytes.
const PIECE_BYTES: u64 = 1 << 20;

/// Reads the first `bytes` bytes of a file, and passes them to `each` in pieces.
pub(crate) fn read_pieces(
    file: &dyn ReadFile,
    bytes: u64,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0; usize::try_from(bytes.min(PIECE_BYTES)).unwrap_or_default()];
    let mut at = 0;
    while at < bytes {
        let len = usize::try_from((bytes - at).min(PIECE_BYTES)).unwrap_or_default();
        let piece = buffer.get_mut(..len).unwrap_or_default();
        file.read_exact_at(piece, at)?;
        each(piece)?;
        at += len as u64;
    }
    Ok(())
}

/// A file opened for reading.
pub trait ReadFile: Send + Sync + Debug {
    /// Fills `buf` from `offset`. [`Error::Corruption`](crate::Error::Corruption) if the file ends earlier.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()>;
    /// Asks for a range to be read soon, so that several ranges are read at once. Does not wait, and is only
    /// advice: by default it does nothing.
    fn will_need(&self, offset: u64, bytes: u64) {
        _ = (offset, bytes);
    }
    /// Maps the whole file, read-only, for reads of single pages. `None` if the file system cannot, which is
    /// the default.
    ///
    /// # Safety
    /// Same as [`Fs::map`](super::Fs::map).
    unsafe fn map(&self) -> Result<Option<Map>> {
        Ok(None)
    }
    /// The length in bytes.
    fn len(&self) -> Result<u64>;
    /// The path that the file was opened with, for messages.
    fn path(&self) -> &Path;
    /// Whether the file is empty.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
}

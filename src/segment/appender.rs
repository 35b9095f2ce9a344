//! The file under a segment writer: large appends, and their digest.

use crate::error::{Error, Result};
use crate::fs::AppendFile;
use crate::hash::Digest;

/// Size of an append, in bytes.
const APPEND_BYTES: usize = 256 << 10;

/// Buffers bytes for a file. After a failed append or sync the file is never written again (invariant I5),
/// and every call returns that error.
pub struct SegmentAppender {
    file: Box<dyn AppendFile>,
    pending: Vec<u8>,
    written: u64,
    digest: Digest,
    failed: Option<Error>,
}

impl SegmentAppender {
    /// Appends to an empty file.
    pub fn new(file: Box<dyn AppendFile>) -> Self {
        let pending = Vec::with_capacity(APPEND_BYTES + (64 << 10));
        SegmentAppender { file, pending, written: 0, digest: Digest::default(), failed: None }
    }

    /// Length of the file, pending bytes included.
    pub fn offset(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// The bytes not written yet; append to these.
    pub fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Writes the pending bytes once there are enough.
    pub fn flush_when_large(&mut self) -> Result<()> {
        if self.pending.len() < APPEND_BYTES { Ok(()) } else { self.flush() }
    }

    /// The digest of all bytes so far.
    pub fn digest(&mut self) -> Result<u64> {
        self.flush()?;
        Ok(self.digest.finish())
    }

    /// Appends the last bytes and syncs. Returns the length of the file.
    pub fn finish(mut self, last: &[u8]) -> Result<u64> {
        self.pending.extend_from_slice(last);
        if !self.pending.is_empty() {
            self.flush()?;
        }
        self.file.sync()?;
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.digest.update(&self.pending);
        self.written += self.pending.len() as u64;
        let appended = self.file.append(&self.pending);
        self.pending.clear();
        if self.pending.capacity() > 4 * APPEND_BYTES {
            self.pending.shrink_to(2 * APPEND_BYTES); // Give back the memory of a huge value.
        }
        appended.inspect_err(|error| self.failed = Some(error.clone()))
    }
}

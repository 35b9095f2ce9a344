//! The file under a segment writer: large appends, and their digest.

use crate::error::{Error, Result};
use crate::fs::AppendFile;
use crate::hash::Digest;

/// Size of an append, in bytes: a huge page. Appends that begin at its multiples let the page cache keep the
/// file on huge pages, so that reads in place miss the CPU's table of pages less often.
const APPEND_BYTES: usize = 2 << 20;
/// The digest takes bytes while they are in the CPU's cache.
const DIGEST_BYTES: usize = 64 << 10;

/// Buffers bytes for a file. After a failed append or sync the file is never written again (invariant I5),
/// and every call returns that error.
pub struct SegmentAppender {
    file: Box<dyn AppendFile>,
    pending: Vec<u8>,
    /// Bytes at the start of `pending` that the digest has.
    digested: usize,
    written: u64,
    digest: Digest,
    failed: Option<Error>,
}

impl SegmentAppender {
    /// Appends to an empty file.
    pub fn new(file: Box<dyn AppendFile>) -> Self {
        let pending = Vec::with_capacity(APPEND_BYTES + (64 << 10));
        SegmentAppender { file, pending, digested: 0, written: 0, digest: Digest::default(), failed: None }
    }

    /// Length of the file, pending bytes included.
    pub fn offset(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// The bytes not written yet; append to these.
    pub fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Writes the pending bytes once there are enough, up to the last multiple of [`APPEND_BYTES`].
    pub fn flush_when_large(&mut self) -> Result<()> {
        if self.pending.len() - self.digested >= DIGEST_BYTES {
            self.take_digest();
        }
        match self.pending.len() / APPEND_BYTES * APPEND_BYTES {
            0 => Ok(()),
            whole => self.flush(whole),
        }
    }

    /// The digest of all bytes so far.
    pub fn digest(&mut self) -> u64 {
        self.take_digest();
        self.digest.finish()
    }

    /// Appends the last bytes and syncs. Returns the length of the file.
    pub fn finish(mut self, last: &[u8]) -> Result<u64> {
        self.pending.extend_from_slice(last);
        self.flush(self.pending.len())?;
        self.file.sync()?;
        Ok(self.written)
    }

    fn take_digest(&mut self) {
        self.digest.update(&self.pending[self.digested..]);
        self.digested = self.pending.len();
    }

    fn flush(&mut self, bytes: usize) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if bytes == 0 {
            return Ok(());
        }
        self.take_digest();
        self.file.append(&self.pending[..bytes]).inspect_err(|error| self.failed = Some(error.clone()))?;
        self.written += bytes as u64;
        self.pending.drain(..bytes);
        self.digested = self.pending.len();
        if self.pending.capacity() > 4 * APPEND_BYTES {
            self.pending.shrink_to(2 * APPEND_BYTES); // Give back the memory of a huge value.
        }
        Ok(())
    }
}

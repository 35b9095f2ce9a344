//! Follows a log that another process is writing.
//!
//! What cannot be read yet is an append that is under way, or one that never ended; both wait for more bytes. Only damage that no append
//! explains is an error.

use super::format::{HEADER_BYTES, LogHeader};
use super::reader::{BatchSink, LogReader};
use crate::error::Result;
use crate::fs::{Fs, ReadFile};
use crate::id::FileId;
use crate::key::Seq;
use std::path::Path;
use std::sync::Arc;

/// A log and how far it was read.
#[derive(Debug)]
pub struct LogTail {
    file: Arc<dyn ReadFile>,
    id: FileId,
    store_id: u64,
    /// Length of the file when it was last read.
    len: u64,
    /// Offset of the first byte that was not read; 0 before the header.
    at: u64,
    /// The sequence number of the next operation in the file.
    next: Seq,
    /// Batches before this one were passed on already, even if the read that did so has failed.
    passed: Seq,
}

impl LogTail {
    /// Log `id` from offset `at` on, where sequence number `next` follows. Offset 0 is that of the header, and needs no number.
    pub fn open(fs: &dyn Fs, path: &Path, id: FileId, store_id: u64, at: u64, next: Seq) -> Result<Self> {
        Ok(LogTail { file: fs.open(path)?, id, store_id, len: 0, at, next, passed: 0 })
    }

    /// The sequence number that the log begins with; `None` while it has no header yet.
    ///
    /// # Errors
    /// [`Error::Corruption`](crate::Error::Corruption) for a damaged header, or that of another log.
    pub fn first_seq(&self) -> Result<Option<Seq>> {
        let mut log = self.reader(self.file.len()?);
        let Some(header) = log.header()? else { return Ok(None) };
        log.check_identity(&header, self.id, self.store_id)?;
        Ok(Some(header.first_seq))
    }

    /// Passes the batches that were added since the last call to `sink`, but for those before `expected`. Returns the sequence number after the
    /// last operation in the file; `None` while it has no header yet.
    ///
    /// # Errors
    /// [`Error::Corruption`](crate::Error::Corruption), and those of the file system and of `sink`. The next call passes what follows.
    pub fn read(&mut self, expected: Seq, sink: BatchSink<'_>) -> Result<Option<Seq>> {
        let len = self.file.len()?;
        if len != self.len {
            if self.at == 0 {
                let Some(first_seq) = self.first_seq()? else { return Ok(None) };
                (self.at, self.next) = (HEADER_BYTES as u64, first_seq);
            }
            let (mut log, expected) = (self.reader(len), expected.max(self.passed));
            let replayed = log.records(self.at, self.next, expected, &mut |seq, payload, count| {
                sink(seq, payload, count)?;
                self.passed = seq + Seq::from(count);
                Ok(())
            })?;
            (self.at, self.next, self.len) = (replayed.offset, replayed.next_seq, len);
        }
        Ok((self.at > 0).then_some(self.next))
    }

    fn reader(&self, len: u64) -> LogReader {
        LogReader::of(Arc::clone(&self.file), len, LogHeader::tag(self.id, self.store_id))
    }
}

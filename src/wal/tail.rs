//! Follows a log that another process is writing.
//!
//! What cannot be read yet is an append in progress, or one that never finished; both wait for more bytes.
//! Only damage that no append explains is an error.

use super::format::{HEADER_BYTES, LogHeader};
use super::reader::{BatchSink, LogReader, ReadTo};
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
    /// `None` before the header.
    read: Option<ReadTo>,
    /// Batches before this one were already passed on, even if the read that did so failed.
    passed: Seq,
}

impl LogTail {
    /// Log `id` from where it was read to, or from its beginning.
    pub fn open(fs: &dyn Fs, path: &Path, id: FileId, store_id: u64, read: Option<ReadTo>) -> Result<Self> {
        Ok(LogTail { file: fs.open(path)?, id, store_id, len: 0, read, passed: 0 })
    }

    /// The sequence number that the log begins with; `None` while it has no header yet.
    ///
    /// # Errors
    /// [`Error::Corruption`](crate::Error::Corruption) for a damaged header, or another log's.
    pub fn first_seq(&mut self) -> Result<Option<Seq>> {
        if self.read.is_none() {
            let mut log = self.reader(self.file.len()?);
            let Some(header) = log.header()? else { return Ok(None) };
            log.check_identity(&header, self.id, self.store_id)?;
            let first_seq = header.first_seq;
            self.read = Some(ReadTo { first_seq, offset: HEADER_BYTES as u64, next_seq: first_seq });
        }
        Ok(self.read.map(|read| read.first_seq))
    }

    /// Passes the batches added since the last call to `sink`, except those before `expected`. Returns the
    /// sequence number after the last operation in the file; `None` while it has no header yet.
    ///
    /// # Errors
    /// [`Error::Corruption`](crate::Error::Corruption), and the errors of the file system and of `sink`. The
    /// next call continues after that.
    pub fn read(&mut self, expected: Seq, sink: BatchSink<'_>) -> Result<Option<Seq>> {
        let len = self.file.len()?;
        if len != self.len && self.first_seq()?.is_some() {
            let mut log = self.reader(len);
            if let Some(read) = &mut self.read {
                let (to, _) = log.records(*read, expected.max(self.passed), &mut |seq, payload, count| {
                    sink(seq, payload, count)?;
                    self.passed = seq + Seq::from(count);
                    Ok(())
                })?;
                *read = to;
            }
            self.len = len;
        }
        Ok(self.read.map(|read| read.next_seq))
    }

    fn reader(&self, len: u64) -> LogReader {
        LogReader::of(Arc::clone(&self.file), len, LogHeader::tag(self.id, self.store_id))
    }
}

//! Appends to a log. Call protocol: `create (append_group | append_gap | sync)*`, and nothing after an error
//! (invariant I5).

use super::format::{HEADER_BYTES, LogHeader, encode_record};
use crate::error::{Error, Result};
use crate::fs::{AppendFile, Fs};
use crate::id::FileId;
use crate::key::Seq;
use std::path::Path;

/// A larger buffer, in bytes, is freed after an unusually large group.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// A batch with its sequence numbers.
#[derive(Debug, Clone, Copy)]
pub struct LogRecord<'a> {
    /// Sequence number of its first operation.
    pub first_seq: Seq,
    /// Number of its operations; at least 1.
    pub count: u32,
    /// The encoded batch.
    pub payload: &'a [u8],
}

/// Writes one log file.
#[derive(Debug)]
pub struct LogWriter {
    file: Box<dyn AppendFile>,
    tag: u32,
    next_seq: Seq,
    len: u64,
    synced: u64,
    buffer: Vec<u8>,
}

impl LogWriter {
    /// Creates the log, whose first operation will have sequence number `first_seq`. The file's name is
    /// durable on return, so [`LogWriter::sync`] only has to sync the contents. After an error no new file is
    /// left; an existing one of that name stays as it is.
    pub fn create(fs: &dyn Fs, path: &Path, id: FileId, store_id: u64, first_seq: Seq) -> Result<Self> {
        let header = LogHeader { id, store_id, first_seq }.encode()?;
        let mut file = fs.create(path)?;
        let begun = file.append(&header).and_then(|()| path.parent().map_or(Ok(()), |dir| fs.sync_dir(dir)));
        if let Err(error) = begun {
            drop(file);
            if let Err(error) = fs.remove(path) {
                tracing::warn!(%error, "cannot remove an empty log; the next open will retry");
            }
            return Err(error);
        }
        Ok(LogWriter {
            file,
            tag: LogHeader::tag(id, store_id),
            next_seq: first_seq,
            len: header.len() as u64,
            synced: 0,
            buffer: Vec::new(),
        })
    }

    /// Appends a group of batches in one call to the file system. They continue the sequence numbers of this
    /// log without a gap.
    pub fn append_group<'a>(&mut self, records: impl IntoIterator<Item = LogRecord<'a>>) -> Result<()> {
        self.buffer.clear();
        let mut next = self.next_seq;
        for LogRecord { first_seq, count, payload } in records {
            if first_seq != next || count == 0 {
                return Err(Error::Internal(format!(
                    "a log record of {count} operations, {} bytes, starts at sequence number {first_seq}, but {next} is next",
                    payload.len()
                )));
            }
            encode_record(&mut self.buffer, self.tag, first_seq, count, self.synced, payload)?;
            next += u64::from(count);
        }
        self.next_seq = next;
        self.append_buffer()?;
        if self.buffer.capacity() > BUFFER_KEPT_BYTES {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    /// Continues at sequence number `next_seq`: no operation of this log has the numbers before it.
    pub fn append_gap(&mut self, next_seq: Seq) -> Result<()> {
        if next_seq < self.next_seq {
            let next = self.next_seq;
            return Err(Error::Internal(format!("a gap in the log goes back from {next} to {next_seq}")));
        }
        self.buffer.clear();
        encode_record(&mut self.buffer, self.tag, next_seq, 0, self.synced, &[])?;
        self.next_seq = next_seq;
        self.append_buffer()
    }

    fn append_buffer(&mut self) -> Result<()> {
        self.file.append(&self.buffer)?;
        self.len += self.buffer.len() as u64;
        Ok(())
    }

    /// Makes everything appended so far durable.
    pub fn sync(&mut self) -> Result<()> {
        self.file.sync()?;
        self.synced = self.len;
        Ok(())
    }

    /// The sequence number that the next operation will have.
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// Whether it has no record.
    pub fn is_empty(&self) -> bool {
        self.len == HEADER_BYTES as u64
    }

    /// Length of the file, in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }
}

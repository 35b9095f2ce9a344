//! Merging the chunks of a temporary file.

use super::record::Record;
use crate::error::{Error, Result};
use crate::fs::ReadFile;
use crate::hash::Digest;
use std::sync::Arc;

/// Bounds on the buffer of one chunk in a merge, in bytes.
pub(super) const MERGE_BUFFER_MIN: usize = 4 << 10;
const MERGE_BUFFER_MAX: usize = 1 << 20;

/// A sorted range of the temporary file.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub start: u64,
    pub end: u64,
    pub digest: u64,
}

/// Merges the chunks of a file, piece by piece.
pub(super) struct Merge<R> {
    file: Arc<dyn ReadFile>,
    buffer_bytes: usize,
    /// Reused by every read.
    bytes: Vec<u8>,
    /// Those not yet consumed.
    chunks: Vec<ChunkReader<R>>,
}

struct ChunkReader<R> {
    chunk: Chunk,
    /// Where the unread part starts in the file.
    offset: u64,
    digest: Digest,
    records: Vec<R>,
    /// Consumed of `records`.
    at: usize,
}

impl<R: Record> Merge<R> {
    /// Of `chunks` in `file`, in about `memory_bytes` of memory.
    pub fn new(file: Arc<dyn ReadFile>, chunks: &[Chunk], memory_bytes: usize) -> Self {
        let buffer_bytes = memory_bytes / 2 / chunks.len().max(1);
        Merge {
            file,
            buffer_bytes: buffer_bytes.clamp(MERGE_BUFFER_MIN, MERGE_BUFFER_MAX) / R::BYTES * R::BYTES,
            bytes: Vec::new(),
            chunks: chunks.iter().map(|chunk| ChunkReader::new(*chunk)).collect(),
        }
    }

    /// Replaces `piece` with the next records in order. Two pieces share at most the record between them.
    /// Empty at the end.
    pub fn next_piece(&mut self, piece: &mut Vec<R>) -> Result<()> {
        piece.clear();
        for chunk in &mut self.chunks {
            if chunk.at == chunk.records.len() {
                chunk.refill(&*self.file, self.buffer_bytes, &mut self.bytes)?;
            }
        }
        self.chunks.retain(|chunk| !chunk.records.is_empty());
        let bound = self
            .chunks
            .iter()
            .filter(|chunk| chunk.offset < chunk.chunk.end)
            .filter_map(|chunk| chunk.records.last())
            .min();
        let bound = bound.copied();
        for chunk in &mut self.chunks {
            let rest = chunk.records.get(chunk.at..).unwrap_or_default();
            let upto = bound.map_or(rest.len(), |bound| rest.partition_point(|record| *record <= bound));
            piece.extend_from_slice(rest.get(..upto).unwrap_or_default());
            chunk.at += upto;
        }
        piece.sort();
        Ok(())
    }
}

impl<R: Record> ChunkReader<R> {
    fn new(chunk: Chunk) -> Self {
        ChunkReader { chunk, offset: chunk.start, digest: Digest::default(), records: Vec::new(), at: 0 }
    }

    /// Reads the next records of the chunk; none at its end, where the digest is checked.
    fn refill(&mut self, file: &dyn ReadFile, buffer_bytes: usize, bytes: &mut Vec<u8>) -> Result<()> {
        self.records.clear();
        self.at = 0;
        let damaged = || {
            Error::corruption(
                file.path(),
                self.chunk.start,
                "sorted records do not read back as written; check the disk and try again",
            )
        };
        let n = (self.chunk.end - self.offset).min(buffer_bytes as u64);
        if n == 0 {
            return if self.digest.finish() == self.chunk.digest { Ok(()) } else { Err(damaged()) };
        }
        bytes.resize(n as usize, 0);
        file.read_exact_at(bytes, self.offset)?;
        self.digest.update(bytes);
        self.offset += n;
        for record in bytes.chunks(R::BYTES) {
            self.records.push(R::decode(record).ok_or_else(damaged)?);
        }
        // The merge takes only what is below a buffer's last record. If that were too small, the merge would
        // end early, before the digest is checked.
        if self.records.is_sorted() { Ok(()) } else { Err(damaged()) }
    }
}

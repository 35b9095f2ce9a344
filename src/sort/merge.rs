//! Merging the runs of a temporary file.

use super::record::Record;
use crate::error::{Error, Result};
use crate::fs::ReadFile;
use crate::hash::Digest;
use std::sync::Arc;

/// Bounds on the buffer of one run in a merge, in bytes.
pub(super) const MERGE_BUFFER_MIN: usize = 4 << 10;
const MERGE_BUFFER_MAX: usize = 1 << 20;

/// A sorted range of the temporary file.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub start: u64,
    pub end: u64,
    pub digest: u64,
}

/// Merges the runs of a file, piece by piece.
pub(super) struct Merge<R> {
    file: Arc<dyn ReadFile>,
    buffer_bytes: usize,
    /// Reused by every read.
    bytes: Vec<u8>,
    /// Those not yet consumed.
    runs: Vec<RunReader<R>>,
}

struct RunReader<R> {
    run: Run,
    /// Where the unread part starts in the file.
    offset: u64,
    digest: Digest,
    records: Vec<R>,
    /// Consumed of `records`.
    at: usize,
}

impl<R: Record> Merge<R> {
    /// Of `runs` in `file`, in about `memory_bytes` of memory.
    pub fn new(file: Arc<dyn ReadFile>, runs: &[Run], memory_bytes: usize) -> Self {
        let buffer_bytes = memory_bytes / 2 / runs.len().max(1);
        Merge {
            file,
            buffer_bytes: buffer_bytes.clamp(MERGE_BUFFER_MIN, MERGE_BUFFER_MAX) / R::BYTES * R::BYTES,
            bytes: Vec::new(),
            runs: runs.iter().map(|run| RunReader::new(*run)).collect(),
        }
    }

    /// Replaces `piece` by the next records in order. Two pieces share at most the record between them. Empty
    /// at the end.
    pub fn next_piece(&mut self, piece: &mut Vec<R>) -> Result<()> {
        piece.clear();
        for run in &mut self.runs {
            if run.at == run.records.len() {
                run.refill(&*self.file, self.buffer_bytes, &mut self.bytes)?;
            }
        }
        self.runs.retain(|run| !run.records.is_empty());
        let bound = self
            .runs
            .iter()
            .filter(|run| run.offset < run.run.end)
            .filter_map(|run| run.records.last())
            .min();
        let bound = bound.copied();
        for run in &mut self.runs {
            let rest = run.records.get(run.at..).unwrap_or_default();
            let upto = bound.map_or(rest.len(), |bound| rest.partition_point(|record| *record <= bound));
            piece.extend_from_slice(rest.get(..upto).unwrap_or_default());
            run.at += upto;
        }
        piece.sort();
        Ok(())
    }
}

impl<R: Record> RunReader<R> {
    fn new(run: Run) -> Self {
        RunReader { run, offset: run.start, digest: Digest::default(), records: Vec::new(), at: 0 }
    }

    /// Reads the next records of the run; none at its end, where the digest is checked.
    fn refill(&mut self, file: &dyn ReadFile, buffer_bytes: usize, bytes: &mut Vec<u8>) -> Result<()> {
        self.records.clear();
        self.at = 0;
        let damaged = || {
            Error::corruption(
                file.path(),
                self.run.start,
                "sorted records do not read back as written; check the disk and try again",
            )
        };
        let n = (self.run.end - self.offset).min(buffer_bytes as u64);
        if n == 0 {
            return if self.digest.finish() == self.run.digest { Ok(()) } else { Err(damaged()) };
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

//! External sorting: any number of fixed-width records, in bounded memory.
//!
//! ```
//! use sidebloom::fs::RealFs;
//! use sidebloom::sort::ExternalSorter;
//! use std::sync::Arc;
//! # fn main() -> sidebloom::Result<()> {
//! # let dir = tempfile::tempdir().map_err(|e| sidebloom::Error::io("create", "a temporary directory", e))?;
//! # let path = dir.path().join("sort.tmp");
//! let mut sorter = ExternalSorter::new(Arc::new(RealFs), &path, 64 << 20);
//! for hash in [7u64, 3, 7] {
//!     sorter.push(hash)?;
//! }
//! let counted = sorter.counted()?.collect::<sidebloom::Result<Vec<_>>>()?;
//! assert_eq!(counted, [(3, 1), (7, 2)]);
//! # Ok(()) }
//! ```
//!
//! # How it works
//! 1. Records are collected in memory. A full buffer is sorted and appended to one temporary file: a *run*.
//! 2. To merge, each run is read sequentially through a buffer of its own. The smallest last record of all these buffers is a bound: no
//!    record at or below it is still unread. Everything up to the bound is copied to one piece and sorted there (a merge of a few
//!    presorted ranges, which the standard library's stable sort recognizes), and the emptied buffers are refilled.
//!
//! All runs share one file, so a merge needs one descriptor, however many runs there are. A digest of each run, kept in memory, is
//! compared when the run has been read to its end.

use crate::error::{Error, Result};
use crate::fs::{AppendFile, Fs, ReadFile};
use crate::hash::Digest;
use std::path::PathBuf;
use std::sync::Arc;

/// What a sorter sorts.
pub trait Record: Copy + Ord {
    /// Bytes of a record in the temporary file.
    const BYTES: usize;

    /// Appends the record to `bytes`.
    fn encode(self, bytes: &mut Vec<u8>);

    /// The record in `bytes`, which has [`BYTES`](Self::BYTES) of them; `None` for any other length.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

impl Record for u64 {
    const BYTES: usize = size_of::<u64>();

    #[inline]
    fn encode(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(u64::from_le_bytes)
    }
}

impl Record for u128 {
    const BYTES: usize = size_of::<u128>();

    #[inline]
    fn encode(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(u128::from_le_bytes)
    }
}

/// Bounds on the buffer of one run in a merge, in bytes.
const MERGE_BUFFER_MIN: usize = 4 << 10;
const MERGE_BUFFER_MAX: usize = 1 << 20;
/// Written to the temporary file at once.
const WRITE_BYTES: usize = 1 << 20;

/// Sorts records. Call order: `push* counted*`.
pub struct ExternalSorter<R> {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    memory_bytes: usize,
    /// Not yet written to the file.
    records: Vec<R>,
    /// The temporary file, created with the first run.
    file: Option<Box<dyn AppendFile>>,
    runs: Vec<Run>,
}

/// A sorted range of the temporary file.
#[derive(Clone, Copy)]
struct Run {
    start: u64,
    end: u64,
    digest: u64,
}

impl<R: Record> ExternalSorter<R> {
    /// An empty sorter that keeps up to `memory_bytes` of records in memory. Beyond that it writes all of them to a temporary file at `path`,
    /// which must not exist, and which is removed when the sorter is dropped.
    pub fn new(fs: Arc<dyn Fs>, path: impl Into<PathBuf>, memory_bytes: usize) -> Self {
        ExternalSorter {
            fs,
            path: path.into(),
            memory_bytes,
            records: Vec::new(),
            file: None,
            runs: Vec::new(),
        }
    }

    /// Adds a record, in any order and any number of times.
    ///
    /// # Errors
    /// [`Error::Io`] when the temporary file cannot be written. The sorter is then of no use.
    #[inline]
    pub fn push(&mut self, record: R) -> Result<()> {
        self.records.push(record);
        if self.records.len() * size_of::<R>() < self.memory_bytes { Ok(()) } else { self.spill() }
    }

    /// How many records were pushed.
    pub fn len(&self) -> u64 {
        let spilled = self.runs.last().map_or(0, |last| last.end / R::BYTES as u64);
        spilled + self.records.len() as u64
    }

    /// Whether no record was pushed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every distinct record in ascending order, with how often it was pushed. Can be called again, for another pass.
    ///
    /// # Errors
    /// [`Error::Io`] here and from the iterator; [`Error::Corruption`] from the iterator, at the latest at its end, when the temporary
    /// file does not read back as it was written.
    pub fn counted(&mut self) -> Result<Counted<'_, R>> {
        if self.runs.is_empty() {
            self.records.sort_unstable();
            return Ok(Counted { merge: None, in_memory: &self.records, piece: Vec::new(), at: 0 });
        }
        if !self.records.is_empty() {
            self.spill()?;
        }
        self.records = Vec::new();
        let buffer_bytes = self.memory_bytes / 2 / self.runs.len();
        let merge = Merge {
            file: self.fs.open(&self.path)?,
            buffer_bytes: buffer_bytes.clamp(MERGE_BUFFER_MIN, MERGE_BUFFER_MAX) / R::BYTES * R::BYTES,
            bytes: Vec::new(),
            runs: self.runs.iter().map(|run| RunReader::new(*run)).collect(),
        };
        Ok(Counted { merge: Some(merge), in_memory: &[], piece: Vec::new(), at: 0 })
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        self.records.sort_unstable();
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.fs.create(&self.path)?),
        };
        let start = self.runs.last().map_or(0, |last| last.end);
        let end = start + (self.records.len() * R::BYTES) as u64;
        let mut digest = Digest::default();
        let mut bytes = Vec::with_capacity(WRITE_BYTES);
        for records in self.records.chunks(WRITE_BYTES / R::BYTES) {
            bytes.clear();
            records.iter().for_each(|record| record.encode(&mut bytes));
            digest.update(&bytes);
            file.append(&bytes)?;
        }
        self.runs.push(Run { start, end, digest: digest.finish() });
        self.records.clear();
        Ok(())
    }
}

impl<R> Drop for ExternalSorter<R> {
    fn drop(&mut self) {
        if self.file.take().is_some()
            && let Err(error) = self.fs.remove(&self.path)
        {
            tracing::warn!(%error, "cannot remove the temporary file of a sort");
        }
    }
}

/// An iterator over sorted records: see [`ExternalSorter::counted`].
pub struct Counted<'s, R> {
    /// `None` when all records are in memory.
    merge: Option<Merge<R>>,
    in_memory: &'s [R],
    piece: Vec<R>,
    /// Consumed of `in_memory` or `piece`.
    at: usize,
}

impl<R: Record> Counted<'_, R> {
    /// The next record, if it is `wanted` (or whatever it is, for `None`), and how often it comes in this piece.
    #[inline]
    fn take_equal(&mut self, wanted: Option<R>) -> Option<(R, u64)> {
        let records = if self.merge.is_some() { &self.piece } else { self.in_memory };
        let rest = records.get(self.at..)?;
        let first = *rest.first().filter(|first| wanted.is_none_or(|wanted| wanted == **first))?;
        let count = rest.iter().take_while(|record| **record == first).count();
        self.at += count;
        Some((first, count as u64))
    }

    /// Moves to the next piece once this one is consumed. Returns whether there is anything left.
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        match &mut self.merge {
            None => Ok(self.at < self.in_memory.len()),
            Some(_) if self.at < self.piece.len() => Ok(true),
            Some(merge) => {
                self.at = 0;
                merge.next_piece(&mut self.piece)?;
                Ok(!self.piece.is_empty())
            }
        }
    }
}

impl<R: Record> Iterator for Counted<'_, R> {
    type Item = Result<(R, u64)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.advance() {
            Err(error) => return Some(Err(error)),
            Ok(false) => return None,
            Ok(true) => {}
        }
        let (record, mut count) = self.take_equal(None)?;
        // At the end of a piece, the next one may continue with the same record.
        while self.merge.is_some() && self.at == self.piece.len() {
            match self.advance() {
                Err(error) => return Some(Err(error)),
                Ok(_) => match self.take_equal(Some(record)) {
                    Some((_, more)) => count += more,
                    None => break,
                },
            }
        }
        Some(Ok((record, count)))
    }
}

/// Merges the runs of a file, piece by piece.
struct Merge<R> {
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
    /// Replaces `piece` by the next records in order. Two pieces share at most the record between them. Empty at the end.
    fn next_piece(&mut self, piece: &mut Vec<R>) -> Result<()> {
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
        // The merge takes only what is below a buffer's last record. If that were too small, the merge would end early, before the digest
        // is checked.
        if self.records.is_sorted() { Ok(()) } else { Err(damaged()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::RealFs;
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    fn check<R: Record + Debug>(records: impl Iterator<Item = R>, memory_bytes: usize) {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter = ExternalSorter::new(Arc::new(RealFs), dir.path().join("sort"), memory_bytes);
        let mut expected = BTreeMap::new();
        for record in records {
            *expected.entry(record).or_insert(0) += 1;
            sorter.push(record).unwrap();
        }
        assert_eq!(sorter.len(), expected.values().sum::<u64>());
        let expected: Vec<(R, u64)> = expected.into_iter().collect();
        for pass in 0..2 {
            let found: Vec<_> = sorter.counted().unwrap().map(Result::unwrap).collect();
            assert_eq!(found, expected, "pass {pass} in {memory_bytes} bytes");
        }
        assert!(std::fs::read_dir(dir.path()).unwrap().count() <= 1, "one file for all runs");
        drop(sorter);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file is removed");
    }

    #[test]
    fn records_come_out_sorted_and_counted_whether_they_fit_in_memory_or_not() {
        for memory_bytes in [16, 1000, 4096, 100_000, 1 << 20] {
            for records in [0, 1, 100, 20_000u64] {
                if records > 100 && memory_bytes < 1000 {
                    continue; // A run for every record; a hundred will do.
                }
                let hash = |i: u64| crate::hash::hash_key(&(i % 7000 * (i % 3)).to_le_bytes(), 5);
                check((0..records).map(hash), memory_bytes);
                check((0..records).map(|i| u128::from(hash(i)) << (i % 64)), memory_bytes);
                check(0..records, memory_bytes);
                check((0..records).rev(), memory_bytes);
                check((0..records).map(|i| i / 9000), memory_bytes); // Equal records beyond a merge's buffer.
            }
        }
    }

    #[test]
    fn a_damaged_run_is_an_error_that_names_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sort");
        let mut sorter = ExternalSorter::new(Arc::new(RealFs), &path, 800);
        (0..250u64).for_each(|i| sorter.push(i * i).unwrap());
        assert_eq!(sorter.counted().unwrap().count(), 250);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[880] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let error = sorter.counted().unwrap().find_map(Result::err).unwrap().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }

    #[test]
    fn zeros_at_the_end_of_a_buffer_are_an_error_and_not_an_early_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sort");
        let mut sorter = ExternalSorter::new(Arc::new(RealFs), &path, 16 << 10);
        (0..4096u64).for_each(|i| sorter.push(i + 1).unwrap());
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[3072..4096].fill(0);
        std::fs::write(&path, bytes).unwrap();
        assert!(sorter.counted().unwrap().any(|record| record.is_err()));
    }
}

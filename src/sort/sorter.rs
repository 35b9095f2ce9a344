//! Sorting in bounded memory.

use super::merge::{Chunk, MERGE_BUFFER_MIN, Merge};
use super::record::Record;
use crate::error::Result;
use crate::fs::{AppendFile, Fs};
use crate::hash::Digest;
use std::path::PathBuf;
use std::sync::Arc;

/// Written to the temporary file at once.
const WRITE_BYTES: usize = 1 << 20;

/// Sorts records. Call order: `push* counted*`.
pub struct ExternalSorter<R> {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    memory_bytes: usize,
    /// Not yet written to the file.
    records: Vec<R>,
    /// The temporary file, created with the first chunk.
    file: Option<Box<dyn AppendFile>>,
    chunks: Vec<Chunk>,
}

impl<R: Record> ExternalSorter<R> {
    /// An empty sorter that keeps up to `memory_bytes` of records in memory. Beyond that it writes all of
    /// them to a temporary file at `path`, which must not exist. Dropping the sorter removes the file.
    pub fn new(fs: Arc<dyn Fs>, path: impl Into<PathBuf>, memory_bytes: usize) -> Self {
        const { assert!(R::BYTES > 0 && R::BYTES <= MERGE_BUFFER_MIN) };
        ExternalSorter {
            fs,
            path: path.into(),
            memory_bytes,
            records: Vec::new(),
            file: None,
            chunks: Vec::new(),
        }
    }

    /// Adds a record, in any order and any number of times.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) when the temporary file cannot be written. The sorter is then useless.
    #[inline]
    pub fn push(&mut self, record: R) -> Result<()> {
        let spills = self.is_about_to_spill();
        self.records.push(record);
        if spills { self.spill() } else { Ok(()) }
    }

    /// Whether the next [`push`](Self::push) writes to the temporary file.
    #[inline]
    pub fn is_about_to_spill(&self) -> bool {
        (self.records.len() + 1) * size_of::<R>() >= self.memory_bytes
    }

    /// The number of records pushed.
    pub fn len(&self) -> u64 {
        let spilled = self.chunks.last().map_or(0, |last| last.end / R::BYTES as u64);
        spilled + self.records.len() as u64
    }

    /// Whether no record was pushed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every distinct record in ascending order, with how often it was pushed. Call again for another pass.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) here and from the iterator.
    /// [`Error::Corruption`](crate::Error::Corruption) from the iterator, at its end at the latest, when the
    /// temporary file does not read back as written.
    pub fn counted(&mut self) -> Result<Counted<'_, R>> {
        if self.chunks.is_empty() {
            self.records.sort_unstable();
            return Ok(Counted { merge: None, in_memory: &self.records, piece: Vec::new(), at: 0 });
        }
        if !self.records.is_empty() {
            self.spill()?;
        }
        self.records = Vec::new();
        let merge = Merge::new(self.fs.open(&self.path)?, &self.chunks, self.memory_bytes);
        Ok(Counted { merge: Some(merge), in_memory: &[], piece: Vec::new(), at: 0 })
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        self.records.sort_unstable();
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.fs.create(&self.path)?),
        };
        let start = self.chunks.last().map_or(0, |last| last.end);
        let end = start + (self.records.len() * R::BYTES) as u64;
        let mut digest = Digest::default();
        let mut bytes = Vec::with_capacity(WRITE_BYTES);
        for records in self.records.chunks(WRITE_BYTES / R::BYTES) {
            bytes.clear();
            records.iter().for_each(|record| record.encode(&mut bytes));
            digest.update(&bytes);
            file.append(&bytes)?;
        }
        self.chunks.push(Chunk { start, end, digest: digest.finish() });
        self.records.clear();
        Ok(())
    }
}

impl<R> Drop for ExternalSorter<R> {
    fn drop(&mut self) {
        if self.file.take().is_some()
            && let Err(error) = self.fs.remove(&self.path)
        {
            tracing::warn!(%error, "cannot remove a sort's temporary file");
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
    /// The next record, if it is `wanted` (or any, for `None`), and how often it occurs in this piece.
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

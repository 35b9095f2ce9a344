//! Reads a log back after a crash.
//!
//! Records are taken from the front for as long as each is valid. Then the question is what ended them:
//!
//! 1. Nothing valid follows: the last append was cut short ([`End::Torn`]).
//! 2. Valid records follow, all of them written before anything from the damage on was synced, and a sector between reads as
//!    zeros: a power cut, which may keep a later write and lose an earlier one. What is before the damage is a prefix of what was
//!    written, and that is what a store without sync promises (invariant I4): [`End::Lost`].
//! 3. Anything else was written correctly and damaged later: [`Error::Corruption`].

use super::batch::is_well_formed;
use super::format::{HEADER_BYTES, Header, RECORD_HEAD_BYTES, RecordHead, record_crc};
use crate::error::{Error, Result};
use crate::fs::{Fs, ReadFile, SECTOR_BYTES, has_lost_sector};
use crate::id::FileId;
use crate::key::Seq;
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;

/// Bytes read at a time; a longer record is read whole.
const CHUNK_BYTES: usize = 1 << 20;

/// What a log held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// The sequence number after the last operation replayed.
    pub next_seq: Seq,
    /// Why no more was replayed.
    pub end: End,
}

/// How a log ended. Offsets are in bytes, of the first thing not replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// At a record's end.
    Clean,
    /// The last append was cut short.
    Torn {
        /// Where.
        offset: u64,
    },
    /// A power cut kept writes behind this offset and lost the one at it; none of them had been synced.
    Lost {
        /// Where.
        offset: u64,
    },
    /// The log starts later than the one before it ends: that one lost its tail. Nothing was replayed.
    Gap {
        /// The sequence number that the log starts with.
        first_seq: Seq,
        /// Whether any of this log was synced, as far as its records tell. Then what is missing before it had been synced too.
        had_synced: bool,
    },
}

/// Reads the log `id` of the store `store_id`, which should continue at sequence number `expected`, and gives `sink` every batch in
/// order: the sequence number of its first operation, its bytes (for [`ops`](super::ops)), the number of its operations. Batches
/// before `expected` are skipped.
///
/// # Errors
/// [`Error::Corruption`] for damage that no crash explains, [`Error::UnsupportedVersion`], whatever the file system or `sink` says.
pub fn replay(
    fs: &dyn Fs,
    path: &Path,
    id: FileId,
    store_id: u64,
    expected: Seq,
    sink: &mut dyn FnMut(Seq, Bytes, u32) -> Result<()>,
) -> Result<Replay> {
    let mut log = Log::open(fs, path, Header::tag(id, store_id))?;
    let Some(header) = log.header()? else {
        return Ok(Replay { next_seq: expected, end: log.end_at(0, expected)? });
    };
    if (header.id, header.store_id) != (id, store_id) {
        let (is, of) = (header.id, header.store_id);
        return Err(log.corruption(
            0,
            format!("it belongs to log {is} of store {of:#x}, not to log {id} of {store_id:#x}"),
        ));
    }
    if header.first_seq > expected {
        log.records(header.first_seq, &mut |_, _, _| Ok(()))?;
        let end = End::Gap { first_seq: header.first_seq, had_synced: log.had_synced };
        return Ok(Replay { next_seq: expected, end });
    }
    // A recovery that crashed before its end leaves a log that repeats the ones before it, batch by batch.
    let replay = log.records(header.first_seq, &mut |first_seq, payload, count| {
        if first_seq >= expected {
            return sink(first_seq, payload, count);
        }
        match first_seq + Seq::from(count) <= expected {
            true => Ok(()),
            false => Err(Error::corruption(
                path,
                0,
                format!("a batch starts at sequence number {first_seq} and ends after {expected}, where a batch must start"),
            )),
        }
    })?;
    Ok(Replay { next_seq: replay.next_seq.max(expected), ..replay })
}

/// Which store a log belongs to and where it starts, for a repair without a manifest. `None` when a crash at creation left no header.
///
/// # Errors
/// As [`replay`].
pub fn identify(fs: &dyn Fs, path: &Path) -> Result<Option<Header>> {
    Log::open(fs, path, 0)?.header()
}

/// A log file, read through a window that moves forward.
struct Log {
    file: Arc<dyn ReadFile>,
    len: u64,
    tag: u32,
    window: Vec<u8>,
    window_at: u64,
    had_synced: bool,
}

impl Log {
    fn open(fs: &dyn Fs, path: &Path, tag: u32) -> Result<Self> {
        let file = fs.open(path)?;
        let len = file.len()?;
        Ok(Log { file, len, tag, window: Vec::new(), window_at: 0, had_synced: false })
    }

    fn corruption(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::corruption(self.file.path(), offset, what)
    }

    /// The bytes from `at` on, at least `n` of them, which must lie within the file.
    fn view(&mut self, at: u64, n: usize) -> Result<&[u8]> {
        let inside =
            at.checked_sub(self.window_at).is_some_and(|skip| skip + n as u64 <= self.window.len() as u64);
        if !inside {
            let size = (n.max(CHUNK_BYTES) as u64).min(self.len - at);
            self.window.resize(size as usize, 0);
            self.window_at = at;
            self.file.read_exact_at(&mut self.window, at)?;
        }
        Ok(&self.window[(at - self.window_at) as usize..])
    }

    /// `None` when a crash at creation left no header.
    fn header(&mut self) -> Result<Option<Header>> {
        if self.len < HEADER_BYTES as u64 {
            return Ok(None);
        }
        let path = self.file.clone();
        let bytes = &self.view(0, HEADER_BYTES)?[..HEADER_BYTES];
        let decoded = Header::decode(bytes, path.path())?;
        let was_written = bytes.iter().any(|&byte| byte != 0);
        if decoded.is_none() && was_written && self.len > HEADER_BYTES as u64 {
            return Err(
                self.corruption(0, "the header of the log fails its checksum; run `sidebloom repair`")
            );
        }
        Ok(decoded)
    }

    /// Replays all records; `next` is the sequence number of the first.
    fn records(
        &mut self,
        mut next: Seq,
        sink: &mut dyn FnMut(Seq, Bytes, u32) -> Result<()>,
    ) -> Result<Replay> {
        let mut at = HEADER_BYTES as u64;
        while at < self.len {
            let Some((head, after)) = self.record(at, 0)? else {
                return Ok(Replay { next_seq: next, end: self.end_at(at, next)? });
            };
            if head.first_seq != next {
                let found = head.first_seq;
                return Err(self.corruption(
                    at,
                    format!("a record of sequence number {found} stands where {next} must follow"),
                ));
            }
            let payload =
                &self.view(at, head.record_len() as usize)?[RECORD_HEAD_BYTES..head.record_len() as usize];
            if !is_well_formed(payload, head.count) {
                return Err(
                    self.corruption(at, format!("the record does not hold {} operations", head.count))
                );
            }
            sink(next, Bytes::copy_from_slice(payload), head.count)?;
            next = after;
            at += head.record_len();
        }
        Ok(Replay { next_seq: next, end: End::Clean })
    }

    /// The valid record of this log at `at` whose sequence number is at least `least`, with the sequence number after it.
    /// The checksum comes last: it is only computed where everything else fits.
    fn record(&mut self, at: u64, least: Seq) -> Result<Option<(RecordHead, Seq)>> {
        let room = self.len - at;
        if room < RECORD_HEAD_BYTES as u64 {
            return Ok(None);
        }
        let tag = self.tag;
        let fits = |head: &RecordHead| {
            head.tag == tag
                && head.record_len() <= room
                && head.count > 0
                && head.first_seq >= least
                && head.synced <= at
        };
        let head = RecordHead::decode(self.view(at, RECORD_HEAD_BYTES)?).filter(fits);
        let Some((head, after)) = head.and_then(|head| Some((head, head.next_seq()?))) else {
            return Ok(None);
        };
        let record_len = head.record_len() as usize;
        if record_crc(&self.view(at, record_len)?[..record_len]) != head.crc {
            return Ok(None);
        }
        self.had_synced |= head.synced > 0;
        Ok(Some((head, after)))
    }

    /// What ended the log at `offset`, where no valid record stands and sequence number `next` would follow.
    fn end_at(&mut self, offset: u64, next: Seq) -> Result<End> {
        let Some((first_later, mut head, mut after)) = self.find_record(offset, next)? else {
            return Ok(End::Torn { offset });
        };
        let damage = |note| {
            format!(
                "a record fails its checksum{note} and a valid one follows at {first_later}: the log was damaged after it was \
                 written; run `sidebloom repair`"
            )
        };
        let mut at = first_later;
        loop {
            if head.synced > offset {
                return Err(self.corruption(offset, damage(" in a part that had been synced")));
            }
            match self.find_record(at + head.record_len(), after)? {
                Some(later) => (at, head, after) = later,
                None => break,
            }
        }
        if self.lost_sector_between(offset, first_later)? {
            return Ok(End::Lost { offset });
        }
        Err(self.corruption(offset, damage("")))
    }

    /// The first valid record at or after `at`, wherever it starts.
    fn find_record(&mut self, mut at: u64, least: Seq) -> Result<Option<(u64, RecordHead, Seq)>> {
        let tag = self.tag.to_le_bytes();
        while at + RECORD_HEAD_BYTES as u64 <= self.len {
            let view = self.view(at, RECORD_HEAD_BYTES)?;
            let Some(skip) = view.windows(tag.len()).position(|bytes| bytes == tag) else {
                at += (view.len() - (tag.len() - 1)) as u64;
                continue;
            };
            at += skip as u64;
            if let Some((head, after)) = self.record(at, least)? {
                return Ok(Some((at, head, after)));
            }
            at += 1;
        }
        Ok(None)
    }

    /// Whether a sector between `from` and the valid record at `to` reads as zeros. The sector that this record begins in was not
    /// lost, and what is zero before `to` in it says nothing.
    fn lost_sector_between(&mut self, mut from: u64, to: u64) -> Result<bool> {
        let sector = SECTOR_BYTES as u64;
        let to = to - to % sector;
        while from < to {
            let size = (CHUNK_BYTES as u64 - from % sector).min(to - from) as usize;
            if has_lost_sector(&self.view(from, size)?[..size], from) {
                return Ok(true);
            }
            from += size as u64;
        }
        Ok(false)
    }
}

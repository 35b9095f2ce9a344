//! Reads a log back after a crash.
//!
//! Records are replayed from the front while they are valid. The first invalid one has one of three causes:
//!
//! 1. It was known to be synced, so it was damaged later: [`Error::Corruption`]. Later records tell what was
//!    synced before them, and the caller passes what the manifest knows.
//! 2. The file ends within the record, or a sector of the record reads as zeros from the record's start on:
//!    the append did not fully reach the disk. If nothing valid follows, it was the last append
//!    ([`LogEnd::Torn`]). If valid records follow, a power cut kept a later write and lost an earlier one
//!    ([`LogEnd::Lost`]). Everything before the damage is a prefix of what was written, as a store without
//!    sync promises (invariant I4).
//! 3. Otherwise it was fully written and damaged later: [`Error::Corruption`], even for the last record.
//!
//! [`format`](super::format) lists what remains ambiguous.

use super::batch::MAX_BATCH_BYTES;
use super::format::{
    HEADER_BYTES, LogHeader, RECORD_BYTES_MIN, RECORD_HEAD_BYTES_MAX, RecordHead, is_well_formed, later_kind,
};
use crate::error::{Error, Result};
use crate::fs::{Fs, HOLE_BYTES, Pieces, ReadFile, SECTOR_BYTES};
use crate::id::FileId;
use crate::key::Seq;
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;

/// The outcome of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// The sequence number after the last operation replayed.
    pub next_seq: Seq,
    /// How the log ended.
    pub end: LogEnd,
    /// How far the file was read; `None` if it has no header, or nothing was replayed because of a gap.
    pub read: Option<ReadTo>,
}

/// A part of a log that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadTo {
    /// The sequence number that the log begins with.
    pub first_seq: Seq,
    /// Offset of the first byte that was not read.
    pub offset: u64,
    /// The sequence number of the operation there.
    pub next_seq: Seq,
}

/// How a log ended. Offsets are in bytes, of the first byte that was not replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    /// At a record boundary.
    Clean,
    /// The last append was cut short.
    Torn {
        /// Where.
        offset: u64,
    },
    /// A power cut lost the write at this offset and kept later ones; none of them had been synced.
    Lost {
        /// Where.
        offset: u64,
    },
    /// The log starts after the end of the previous one, which lost its tail. Nothing was replayed.
    Gap {
        /// The sequence number that the log starts with.
        first_seq: Seq,
        /// Whether a record shows that part of this log was synced. Then the missing operations before it
        /// were synced too.
        had_synced: bool,
    },
}

/// What is known about a log before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedLog {
    /// Its number.
    pub id: FileId,
    /// The store that it belongs to.
    pub store_id: u64,
    /// The sequence number that it should continue at.
    pub next_seq: Seq,
    /// Number of its bytes known to be synced; 0 if unknown.
    pub synced: u64,
}

/// Receives each batch of a log: the sequence number of its first operation, its bytes (for
/// [`ops`](super::ops)), and the number of its operations.
pub type BatchSink<'a> = &'a mut dyn FnMut(Seq, Bytes, u32) -> Result<()>;

/// [`replay_start`] of a whole file.
///
/// # Errors
/// The errors of [`replay_start`].
#[cfg(any(test, fuzzing))]
pub fn replay(fs: &dyn Fs, path: &Path, expected: ExpectedLog, sink: BatchSink<'_>) -> Result<Replay> {
    let file = fs.open(path)?;
    let len = file.len()?;
    replay_start(file, len, expected, sink)
}

/// Reads the first `len` bytes of a log, which may be growing, and passes every batch to `sink`, in order.
/// Skips batches before the expected sequence number.
///
/// # Errors
/// [`Error::Corruption`] for damage that no crash explains, [`Error::UnsupportedVersion`],
/// [`Error::UnknownCode`], and the errors of the file system and `sink`.
pub fn replay_start(
    file: Arc<dyn ReadFile>,
    len: u64,
    expected: ExpectedLog,
    sink: BatchSink<'_>,
) -> Result<Replay> {
    let mut log = LogReader::of(file, len, LogHeader::tag(expected.id, expected.store_id));
    let replayed = replay_from_header(&mut log, expected, sink)?;
    let end = match replayed.end {
        LogEnd::Clean | LogEnd::Gap { .. } => log.len,
        LogEnd::Torn { offset } | LogEnd::Lost { offset } => offset,
    };
    let synced = expected.synced;
    if end < synced {
        let what = format!(
            "the log ends here, but {synced} bytes of it had been synced, so synced writes are missing; run `sidebloom repair`"
        );
        return Err(log.corruption(end, what));
    }
    Ok(replayed)
}

fn replay_from_header(log: &mut LogReader, expected: ExpectedLog, sink: BatchSink<'_>) -> Result<Replay> {
    let ExpectedLog { id, store_id, next_seq: expected, .. } = expected;
    let Some(header) = log.header()? else {
        return Ok(Replay { next_seq: expected, end: log.end_at(0, expected)?, read: None });
    };
    log.check_identity(&header, id, store_id)?;
    let begin =
        ReadTo { first_seq: header.first_seq, offset: HEADER_BYTES as u64, next_seq: header.first_seq };
    if header.first_seq > expected {
        log.records(begin, Seq::MAX, &mut |_, _, _| Ok(()))?;
        let end = LogEnd::Gap { first_seq: header.first_seq, had_synced: log.had_synced };
        return Ok(Replay { next_seq: expected, end, read: None });
    }
    let (read, end) = log.records(begin, expected, sink)?;
    Ok(Replay { next_seq: read.next_seq.max(expected), end, read: Some(read) })
}

/// The header of a log, for a repair without a manifest. `None` when a crash at creation left no header.
///
/// # Errors
/// The errors of [`replay_start`].
pub fn identify(fs: &dyn Fs, path: &Path) -> Result<Option<LogHeader>> {
    LogReader::open(fs, path, 0)?.header()
}

/// Reads a log file through a window that moves forward. A record is read in full only once its checksum has
/// matched.
pub(super) struct LogReader {
    pieces: Pieces,
    pub len: u64,
    pub tag: u32,
    had_synced: bool,
    /// A hole in the file ended a search for records.
    met_hole: bool,
}

impl LogReader {
    pub fn open(fs: &dyn Fs, path: &Path, tag: u32) -> Result<Self> {
        let file = fs.open(path)?;
        let len = file.len()?;
        Ok(LogReader::of(file, len, tag))
    }

    /// Reads the first `len` bytes of an open log.
    pub fn of(file: Arc<dyn ReadFile>, len: u64, tag: u32) -> Self {
        LogReader { pieces: Pieces::new(file, len), len, tag, had_synced: false, met_hole: false }
    }

    /// Checks that the header belongs to this log of this store.
    pub fn check_identity(&self, header: &LogHeader, id: FileId, store_id: u64) -> Result<()> {
        if (header.id, header.store_id) == (id, store_id) {
            return Ok(());
        }
        let (is, of) = (header.id, header.store_id);
        let what =
            format!("the file belongs to log {is} of store {of:#x}, not to log {id} of store {store_id:#x}");
        Err(self.corruption(0, what))
    }

    /// For salvage: treats unreadable bytes as damage.
    pub fn open_around_errors(fs: &dyn Fs, path: &Path, tag: u32) -> Result<Self> {
        let log = LogReader::open(fs, path, tag)?;
        Ok(LogReader { pieces: log.pieces.around_errors(), ..log })
    }

    fn corruption(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::corruption(self.pieces.path(), offset, what)
    }

    /// The error for an operation that only a later version knows, in the record at `offset`.
    pub fn unknown_operation(&self, offset: u64, kind: u8) -> Error {
        Error::unknown_code(self.pieces.path(), offset, format!("a record with an operation of kind {kind}"))
    }

    /// At least `n` bytes from `at` on, or all up to the end of the log.
    pub fn view(&mut self, at: u64, n: usize) -> Result<&[u8]> {
        self.pieces.view(at, n)
    }

    /// The header; `None` when a crash at creation left none.
    pub fn header(&mut self) -> Result<Option<LogHeader>> {
        if self.len < HEADER_BYTES as u64 {
            return Ok(None);
        }
        let path = self.pieces.path().to_path_buf();
        let bytes = self.view(0, HEADER_BYTES)?;
        let bytes = bytes.get(..HEADER_BYTES).unwrap_or(bytes);
        let decoded = LogHeader::decode(bytes, &path)?;
        let was_written = bytes.iter().any(|&byte| byte != 0);
        if decoded.is_none() && was_written {
            return Err(self.corruption(0, "log header checksum mismatch; run `sidebloom repair`"));
        }
        Ok(decoded)
    }

    /// Replays all records from `begin` on. Batches before `expected` are skipped: an interrupted recovery
    /// leaves a log that repeats the previous ones, batch by batch.
    pub fn records(&mut self, begin: ReadTo, expected: Seq, sink: BatchSink<'_>) -> Result<(ReadTo, LogEnd)> {
        let ReadTo { offset: mut at, next_seq: mut next, .. } = begin;
        while at < self.len {
            let Some((head, after)) = self.record(at, 0)? else {
                return Ok((ReadTo { offset: at, next_seq: next, ..begin }, self.end_at(at, next)?));
            };
            let is_gap = head.count == 0;
            if head.first_seq != next && !(is_gap && head.first_seq > next) {
                let found = head.first_seq;
                return Err(self.corruption(
                    at,
                    format!("a record has sequence number {found}, but {next} must follow"),
                ));
            }
            let payload = self.payload(at, &head)?;
            if !is_well_formed(payload, head.count) {
                let what = format!("the record does not hold {} operations", head.count);
                let later = later_kind(payload, head.count);
                return Err(match later {
                    Some(kind) => self.unknown_operation(at, kind),
                    None => self.corruption(at, what),
                });
            }
            if !is_gap && next >= expected {
                let payload = Bytes::copy_from_slice(payload);
                sink(next, payload, head.count)?;
            } else if !is_gap && after > expected {
                let what = format!(
                    "the batch at sequence number {next} runs past {expected}, where a batch must start"
                );
                return Err(self.corruption(at, what));
            }
            next = after;
            at += head.record_len();
        }
        Ok((ReadTo { offset: at, next_seq: next, ..begin }, LogEnd::Clean))
    }

    /// The payload of the valid record at `at`.
    pub fn payload(&mut self, at: u64, head: &RecordHead) -> Result<&[u8]> {
        let record = self.view(at, head.record_len() as usize)?;
        Ok(record
            .get(head.len()..)
            .and_then(|rest| rest.get(..head.payload_len as usize))
            .unwrap_or_default())
    }

    /// The head of a record of this log at `at`; the record may extend beyond the end of the file.
    fn head(&mut self, at: u64) -> Result<Option<RecordHead>> {
        let tag = self.tag;
        Ok(RecordHead::decode(self.view(at, RECORD_HEAD_BYTES_MAX)?).filter(|head| head.tag == tag))
    }

    /// The record of this log at `at`, if it is valid and has a sequence number of at least `least`, with the
    /// sequence number after it. The payload's checksum is computed last, when everything else fits.
    pub fn record(&mut self, at: u64, least: Seq) -> Result<Option<(RecordHead, Seq)>> {
        let room = self.len.saturating_sub(at);
        let fits = |head: &RecordHead| {
            let is_possible = head.record_len() <= room && head.payload_len as usize <= MAX_BATCH_BYTES;
            is_possible && head.first_seq >= least && head.synced <= at
        };
        let head = self.head(at)?.filter(fits);
        let Some((head, after)) = head.and_then(|head| Some((head, head.next_seq()?))) else {
            return Ok(None);
        };
        let (from, to) = (at + head.len() as u64, at + head.record_len());
        if self.pieces.crc(from, to)? != head.payload_crc {
            return Ok(None);
        }
        self.had_synced |= head.synced > 0;
        Ok(Some((head, after)))
    }

    /// Why there is no valid record at `offset`, where sequence number `next` would follow.
    fn end_at(&mut self, offset: u64, next: Seq) -> Result<LogEnd> {
        let may_be_torn = self.may_be_torn(offset, next)?;
        let Some((first_later, mut head, mut after)) = self.find_record(offset, next)? else {
            return if self.met_hole {
                let what = "no record, and more zeros than any crash leaves; run `sidebloom repair`";
                Err(self.corruption(offset, what))
            } else if may_be_torn {
                Ok(LogEnd::Torn { offset })
            } else {
                let what = "checksum mismatch in the last record, which was fully written: the log was damaged later; run `sidebloom \
                            repair`";
                Err(self.corruption(offset, what))
            };
        };
        let damage = |note| {
            format!(
                "record checksum mismatch{note}, with a valid record at {first_later}: the log was damaged after it was written; run \
                 `sidebloom repair`"
            )
        };
        let mut at = first_later;
        loop {
            if head.synced > offset {
                return Err(self.corruption(offset, damage(" in a synced part")));
            }
            match self.find_record(at + head.record_len(), after)? {
                Some(later) => (at, head, after) = later,
                None => break,
            }
        }
        if may_be_torn { Ok(LogEnd::Lost { offset }) } else { Err(self.corruption(offset, damage(""))) }
    }

    /// The first valid record at or after `at`, at any offset. A hole in the file ends the search.
    pub fn find_record(&mut self, mut at: u64, least: Seq) -> Result<Option<(u64, RecordHead, Seq)>> {
        let tag = self.tag.to_le_bytes();
        while at + RECORD_BYTES_MIN as u64 <= self.len {
            let Some(behind) = self.behind_zeros(at)? else { return Ok(None) };
            at = behind;
            let view = self.view(at, RECORD_BYTES_MIN)?;
            let Some(skip) = view.windows(tag.len()).position(|bytes| bytes == tag) else {
                at += (view.len() + 1).saturating_sub(tag.len()).max(1) as u64;
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

    /// The first nonzero byte from `at` on; `None` after a hole. Every byte of a tag is nonzero.
    pub fn behind_zeros(&mut self, at: u64) -> Result<Option<u64>> {
        let zeros = self.pieces.zeros(at)?;
        self.met_hole |= zeros > HOLE_BYTES;
        Ok((!self.met_hole).then_some(at + zeros))
    }

    /// Whether a crash explains that there is no valid record (at 0: no header) at `offset`: the file ends
    /// within it, or one of its sectors is zero from the record's start on. A lost sector holds nothing of
    /// what was appended with the record or later. A head that does not belong here was written by mistake,
    /// and its record may extend beyond the end of the file.
    fn may_be_torn(&mut self, offset: u64, next: Seq) -> Result<bool> {
        let head = if offset == 0 { None } else { self.head(offset)? };
        let belongs = |head: &RecordHead| {
            let follows = head.first_seq == next || head.count == 0 && head.first_seq > next;
            follows && head.synced <= offset
        };
        if head.as_ref().is_some_and(|head| !belongs(head)) {
            return Ok(false);
        }
        let end = match head {
            Some(head) => offset + head.record_len(),
            None if offset == 0 => HEADER_BYTES as u64,
            None => match RecordHead::end_in(self.view(offset, RECORD_HEAD_BYTES_MAX)?) {
                Some(bytes) => offset + bytes as u64,
                None => offset + RECORD_HEAD_BYTES_MAX as u64,
            },
        };
        if end > self.len {
            return Ok(true);
        }
        let mut from = offset;
        while from < end {
            let to = (from / SECTOR_BYTES as u64 + 1) * SECTOR_BYTES as u64;
            let size = (to.min(self.len) - from) as usize;
            if self.view(from, size)?.iter().take(size).all(|&byte| byte == 0) {
                return Ok(true);
            }
            from = to;
        }
        Ok(false)
    }
}

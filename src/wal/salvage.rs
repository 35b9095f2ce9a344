//! Reads what is readable of a damaged log, before and after the damage. For repair only: opening a store
//! uses nothing after damage.

use super::format::{
    HEADER_BYTES, LogHeader, RECORD_BYTES_MIN, RECORD_HEAD_BYTES_MAX, RecordHead, is_well_formed, later_kind,
};
use super::reader::{BatchSink, ExpectedLog, LogReader};
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::id::FileId;
use crate::key::Seq;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::path::Path;

/// The unreadable parts of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unreadable {
    /// Offset of the first one, in bytes; `None` if the whole log is readable.
    pub first: Option<u64>,
    /// Their total length in bytes.
    pub bytes: u64,
}

impl Unreadable {
    fn add(&mut self, from: u64, to: u64) {
        if from < to {
            self.first.get_or_insert(from);
            self.bytes = self.bytes.saturating_add(to - from);
        }
    }
}

/// Where the sequence numbers of a log begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStart {
    /// With this number, from the header, or from the record after a damaged header.
    At(Seq),
    /// Header and first record are damaged, or the first record is a gap, which does not say where it begins.
    Damaged,
    /// The file has no record, and no room for one.
    Missing,
}

/// Looks for the start of a log.
///
/// # Errors
/// [`Error::UnsupportedVersion`], or a failed open. Damage and unreadable bytes are not errors.
pub fn find_start(fs: &dyn Fs, path: &Path, id: FileId, store_id: u64) -> Result<LogStart> {
    let mut log = LogReader::open_around_errors(fs, path, LogHeader::tag(id, store_id))?;
    let is_damaged = match log.header() {
        Ok(Some(header)) if (header.id, header.store_id) == (id, store_id) => {
            return Ok(LogStart::At(header.first_seq));
        }
        Ok(_) => false,
        Err(Error::Corruption { .. }) => true,
        Err(error) => return Err(error),
    };
    Ok(match log.find_record(0, 0)? {
        Some((offset, head, _)) if offset == HEADER_BYTES as u64 && head.count > 0 => {
            LogStart::At(head.first_seq)
        }
        None if !is_damaged && log.len <= HEADER_BYTES as u64 => LogStart::Missing,
        _ => LogStart::Damaged,
    })
}

/// The tag of the records that fill the end of a file, for a log whose store is unknown. `None` if there are
/// none. A record embedded in a value never reaches the end of the file.
///
/// # Errors
/// A file that cannot be opened. Damage and unreadable bytes are not errors.
pub fn find_tag(fs: &dyn Fs, path: &Path) -> Result<Option<u32>> {
    let mut log = LogReader::open_around_errors(fs, path, 0)?;
    let mut at = 0;
    while at + RECORD_BYTES_MIN as u64 <= log.len {
        let Some(behind) = log.behind_zeros(at)? else { return Ok(None) };
        at = behind;
        let Some(head) = RecordHead::decode(log.view(at, RECORD_HEAD_BYTES_MAX)?) else {
            at += 1;
            continue;
        };
        log.tag = head.tag;
        let mut end = at;
        while let Some((head, _)) = log.record(end, 0)? {
            end += head.record_len();
        }
        if end == log.len && end > at {
            return Ok(Some(head.tag));
        }
        at = end.max(at + 1);
    }
    Ok(None)
}

/// Passes every batch of a log from the expected sequence number on to `sink`, in order. Its records carry
/// `tag`. There may be gaps between batches. A gap that the log itself records after an intact record is
/// passed on as a batch without operations.
///
/// # Errors
/// [`Error::UnsupportedVersion`], [`Error::UnknownCode`], a file that cannot be opened, and the errors of
/// `sink`. Damage and unreadable bytes are not errors.
pub fn salvage(
    fs: &dyn Fs,
    path: &Path,
    expected: ExpectedLog,
    tag: u32,
    sink: BatchSink<'_>,
) -> Result<Unreadable> {
    let mut log = LogReader::open_around_errors(fs, path, tag)?;
    let has_header = match log.header() {
        Ok(header) => header.is_some_and(|h| (h.id, h.store_id) == (expected.id, expected.store_id)),
        Err(Error::Corruption { .. }) => false,
        Err(error) => return Err(error),
    };
    let mut at = if has_header { HEADER_BYTES as u64 } else { 0 };
    let (mut records, mut unreadable) = (Vec::new(), Unreadable::default());
    while at < log.len {
        let found = match log.record(at, 0)? {
            Some((head, _)) => Some((at, head)),
            None => log.find_record(at, expected.next_seq)?.map(|(start, head, _)| (start, head)),
        };
        let Some((start, head)) = found else {
            unreadable.add(at, log.len);
            break;
        };
        unreadable.add(at, start);
        at = start + head.record_len();
        let payload = log.payload(start, &head)?;
        if is_well_formed(payload, head.count) {
            records.push((head.first_seq, start, at));
        } else if let Some(kind) = later_kind(payload, head.count) {
            return Err(log.unknown_operation(start, kind)); // Leaving it out would lose it.
        } else {
            unreadable.add(start, at);
        }
    }
    let mut sound_ends: BTreeSet<u64> = records.iter().map(|(_, _, end)| *end).collect();
    sound_ends.extend(has_header.then_some(HEADER_BYTES as u64));
    // A misdirected write may have left a second copy of a record anywhere, even before older ones.
    records.sort_unstable();
    let mut next = expected.next_seq;
    for (first_seq, start, end) in records {
        if first_seq < next {
            continue;
        }
        let Some((head, after)) = log.record(start, 0)? else {
            unreadable.add(start, end); // It was readable a moment ago.
            continue;
        };
        if head.count > 0 || sound_ends.contains(&start) {
            let payload = Bytes::copy_from_slice(log.payload(start, &head)?);
            sink(first_seq, payload, head.count)?;
        }
        next = after;
    }
    Ok(unreadable)
}

//! The byte map of a log file, format version 3, the one that this build writes. Integers are little-endian;
//! `varint` is LEB128.
//!
//! ```text
//! log    = header record*
//!
//! header, 40 bytes                          record, 36 bytes, the payload and 1 byte
//!  0  8  magic "SBLMWAL\n"                   0  4  tag
//!  8  4  version                             4  4  payload length in bytes
//! 12  8  log id                              8  4  number of operations
//! 20  8  store id                           12  8  sequence number of the first operation
//! 28  8  first sequence number              20  8  synced length
//! 36  4  CRC-32 of bytes 0..36              28  4  CRC-32 of the payload and the end
//!                                           32  4  CRC-32 of the 32 bytes before
//!                                           36  …  payload: one batch
//!                                            …  1  end: 0xff
//!
//! batch     = operation*
//! operation = kind u8 (0 tombstone), key length varint, key
//!           | kind u8 (1 put), key length varint, value length varint, key, value
//!           | kind u8 (2 range tombstone), start length varint, end length varint, start, end
//!           | kind u8 (3 put that expires), key length varint, value length varint, key, expiry u48, value
//!           | kind u8 (4 time), moment u48
//! ```
//!
//! - *version*: 3. Version 2 had no range tombstones. Every later version keeps magic, version and CRC in
//!   place, so that an old build can name the version. A log is written only by the process that created it,
//!   so one of an earlier version is read and never appended to.
//! - *log id*, *store id*: the log and the store of the file. A file of another log or store is refused.
//! - *first sequence number*: of the first operation that the log holds or will hold.
//! - *tag*: 32 bits derived from store id and log id. Bytes of other logs, which a file system may leave
//!   after the end, do not carry it, and a search for records after damage computes few checksums at wrong
//!   offsets. Every byte of the tag is at least two bit flips away from zero, so that the start of a record
//!   never looks like a lost sector.
//! - *payload length*: at most 1 GiB, and a record ends within its file. The head has its own checksum, which
//!   tells a record cut short by the end of the file from one with a damaged payload.
//! - *number of operations*: exactly as many as in the payload. 0 in a *gap*, which has no payload: the
//!   numbers before it belong to ingested rows, or to operations that a repair could not read.
//! - *sequence number*: continues the previous record, or the header. Operation n of the record has this
//!   number plus n. In a gap it is the next sequence number, not below the one that the gap follows. Invalid:
//!   an operation's number above 2⁶³ - 1.
//! - *synced length*: how many bytes of this file were known to be durable when the record was written; at
//!   most the record's own offset. Damage below it cannot be due to a power cut.
//! - *end*: not zero, so that the part of a record in its last sector looks lost only if it was.
//! - *operation*: key and value are adjacent, so that an entry can keep both as one slice of the batch. A
//!   range tombstone deletes the keys from its start up to, but not including, its end, or up to the last key
//!   if the end is empty. *Expiry* and *moment* are milliseconds since 1970. A *time* is what the store's
//!   clock has reached; it has a sequence number, but belongs to no key. A kind above 4 belongs to a later
//!   version. Invalid: a key, start or end over 64 KiB, a value over 64 MiB, a non-empty end that is not
//!   greater than the start, an expiry of 0, a moment after the year 9999.
//!
//! Ambiguities after a crash, which the log alone cannot resolve:
//! - A log that ends at a record boundary may have lost later records that were never synced. If they had
//!   been synced, a later record, a later log or the manifest's log mark says so, provided one was written
//!   after that sync; closing the store writes one. Between a sync and the next record, a log that was cut at
//!   a record boundary looks the same as one that was never longer.
//! - A damaged record whose payload contains a whole sector of zeros counts as kept from the disk by a power
//!   cut, unless it is known to have been synced.

use crate::codec::{Decoder, Encode, crc32};
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::key::{MAX_NEXT_SEQ, MAX_STORED_KEY_BYTES, MAX_VALUE_BYTES, Seq, Time, check_next_seq};
use std::ops::RangeInclusive;
use std::path::Path;

pub(super) const HEADER_BYTES: usize = 40;
pub(super) const RECORD_HEAD_BYTES: usize = 36;
/// Size of a record without its payload: head and end.
pub(super) const RECORD_FRAME_BYTES: usize = RECORD_HEAD_BYTES + 1;
const MAGIC: &[u8; 8] = b"SBLMWAL\n";
/// The versions that this build reads.
pub const READS: RangeInclusive<u32> = 3..=3;
/// The version that it writes: the last one it reads.
pub const WRITES: u32 = *READS.end();
const END: u8 = 0xff;
const _: () = assert!(HEADER_BYTES == MAGIC.len() + 4 + 3 * 8 + 4 && RECORD_HEAD_BYTES == 5 * 4 + 2 * 8);

/// The header of a log file.
#[derive(Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// The log's file number.
    pub id: FileId,
    /// The store that the log belongs to.
    pub store_id: u64,
    /// The sequence number of the log's first operation.
    pub first_seq: Seq,
}

impl LogHeader {
    /// The bytes on disk.
    ///
    /// # Errors
    /// [`Error::NumbersExhausted`].
    pub fn encode(&self) -> Result<Vec<u8>> {
        check_next_seq(self.first_seq)?;
        let mut buf = Vec::with_capacity(HEADER_BYTES);
        buf.extend_from_slice(MAGIC);
        buf.put_u32(WRITES);
        buf.put_u64(self.id.0);
        buf.put_u64(self.store_id);
        buf.put_u64(self.first_seq);
        buf.put_u32(crc32(&[&buf]));
        Ok(buf)
    }

    /// Decodes a header. `None` when the checksum, the magic or the sequence number is wrong.
    pub fn decode(bytes: &[u8], path: &Path) -> Result<Option<Self>> {
        let fields = || {
            let mut d = Decoder::new(bytes);
            let (magic, version) = (d.take(MAGIC.len())?, d.u32()?);
            let header = LogHeader { id: FileId(d.u64()?), store_id: d.u64()?, first_seq: d.u64()? };
            let covered = bytes.get(..d.position())?;
            (d.u32()? == crc32(&[covered]) && magic == MAGIC).then_some((version, header))
        };
        match fields() {
            Some((found, _)) if !READS.contains(&found) => {
                Err(Error::UnsupportedVersion { file: path.to_path_buf(), found, supported: READS })
            }
            Some((_, header)) => Ok(Some(header).filter(|header| header.first_seq <= MAX_NEXT_SEQ)),
            None => Ok(None),
        }
    }

    /// The tag at the start of every record of this log.
    pub fn tag(id: FileId, store_id: u64) -> u32 {
        crc32(&[&store_id.to_le_bytes(), &id.0.to_le_bytes()]) | 0x0303_0303
    }
}

/// The head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub tag: u32,
    pub payload_len: u32,
    /// 0 for a gap.
    pub count: u32,
    pub first_seq: Seq,
    pub synced: u64,
    pub payload_crc: u32,
}

impl RecordHead {
    /// Decodes the head at the start of `bytes`. `None` when it is cut short or damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut d = Decoder::new(bytes);
        let head = RecordHead {
            tag: d.u32()?,
            payload_len: d.u32()?,
            count: d.u32()?,
            first_seq: d.u64()?,
            synced: d.u64()?,
            payload_crc: d.u32()?,
        };
        let covered = bytes.get(..d.position())?;
        (d.u32()? == crc32(&[covered])).then_some(head)
    }

    /// The bytes on disk.
    fn encode(&self) -> [u8; RECORD_HEAD_BYTES] {
        let mut bytes = [0; RECORD_HEAD_BYTES];
        let (covered, crc) = bytes.split_at_mut(RECORD_HEAD_BYTES - 4);
        covered[0..4].copy_from_slice(&self.tag.to_le_bytes());
        covered[4..8].copy_from_slice(&self.payload_len.to_le_bytes());
        covered[8..12].copy_from_slice(&self.count.to_le_bytes());
        covered[12..20].copy_from_slice(&self.first_seq.to_le_bytes());
        covered[20..28].copy_from_slice(&self.synced.to_le_bytes());
        covered[28..32].copy_from_slice(&self.payload_crc.to_le_bytes());
        crc.copy_from_slice(&crc32(&[covered]).to_le_bytes());
        bytes
    }

    /// Length of the whole record, in bytes.
    pub fn record_len(&self) -> u64 {
        RECORD_FRAME_BYTES as u64 + u64::from(self.payload_len)
    }

    /// The sequence number after the record's last operation; `None` if no file may hold it.
    pub fn next_seq(&self) -> Option<Seq> {
        self.first_seq.checked_add(u64::from(self.count)).filter(|&seq| seq <= MAX_NEXT_SEQ)
    }
}

/// Appends one record to `buf`.
///
/// # Errors
/// [`Error::NumbersExhausted`], [`Error::BatchTooLarge`]: nothing is appended.
pub(super) fn encode_record(
    buf: &mut Vec<u8>,
    tag: u32,
    first_seq: Seq,
    count: u32,
    synced: u64,
    payload: &[u8],
) -> Result<()> {
    check_next_seq(first_seq.saturating_add(count.into()))?;
    let payload_len = u32::try_from(payload.len())
        .map_err(|_| Error::BatchTooLarge { len: payload.len(), max: u32::MAX as usize })?;
    let start = buf.len();
    buf.reserve(RECORD_FRAME_BYTES + payload.len());
    buf.extend_from_slice(&[0; RECORD_HEAD_BYTES]);
    buf.extend_from_slice(payload);
    buf.push(END);
    let (head, covered) = buf[start..].split_at_mut(RECORD_HEAD_BYTES);
    let payload_crc = crc32(&[covered]);
    head.copy_from_slice(&RecordHead { tag, payload_len, count, first_seq, synced, payload_crc }.encode());
    Ok(())
}

/// What an operation does. The codes are those of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum OpKind {
    /// Deletes a key.
    Delete = 0,
    /// Sets the value of a key.
    Put = 1,
    /// Deletes a range of keys.
    DeleteRange = 2,
    /// Sets the value of a key until some moment.
    PutUntil = 3,
    /// Says what the store's clock has reached. Has no key.
    Time = 4,
}

impl OpKind {
    fn from_u8(code: u8) -> Option<Self> {
        match code {
            0 => Some(OpKind::Delete),
            1 => Some(OpKind::Put),
            2 => Some(OpKind::DeleteRange),
            3 => Some(OpKind::PutUntil),
            4 => Some(OpKind::Time),
            _ => None,
        }
    }
}

/// Decodes the head of an operation and skips its key and value (start and end of a range). Returns the kind,
/// the key's length, and the length of key, expiry and value together; `None` when it is cut short or
/// invalid.
#[inline]
pub(super) fn decode_operation(decoder: &mut Decoder<'_>) -> Option<(OpKind, usize, usize)> {
    let kind = OpKind::from_u8(decoder.u8()?)?;
    if kind == OpKind::Time {
        Time::decode(decoder.take(Time::BYTES)?)?;
        return Some((kind, 0, Time::BYTES));
    }
    let key_len = decoder.length().filter(|&len| len <= MAX_STORED_KEY_BYTES)?;
    let value_len = match kind {
        OpKind::PutUntil => Time::BYTES + decoder.length().filter(|&len| len <= MAX_VALUE_BYTES)?,
        OpKind::Put => decoder.length().filter(|&len| len <= MAX_VALUE_BYTES)?,
        OpKind::DeleteRange => decoder.length().filter(|&len| len <= MAX_STORED_KEY_BYTES)?,
        OpKind::Delete | OpKind::Time => 0,
    };
    let (key, value) = decoder.take(key_len + value_len)?.split_at_checked(key_len)?;
    if kind == OpKind::DeleteRange && !value.is_empty() && value <= key {
        return None;
    }
    if kind == OpKind::PutUntil && Time::decode(value)? == Time::START {
        return None;
    }
    Some((kind, key_len, key_len + value_len))
}

/// Whether `encoded` is a valid batch of exactly `count` operations.
pub(super) fn is_well_formed(encoded: &[u8], count: u32) -> bool {
    let mut decoder = Decoder::new(encoded);
    (0..count).all(|_| decode_operation(&mut decoder).is_some()) && decoder.remaining() == 0
}

/// In an invalid batch, the kind of the first invalid operation, if only a later version knows it.
pub(super) fn later_kind(encoded: &[u8], count: u32) -> Option<u8> {
    let mut decoder = Decoder::new(encoded);
    for _ in 0..count {
        let at = decoder.position();
        if decode_operation(&mut decoder).is_none() {
            return encoded.get(at).copied().filter(|&kind| OpKind::from_u8(kind).is_none());
        }
    }
    None
}

//! The byte map of a log file, format version 4, the one that this build writes. Integers are little-endian;
//! `varint` is LEB128.
//!
//! ```text
//! log    = header record*
//!
//! header, 40 bytes                          record
//!  0  8  magic "SBLMWAL\n"                   0  4  tag
//!  8  4  version                             4  4  CRC-32 of the four varints below, xor tag
//! 12  8  log id                              8  4  CRC-32 of the payload and the end
//! 20  8  store id                           12  …  payload length in bytes, varint
//! 28  8  first sequence number               …  …  number of operations, varint
//! 36  4  CRC-32 of bytes 0..36               …  …  sequence number of the first operation, varint
//!                                            …  …  synced length, varint
//!                                            …  …  payload: one batch
//!                                            …  1  end: 0x7f
//!
//! batch     = operation*
//! operation = kind u8 (0 tombstone), key length varint, key
//!           | kind u8 (1 put), key length varint, value length varint, key, value
//!           | kind u8 (2 range tombstone), start length varint, end length varint, start, end
//!           | kind u8 (3 put that expires), key length varint, value length varint, key, expiry u48, value
//!           | kind u8 (4 time), moment u48
//! ```
//!
//! - *version*: 4. In version 3, heads of records had 36 bytes. Every later version keeps magic, version and
//!   CRC in place, so that an old build can name the version. A log is written only by the process that
//!   created it, so one of an earlier version is read and never appended to.
//! - *log id*, *store id*: the log and the store of the file. A file of another log or store is refused.
//! - *first sequence number*: of the first operation that the log holds or will hold.
//! - *tag*: 32 bits derived from store id and log id. Bytes of other logs, which a file system may leave
//!   after the end, do not carry it, and a search for records after damage computes few checksums at wrong
//!   offsets. Every byte of the tag is at least two bit flips away from zero, so that the start of a record
//!   never looks like a lost sector.
//! - *varint*: in its shortest form.
//! - *payload length*: at most 1 GiB, and a record ends within its file. The head has its own checksum, which
//!   tells a record cut short by the end of the file from one with a damaged payload.
//! - *number of operations*: exactly as many as in the payload. 0 in a *gap*, which has no payload: the
//!   numbers before it belong to ingested rows, or to operations that a repair could not read.
//! - *sequence number*: continues the previous record, or the header. Operation n of the record has this
//!   number plus n. In a gap it is the next sequence number, not below the one that the gap follows. Invalid:
//!   an operation's number above 2⁶³ - 1.
//! - *synced length*: how many bytes of this file were known to be durable when the record was written; at
//!   most the record's own offset. Damage below it cannot be due to a power cut.
//! - *end*: not zero, so that the part of a record in its last sector looks lost only if it was. It ends a
//!   varint, so that no flipped bit lets the head of a whole record seem cut short.
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
/// The part of a record's head before its varints: tag and checksums.
const FIXED_HEAD_BYTES: usize = 12;
/// No record is shorter: one byte for each varint, and the end.
pub(super) const RECORD_BYTES_MIN: usize = FIXED_HEAD_BYTES + 4 + 1;
/// No head is longer.
pub(super) const RECORD_HEAD_BYTES_MAX: usize = FIXED_HEAD_BYTES + 5 + 5 + 10 + 10;
const MAGIC: &[u8; 8] = b"SBLMWAL\n";
/// The versions that this build reads.
pub const READS: RangeInclusive<u32> = 4..=4;
/// The version that it writes: the last one it reads.
pub const WRITES: u32 = *READS.end();
const END: u8 = 0x7f;
const _: () = assert!(HEADER_BYTES == MAGIC.len() + 4 + 3 * 8 + 4);

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
        let (tag, crc, payload_crc) = (d.u32()?, d.u32()?, d.u32()?);
        let head = RecordHead {
            tag,
            payload_len: d.varint()?.try_into().ok()?,
            count: d.varint()?.try_into().ok()?,
            first_seq: d.varint()?,
            synced: d.varint()?,
            payload_crc,
        };
        let numbers = bytes.get(FIXED_HEAD_BYTES..d.position())?;
        (d.position() == head.len() && head_crc(tag, numbers) == crc).then_some(head)
    }

    /// Where the head at the start of `bytes` seems to end, damaged or not. `None` if not within `bytes`.
    pub fn end_in(bytes: &[u8]) -> Option<usize> {
        let mut d = Decoder::new(bytes);
        d.take(FIXED_HEAD_BYTES)?;
        for _ in 0..4 {
            d.varint()?;
        }
        Some(d.position())
    }

    /// Length of the head, in bytes.
    pub fn len(&self) -> usize {
        let lengths = varint_len(self.payload_len.into()) + varint_len(self.count.into());
        FIXED_HEAD_BYTES + lengths + varint_len(self.first_seq) + varint_len(self.synced)
    }

    /// Length of the whole record, in bytes.
    pub fn record_len(&self) -> u64 {
        self.len() as u64 + u64::from(self.payload_len) + 1
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
    let mut head = [0; RECORD_HEAD_BYTES_MAX];
    let len = put_varint(&mut head, FIXED_HEAD_BYTES, payload_len.into());
    let len = put_varint(&mut head, len, count.into());
    let len = put_varint(&mut head, len, first_seq);
    let len = put_varint(&mut head, len, synced);
    head[..4].copy_from_slice(&tag.to_le_bytes());
    let crc = head_crc(tag, &head[FIXED_HEAD_BYTES..len]);
    head[4..8].copy_from_slice(&crc.to_le_bytes());
    let start = buf.len();
    buf.reserve(RECORD_HEAD_BYTES_MAX + payload.len() + 1);
    buf.extend_from_slice(&head[..len]);
    buf.extend_from_slice(payload);
    buf.push(END);
    let (head, covered) = buf[start..].split_at_mut(len);
    head[8..FIXED_HEAD_BYTES].copy_from_slice(&crc32(&[covered]).to_le_bytes());
    Ok(())
}

/// The checksum of a record's head.
#[inline]
fn head_crc(tag: u32, numbers: &[u8]) -> u32 {
    crc32(&[numbers]) ^ tag
}

/// Writes a varint, and returns where it ends. The lengths that most have take no loop.
#[inline(always)]
fn put_varint(bytes: &mut [u8; RECORD_HEAD_BYTES_MAX], at: usize, number: u64) -> usize {
    if number < 0x80 {
        bytes[at] = number as u8;
        at + 1
    } else if number < 1 << 28 {
        let len = varint_len(number);
        let (low, high) =
            (number & 0x7f | (number & 0x3f80) << 1, number & 0x1f_c000 | (number & 0xfe0_0000) << 1);
        let more = 0x80_8080 & ((1 << (8 * (len - 1))) - 1);
        bytes[at..at + 4].copy_from_slice(&((low | high << 2) as u32 | more).to_le_bytes());
        at + len
    } else {
        put_long_varint(bytes, at, number)
    }
}

#[cold]
fn put_long_varint(bytes: &mut [u8; RECORD_HEAD_BYTES_MAX], mut at: usize, mut number: u64) -> usize {
    while number >= 0x80 {
        bytes[at] = number as u8 | 0x80;
        at += 1;
        number >>= 7;
    }
    bytes[at] = number as u8;
    at + 1
}

/// The length of a number's varint, in bytes.
#[inline]
pub(super) fn varint_len(v: u64) -> usize {
    (v.max(1).ilog2() / 7 + 1) as usize
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

//! The bytes of a log file. Integers are little-endian.
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
//!                                           36  …  payload: one encoded batch
//!                                            …  1  end: 0xff
//! ```
//!
//! - *version*: 2. Every later version keeps magic, version and CRC in these places, so that an old build can name the version.
//! - *log id*, *store id*: whose log this is; a file of another number or of another store is refused.
//! - *first sequence number*: of the first operation that the log holds or will hold.
//! - *tag*: 32 bits drawn from store id and log id. Bytes of another log, which a file system may leave behind the end, do not
//!   carry it; and a search for later records after damage tries a checksum at almost no place but the right one. None of its bytes
//!   is zero or one flipped bit away from it, so that the start of a record never looks like a sector that was lost.
//! - *payload length*: a record ends within its file. The head has a checksum of its own, so that a record which the file ends within
//!   was cut short, and one with another payload than it says was damaged.
//! - *number of operations*: the payload holds exactly so many. 0 in a *gap*, which has no payload: repair writes one where operations
//!   are lost.
//! - *sequence number*: continues the record before, or the header. Operation n of the record has this number plus n. Of a gap it is the
//!   next number, not below the one that it follows.
//! - *synced length*: so many bytes of this file were known to be durable when the record was written. Never beyond the record's own
//!   offset. Damage below it was no power cut.
//! - *end*: not zero, so that the part of a record in its last sector looks lost only when it was.
//!
//! What a crash may leave, and what the log alone cannot tell from it:
//! - A log that ends at a record's end may have lost later ones that were never synced. If they had been synced, a later record, a
//!   later log or the manifest's log mark says so, once one was written after that sync: at the latest when the store is closed.
//!   Between a sync and the next record, nothing tells a log that was cut at a record's end from one that was never longer.
//! - A record whose payload holds a whole sector of zeros is taken for one that a power cut kept from being written when it is damaged
//!   elsewhere, unless it is known to have been synced.

use crate::codec::{Decoder, Encode, crc32};
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::key::Seq;
use std::path::Path;

pub(super) const HEADER_BYTES: usize = 40;
pub(super) const RECORD_HEAD_BYTES: usize = 36;
/// What a record has beside its payload: the head, and the end.
pub(super) const RECORD_FRAME_BYTES: usize = RECORD_HEAD_BYTES + 1;
const MAGIC: &[u8; 8] = b"SBLMWAL\n";
const VERSION: u32 = 2;
const END: u8 = 0xff;
const _: () = assert!(HEADER_BYTES == MAGIC.len() + 4 + 3 * 8 + 4 && RECORD_HEAD_BYTES == 5 * 4 + 2 * 8);

/// The head of a log file.
#[derive(Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// Its number.
    pub id: FileId,
    /// The store it belongs to.
    pub store_id: u64,
    /// The sequence number of its first operation.
    pub first_seq: Seq,
}

impl LogHeader {
    pub fn encode(&self) -> Vec<u8> {
        let mut buf = Vec::with_capacity(HEADER_BYTES);
        buf.extend_from_slice(MAGIC);
        buf.put_u32(VERSION);
        buf.put_u64(self.id.0);
        buf.put_u64(self.store_id);
        buf.put_u64(self.first_seq);
        buf.put_u32(crc32(&[&buf]));
        buf
    }

    /// `None` when the checksum or the magic is wrong.
    pub fn decode(bytes: &[u8], path: &Path) -> Result<Option<Self>> {
        let fields = || {
            let mut d = Decoder::new(bytes);
            let (magic, version) = (d.take(MAGIC.len())?, d.u32()?);
            let header = LogHeader { id: FileId(d.u64()?), store_id: d.u64()?, first_seq: d.u64()? };
            let covered = bytes.get(..d.position())?;
            (d.u32()? == crc32(&[covered]) && magic == MAGIC).then_some((version, header))
        };
        match fields() {
            Some((VERSION, header)) => Ok(Some(header)),
            Some((found, _)) => {
                Err(Error::UnsupportedVersion { file: path.to_path_buf(), found, supported: VERSION })
            }
            None => Ok(None),
        }
    }

    /// What every record of this log begins with.
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
    /// The head at the start of `bytes`; `None` when they are too short or it is damaged.
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

    /// Bytes of the whole record.
    pub fn record_len(&self) -> u64 {
        RECORD_FRAME_BYTES as u64 + u64::from(self.payload_len)
    }

    /// The sequence number behind the record's last operation; `None` when there is no such number.
    pub fn next_seq(&self) -> Option<Seq> {
        self.first_seq.checked_add(u64::from(self.count))
    }
}

/// Appends one record to `buf`.
pub(super) fn encode_record(
    buf: &mut Vec<u8>,
    tag: u32,
    first_seq: Seq,
    count: u32,
    synced: u64,
    payload: &[u8],
) {
    let start = buf.len();
    buf.put_u32(tag);
    buf.put_u32(payload.len() as u32);
    buf.put_u32(count);
    buf.put_u64(first_seq);
    buf.put_u64(synced);
    buf.put_u32(crc32(&[payload, &[END]]));
    let head_crc = crc32(&[&buf[start..]]);
    buf.put_u32(head_crc);
    buf.extend_from_slice(payload);
    buf.put_u8(END);
}

/// The payload of the whole record `bytes` with this head; `None` when it is damaged.
pub(super) fn payload_of<'a>(head: &RecordHead, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let covered = bytes.get(RECORD_HEAD_BYTES..)?;
    let (_, payload) = covered.split_last()?;
    (crc32(&[covered]) == head.payload_crc).then_some(payload)
}

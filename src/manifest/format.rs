//! The byte map of a manifest, format version 7. Integers are little-endian; lengths and numbers within an
//! edit are varints.
//!
//! ```text
//! manifest = header edit*                   the first edit is a snapshot of the whole state
//!
//! header, 44 bytes                          edit, 16 bytes and the payload
//!  0  8  magic "SBLMMAN\n"                   0  4  tag
//!  8  4  version                             4  4  payload length in bytes
//! 12  8  store id                            8  4  CRC-32 of the payload
//! 20  4  hash code                          12  4  CRC-32 of the 12 bytes before
//! 24 16  hash key                           16  …  payload: fields, then 0xff
//! 40  4  CRC-32 of bytes 0..40
//!
//! field = 1, file number                            removes a segment
//!       | 2, file number, level u8, format version,
//!         digest u64, file bytes, data bytes, facts adds a segment
//!       | 3, file number                            log floor
//!       | 4, file number                            next file number
//!       | 5, sequence number                        last sequence number
//!       | 6, file number, length, sequence number   log mark
//!       | 7, milliseconds since 1970                time
//! ```
//!
//! - *version*: 7. Version 6 had neither times nor expiries in facts. In version 5, no stored key had a head
//!   (`src/key/space.rs`); it is read if no key starts with 0xff. Version 4 did not name the formats of its
//!   segments. Version 3 belonged to segments of version 4, and had 64 KiB of 0xff for the end of a range
//!   without one. Version 2 had neither longest streak nor ranges. Every later version keeps magic, version
//!   and CRC in place, so that an old build can name the version. In version 1 the CRC was at 28. An opened
//!   manifest is rewritten before the first edit, so nothing is appended to one of an earlier version.
//! - *store id*, *hash key*: random, set at creation.
//! - *hash code*: how keys are hashed: 1, XXH3 seeded with the first 8 bytes of the hash key, the others
//!   being zero; or 4, SipHash-1-3 under all 16 ([`crate::hash`]). Other codes belong to later versions.
//! - *tag*: 32 bits derived from the store id. Tag and head CRC identify edits after a damaged one. Every
//!   byte of the tag, and the last byte of a payload, is at least two bit flips away from zero. So the part
//!   of an edit in a sector shared with others looks lost only if it was.
//! - *log mark*: how much is synced: this many bytes of this log, whose operations end before this sequence
//!   number, and all earlier logs in full. The log exists unless it is below the log floor. If it is missing
//!   or ends before its mark, it was damaged.
//! - *time*: the latest moment that the store's clock has reached. Invalid: after the year 9999.
//! - *payload length*: covered by the head's own checksum, which tells an edit cut short by the end of the
//!   file from a damaged one.
//! - *fields*: in any order, each any number of times. Fields 8 to 0xfe belong to later versions. Removals
//!   apply first; of repeated numbers the last one counts. *Facts* repeat those in the segment's properties;
//!   `src/segment/facts.rs` has their byte map. Invalid: invalid facts, or more data bytes than file bytes. A
//!   file number is at most 2⁶², and the sums of each count and length over all segments are below 2⁵⁶.
//!   *Format version* belongs to the segment's file, so that segments of an earlier release are found without
//!   opening them. A level is 0 to 6, or 64 + 8 × l + d for a quarantined segment, which could not be read in
//!   full and belongs to no level. It left level l, and newer entries of its range have reached level d
//!   since; if none has gone deeper, d is l. A new kind of place needs
//!   a new version. A sequence number is below 2⁶³, which leaves room for later
//!   ones.

use super::edit::{Edit, LogMark, SegmentMeta};
use super::place::{Place, Quarantine};
use crate::codec::{Decoder, Encode, crc32};
use crate::error::{Error, Result};
use crate::hash::{KeyHasher, is_newer_code};
use crate::id::FileId;
use crate::key::{MAX_NEXT_SEQ, MAX_SEQ, Time, check_next_seq, check_seq};
use crate::segment::{Facts, SegmentSummary, StoreIdentity};
use std::ops::RangeInclusive;
use std::path::Path;

pub(super) const HEADER_BYTES: usize = 44;
const HASH_CODE_AT: usize = 20;
/// Size of a version 1 header, which is recognized only to report its version.
const HEADER_BYTES_1: usize = 32;
pub(super) const EDIT_HEAD_BYTES: usize = 16;
/// No field is longer: a segment with its facts, a digest, and numbers of 10 bytes.
pub(super) const FIELD_BYTES_MAX: usize = Facts::BYTES_MAX + 64;
const MAGIC: &[u8; 8] = b"SBLMMAN\n";
/// The versions that this build reads.
pub const READS: RangeInclusive<u32> = 5..=7;
/// The version that it writes: the last one it reads.
pub const WRITES: u32 = *READS.end();
/// The first version in which keys may have heads.
pub const HEADS_SINCE: u32 = 6;
const _: () = assert!(HEADER_BYTES == MAGIC.len() + 4 + 8 + 4 + 16 + 4 && EDIT_HEAD_BYTES == 4 * 4);

const REMOVED: u8 = 1;
const ADDED: u8 = 2;
const LOG_FLOOR: u8 = 3;
const NEXT_ID: u8 = 4;
const LAST_SEQ: u8 = 5;
const LOG_MARK: u8 = 6;
const TIME: u8 = 7;
/// The last field of this version.
const LAST_FIELD: u8 = TIME;
const END: u8 = 0xff;

pub(super) fn encode_header(header: StoreIdentity) -> Vec<u8> {
    let mut buf = Vec::with_capacity(HEADER_BYTES);
    buf.extend_from_slice(MAGIC);
    buf.put_u32(WRITES);
    buf.put_u64(header.store_id);
    let (code, key) = header.hasher.to_code();
    buf.put_u32(u32::from(code));
    key.iter().for_each(|&word| buf.put_u64(word));
    buf.put_u32(crc32(&[&buf]));
    buf
}

/// Decodes the header at the start of the file `path`.
pub(super) fn decode_header(bytes: &[u8], path: &Path) -> Result<(u32, StoreIdentity)> {
    let has_crc_at = |at: usize| {
        let (covered, crc) = (bytes.get(..at)?, bytes.get(at..at + 4)?);
        Some(crc == crc32(&[covered]).to_le_bytes())
    };
    let fields = || {
        let mut d = Decoder::new(bytes);
        let (magic, version) = (d.take(MAGIC.len())?, d.u32()?);
        let sealed = has_crc_at(HEADER_BYTES - 4) == Some(true)
            || version == 1 && has_crc_at(HEADER_BYTES_1 - 4) == Some(true);
        let header = move || Some((d.u64()?, d.u32()?, [d.u64()?, d.u64()?]));
        (sealed && magic == MAGIC).then_some((version, header))
    };
    let damaged = || Error::corruption(path, 0, "manifest header checksum mismatch; run `sidebloom repair`");
    match fields() {
        Some((found, _)) if !READS.contains(&found) => {
            Err(Error::UnsupportedVersion { file: path.to_path_buf(), found, supported: READS })
        }
        Some((version, mut header)) => {
            let (store_id, code, key) = header().ok_or_else(damaged)?;
            let code = u8::try_from(code)
                .ok()
                .filter(|&code| !is_newer_code(code))
                .ok_or_else(|| Error::unknown_code(path, HASH_CODE_AT as u64, format!("hash code {code}")))?;
            let hasher = KeyHasher::from_code(code, key).ok_or_else(damaged)?;
            Ok((version, StoreIdentity { store_id, hasher }))
        }
        None => Err(damaged()),
    }
}

/// The tag at the start of every edit of this store.
pub(super) fn tag(header: StoreIdentity) -> u32 {
    crc32(&[&header.store_id.to_le_bytes()]) | 0x0303_0303
}

/// The head of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EditHead {
    pub payload_len: usize,
    pub payload_crc: u32,
}

impl EditHead {
    /// Decodes the head at the start of `bytes`. `None` when it is cut short or damaged.
    pub fn decode(bytes: &[u8], tag: u32) -> Option<Self> {
        let mut d = Decoder::new(bytes);
        let found = d.u32()?;
        let head = EditHead { payload_len: d.u32()? as usize, payload_crc: d.u32()? };
        let covered = bytes.get(..d.position())?;
        (found == tag && d.u32()? == crc32(&[covered])).then_some(head)
    }
}

/// Checks that an edit can be read back.
///
/// # Errors
/// [`Error::NumbersExhausted`], [`Error::Unencodable`].
pub fn check_edit(edit: &Edit) -> Result<()> {
    edit.added.iter().map(|meta| meta.max_seq).chain(edit.last_seq).try_for_each(check_seq)?;
    edit.log_mark.map_or(Ok(()), |mark| check_next_seq(mark.next_seq))?;
    if let Some(meta) = edit.added.iter().find(|meta| !is_sound(meta)) {
        let why = format!("its entry for segment {} contradicts itself", meta.id);
        return Err(Error::Unencodable { what: "an edit of the manifest", why });
    }
    let ids = edit.removed.iter().copied().chain(edit.added.iter().map(|meta| meta.id));
    let ids = ids.chain(edit.log_floor).chain(edit.next_id).chain(edit.log_mark.map(|mark| mark.log));
    if let Some(id) = ids.max().filter(|id| *id > FileId::LARGEST) {
        let why = format!("file number {id} is too large");
        return Err(Error::Unencodable { what: "an edit of the manifest", why });
    }
    Ok(())
}

/// The bytes of one edit.
///
/// # Errors
/// The errors of [`check_edit`]; [`Error::ManifestTooLarge`] when the payload exceeds 4 GiB.
pub(super) fn encode_edit(edit: &Edit, tag: u32) -> Result<Vec<u8>> {
    check_edit(edit)?;
    frame(&encode_payload(edit), tag)
}

/// Head and payload.
pub(super) fn frame(payload: &[u8], tag: u32) -> Result<Vec<u8>> {
    let (bytes, max) = (payload.len() as u64, u64::from(u32::MAX));
    let payload_len = u32::try_from(bytes).map_err(|_| Error::ManifestTooLarge { bytes, max })?;
    let mut buf = Vec::with_capacity(EDIT_HEAD_BYTES + payload.len());
    buf.put_u32(tag);
    buf.put_u32(payload_len);
    buf.put_u32(crc32(&[payload]));
    buf.put_u32(crc32(&[&buf]));
    buf.extend_from_slice(payload);
    Ok(buf)
}

pub(super) fn encode_payload(edit: &Edit) -> Vec<u8> {
    let mut buf = Vec::new();
    for id in &edit.removed {
        buf.put_u8(REMOVED);
        buf.put_varint(id.0);
    }
    for meta in &edit.added {
        buf.put_u8(ADDED);
        encode_segment(&mut buf, meta);
    }
    let numbers = [
        (LOG_FLOOR, edit.log_floor.map(|id| id.0)),
        (NEXT_ID, edit.next_id.map(|id| id.0)),
        (LAST_SEQ, edit.last_seq),
        (TIME, edit.time.map(Time::millis)),
    ];
    for (field, number) in numbers {
        if let Some(number) = number {
            buf.put_u8(field);
            buf.put_varint(number);
        }
    }
    if let Some(mark) = edit.log_mark {
        buf.put_u8(LOG_MARK);
        buf.put_varint(mark.log.0);
        buf.put_varint(mark.bytes);
        buf.put_varint(mark.next_seq);
    }
    buf.put_u8(END);
    buf
}

fn encode_segment(buf: &mut Vec<u8>, meta: &SegmentMeta) {
    buf.put_varint(meta.id.0);
    buf.put_u8(place_code(meta.place));
    buf.put_varint(meta.version.into());
    buf.put_u64(meta.digest);
    buf.put_varint(meta.file_bytes);
    buf.put_varint(meta.data_bytes);
    meta.facts.encode(buf);
}

/// Decodes an edit; `None` when the payload is invalid.
#[cfg(test)]
pub(super) fn decode_payload(payload: &[u8]) -> Option<Edit> {
    let (mut d, mut edit) = (Decoder::new(payload), Edit::default());
    while decode_field(&mut d, &mut edit)? {}
    (d.remaining() == 0).then_some(edit)
}

/// Whether only a later version writes fields of this kind.
pub(super) fn is_later_field(kind: u8) -> bool {
    (LAST_FIELD + 1..END).contains(&kind)
}

/// Adds the next field of a payload to the edit. `false` at the end of the edit; `None` when the field is
/// invalid or cut short. No field is longer than [`FIELD_BYTES_MAX`].
pub(super) fn decode_field(d: &mut Decoder<'_>, edit: &mut Edit) -> Option<bool> {
    match d.u8()? {
        REMOVED => edit.removed.push(file_id(d)?),
        ADDED => edit.added.push(decode_segment(d)?),
        LOG_FLOOR => edit.log_floor = Some(file_id(d)?),
        NEXT_ID => edit.next_id = Some(file_id(d)?),
        LOG_MARK => {
            let (log, bytes) = (file_id(d)?, d.varint()?);
            let next_seq = d.varint().filter(|&seq| seq <= MAX_NEXT_SEQ)?;
            edit.log_mark = Some(LogMark { log, bytes, next_seq });
        }
        LAST_SEQ => edit.last_seq = Some(d.varint().filter(|&seq| seq <= MAX_SEQ)?),
        TIME => {
            let millis = d.varint().filter(|&millis| millis <= Time::MAX.millis())?;
            edit.time = Some(Time::of_millis(millis));
        }
        END => return Some(false),
        _ => return None,
    }
    Some(true)
}

fn file_id(d: &mut Decoder<'_>) -> Option<FileId> {
    d.varint().map(FileId).filter(|id| *id <= FileId::LARGEST)
}

fn decode_segment(d: &mut Decoder<'_>) -> Option<SegmentMeta> {
    let (id, place) = (file_id(d)?, place_of(d.u8()?));
    let summary = SegmentSummary {
        id,
        version: d.varint()?.try_into().ok()?,
        digest: d.u64()?,
        file_bytes: d.varint()?,
        data_bytes: d.varint()?,
        facts: Facts::decode(d)?,
    };
    Some(SegmentMeta { place, summary }).filter(is_sound)
}

/// The code of quarantine after level 0, without newer entries below.
const QUARANTINE: u8 = 64;

fn place_code(place: Place) -> u8 {
    match place {
        Place::Level(level) => level,
        Place::Quarantine(Quarantine { left, overtaken }) => {
            QUARANTINE.saturating_add(left.saturating_mul(8)).saturating_add(overtaken)
        }
    }
}

pub(super) fn place_of(code: u8) -> Place {
    match code.checked_sub(QUARANTINE) {
        None => Place::Level(code),
        Some(code) => Place::Quarantine(Quarantine { left: code / 8, overtaken: code % 8 }),
    }
}

fn is_sound(meta: &SegmentMeta) -> bool {
    meta.place.exists() && meta.data_bytes <= meta.file_bytes && meta.facts.is_sound()
}

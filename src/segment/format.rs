//! The byte map of a segment file, format version 7, the one that this build writes. Integers are
//! little-endian; `varint` is LEB128.
//!
//! ```text
//! segment    := [block(symbols)]  block(data)*  block(index)*  [block(ranges)]  block(top index)
//!               block(properties)  footer        without gaps
//! block(x)   := payload  type u8  crc u32        at most 128 MiB, before and after decompression
//!             | payload  0 u8*n  n u16  (128 + type) u8  crc u32
//! payload    := x                                type 0, or type 3 for a data block with coded values
//!             | length u32  lz4 block of x       type 1
//!             | length u32  zstd frame of x      type 2
//!
//! data       := count u32  prefix u32  keys u32  values u32  key width u8  value width u8  seq width u8
//!               (tombstones | expiry width << 1) u8  smallest seq u64
//!               fingerprint u8*count  bytes*prefix  (key end)*count  (value end)*count  seq*count
//!               tombstone bits  [first expiry u64  expiry*count]  suffix*count  value*count
//! value      := bytes, or in a block of type 3 code*, or, without symbols, bytes*  token*
//! code       := number of a symbol u8  |  255 u8  byte  |  254 u8  length u8  byte*length
//!             | 253 u8  length u8
//! token      := [zeros u8]  [bytes u8]  (bytes << 4 | zeros) u8       15 if the number has its own byte
//! symbols    := mark u64  table
//! table      := count u8  length u8*count  symbol*count       a symbol: 1 to 8 bytes
//!
//! index      := base u64  count u32  separator*count          also the top index
//! separator  := shared varint  rest varint  length varint  bytes*rest
//!
//! ranges     := mark u64  count varint  (from bytes  seq varint)*count      bytes: varint length first
//!
//! properties := mark u64  store id u64  hash code u8  hash key u64 u64  compression bytes
//!               [length varint  table]           if compression is "fsst"
//!               facts: see `facts.rs`  [1 u8  number varint  name bytes]  (code u8 …)*
//! footer     := segment id u64        0      56 bytes, the last of the file
//!               number u64            8
//!               properties offset u64 16
//!               digest u64            24
//!               top index length u32  32
//!               properties length u32 36
//!               version u32           40     version, magic and crc keep their distance from the end in
//!                                            every version
//!               magic "sbsegmnt"      44
//!               crc u32               52     of the 52 bytes before it, in every version
//! ```
//!
//! **block.** `crc` covers the payload, the type, and the block's location: segment id u64, offset u64. A
//! block from another file or offset (a misdirected write, a recycled extent) therefore fails the check. A
//! type above 3 belongs to a newer version, and this one reports it ([`Error::UnknownCode`]). Invalid: a crc
//! mismatch, or a `length` that exceeds 128 MiB or 255 times the lz4 block, or that differs from the
//! decompressed size. Only data blocks are compressed; a block that does not shrink by an eighth is stored as
//! type 0. The second form has padding up to the end of a page of the file. Only data blocks are padded.
//! Padding that is not zero is invalid.
//!
//! **data.** Every field of every entry can be read in place, without decoding earlier ones. Keys strictly
//! increase through the whole file. `prefix` is the length of the longest prefix that all keys of the block
//! share; it is stored once, and each `suffix` is the rest of a key. `fingerprint` is the low byte of the
//! key's hash by the store's hasher: a search reads only the rows whose fingerprint matches. If all suffixes
//! have one length, `keys` is that length, and `key width` is 0. Otherwise `keys` is the length of all
//! suffixes together, each `key end` is the offset from the first suffix where one ends, and `key width` is
//! the number of bytes that `keys` needs. The same holds for `values`. `seq` is the difference to
//! `smallest seq`, with as many bytes as the largest needs, 0 if all are equal. `tombstones` is 1 if the
//! block has any; then each entry has a bit, low bits first, which is 1 for a tombstone, and the other bits
//! of the last byte are 0. A tombstone's value is empty. If puts expire, each entry has the moment, with
//! `expiry width` bytes: its milliseconds since `first expiry`, plus 1; 0 if it does not expire. `first
//! expiry` is the earliest moment of the block, in milliseconds since 1970. `expiry width` is what the latest
//! needs, and shares a byte with `tombstones`. An `expiry width` above 6 stands for kinds of entries of a
//! newer version. Invalid: no entry, a key over 64 KiB, ends that decrease, or areas that do not fill the
//! block exactly. A data block is valid exactly when the writer would produce the same bytes for its entries;
//! `verify` checks that.
//!
//! In a block of type 3, values are coded with the segment's symbols: each code stands for its symbol, 255
//! for the byte after it, 254 for a run of bytes, and 253 for a run of zeros. If the table has no symbols, a
//! value is a sequence of steps instead: so many of its bytes, then so many zeros, as the step's token says.
//! The token of the first step is the last one (`runs.rs`). The high bit of `value width` is set in a block
//! of type 3, and `values` and the ends are those of the codes. A search decodes only the value that it
//! finds. Other blocks of the segment, whose values would not shrink, are of type 0. Invalid: the bit
//! without the type or the type without the bit, a code without a symbol, an empty run, bytes and tokens
//! that do not meet, a value over 64 MiB.
//!
//! **symbols.** The strings that are frequent in the values (`symbols.rs`). The properties repeat the table,
//! so that a file that has lost its end can still be salvaged. `mark` is 2⁶⁴ - 3, which no index has as its
//! base. Invalid: an empty or longer symbol, a table that differs from the properties', or
//! symbols in a segment of another compression than "fsst".
//!
//! **index.** Each separator stands for one block. It is at least the block's last key and less than the
//! first key of the next block. The first block starts at `base`, each other block where the previous one
//! ends; `length` includes payload, type and crc. A partition indexes data blocks; the top index indexes
//! partitions. The last separator of a partition equals the partition's separator in the top index, and the
//! last one of all is the largest key. So a separator of the top index is shorter than its partition by 20
//! bytes or more, and the top index, with all prefixes repeated, is no longer than all partitions. A
//! partition ends when its separators, with all prefixes repeated and 20 bytes for each, have 4 KiB. Invalid:
//! no separator, separators that do not strictly increase or are longer than that, a key over 64 KiB, a data
//! block over 64 MiB and the largest key, or a block that extends beyond the area of its kind.
//!
//! **ranges.** The range tombstones, if there are any, as a step function: from key `from` up to the next
//! one, entries with sequence numbers below `seq` are deleted, in this segment and all older ones. 0 deletes
//! nothing. `mark` is 2⁶⁴ - 1, which no index has as its base. Invalid: keys that do not strictly increase,
//! neighbours with the same number, a first number of 0, a key over 64 KiB.
//!
//! **properties.** What the segment holds, for statistics and repair. `mark` is 2⁶⁴ - 2, which no index has
//! as its base. `compression` is the writer's setting ("none", "lz4", "zstd", "fsst"; any other belongs to a
//! newer version). An empty table means that no value is coded. `store id`, `hash code` and `hash key` repeat
//! the store's own, so that a store without its manifest can be rebuilt from its segments. `facts.rs` has the
//! byte map of the facts, which the manifest repeats. Then come fields, each named by its code. Field 1 is
//! the keyspace of all rows, unless that is the default one: its number, 1 or more, and its name, 1 to 255
//! bytes of UTF-8. Other fields (2 to 255) belong to a newer version. Invalid: no compression, a fact that
//! contradicts the entries, a field of code 0, or one that comes twice.
//!
//! **footer.** The top index ends where the properties start, and the properties end where the footer starts.
//! `digest` is the 64-bit digest of every byte before the footer; a sidecar names it to prove that it belongs
//! to this segment. `number` is the sequence number of every row if blocks and properties have 0 for all of
//! them: ingested rows get their number at publication, when only the footer is still to be written. It is 0
//! if the blocks have the numbers. Invalid: a crc or magic mismatch, a segment id that differs from the
//! file's number, a number where blocks have numbers or ranges are deleted, a sequence number above 2⁶³ - 1.

pub use super::compression::Compression;
use super::facts::Facts;
use crate::codec::{Decoder, Encode, crc32};
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::key::{MAX_SEQ, MAX_STORED_KEY_BYTES, MAX_VALUE_BYTES, Seq, check_seq};
use crate::ranges::RangeTombstones;
use std::ops::RangeInclusive;
use std::path::Path;

/// The outcome of parsing; an error describes the bytes, and the caller adds file and offset.
pub type Parsed<T> = std::result::Result<T, &'static str>;

/// Type and crc after each payload.
pub const TRAILER_BYTES: usize = 5;
/// Largest block. Fits the largest entry (64 MiB and a key) and the top index of a 5 TB segment.
pub const MAX_BLOCK_BYTES: usize = 128 << 20;
/// Largest data block, before and after decompression: one entry of the largest key and the largest value.
pub(super) const DATA_BYTES_MAX: usize = MAX_VALUE_BYTES + MAX_STORED_KEY_BYTES + 4096;
/// Largest data block as stored, with its trailer and padding.
pub(super) const DATA_STORED_MAX: usize = DATA_BYTES_MAX + TRAILER_BYTES + 2 + u16::MAX as usize;
/// Largest properties block, with its trailer.
const PROPERTIES_STORED_MAX: usize = Facts::BYTES_MAX + SYMBOLS_BYTES_MAX + 256;
/// The longest symbol, in bytes.
pub(super) const SYMBOL_BYTES: usize = 8;
/// The most symbols of a table: each has a code of one byte, and three codes are for other bytes.
pub(super) const SYMBOLS_MAX: usize = 253;
/// The longest symbol table.
pub(super) const SYMBOLS_BYTES_MAX: usize = 1 + SYMBOLS_MAX * (1 + SYMBOL_BYTES);
/// Size of the footer.
pub const FOOTER_BYTES: usize = 56;
/// The smallest separator: three varints and no bytes.
pub(super) const MIN_SEPARATOR_BYTES: usize = 3;
/// An lz4 block expands at most this much: each byte of a run length stands for at most 255 bytes.
pub(super) const LZ4_MAX_RATIO: usize = 255;

/// The versions that this build reads.
pub const READS: RangeInclusive<u32> = 6..=7;
/// The version that it writes: the last one it reads.
pub const WRITES: u32 = *READS.end();
const MAGIC: [u8; 8] = *b"sbsegmnt";
const VERSION_AT: usize = 40;
const MAGIC_AT: usize = 44;
const CRC_AT: usize = 52;
const _: () =
    assert!(CRC_AT + 4 == FOOTER_BYTES && MAGIC_AT + MAGIC.len() == CRC_AT && VERSION_AT + 4 == MAGIC_AT);
const _: () = assert!(MAX_BLOCK_BYTES > DATA_STORED_MAX);

/// Where a block lies in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHandle {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length of payload and trailer, in bytes.
    pub len: u32,
}

impl BlockHandle {
    /// The offset after the block.
    pub fn end(self) -> u64 {
        self.offset.saturating_add(u64::from(self.len))
    }
}

/// A location in a segment file: a block's crc covers it, and an error names it.
#[derive(Debug, Clone, Copy)]
pub struct Location<'a> {
    /// The file.
    pub path: &'a Path,
    /// The file's number.
    pub id: FileId,
    /// Offset in bytes from the start of the file.
    pub offset: u64,
}

impl Location<'_> {
    /// The error for damage at this location.
    pub fn damaged(&self, what: impl Into<String>) -> Error {
        Error::corruption(self.path, self.offset, what)
    }

    /// The error for a code at this location that only a newer version knows.
    pub fn unknown_code(&self, what: String) -> Error {
        Error::unknown_code(self.path, self.offset, what)
    }
}

/// Set in the type of a padded block.
const PADDED: u8 = 0x80;

/// The type of a padded block.
pub(super) fn padded_type(kind: Compression) -> u8 {
    kind as u8 | PADDED
}

/// Appends the type of a block, after padding that makes the block `padding` bytes longer; none below two.
pub(super) fn put_type(block: &mut Vec<u8>, kind: Compression, padding: usize) {
    match padding.checked_sub(2) {
        None => block.put_u8(kind as u8),
        Some(zeros) => {
            block.resize(block.len() + zeros, 0);
            block.put_uint(zeros as u64, 2);
            block.put_u8(padded_type(kind));
        }
    }
}

/// Removes the type of a block, and the padding before it, from the end.
fn take_type<'a>(location: Location<'_>, body: &'a [u8]) -> Result<(Compression, &'a [u8])> {
    let split = body.split_last();
    let (&byte, payload) = split.ok_or_else(|| location.damaged("the block is shorter than its trailer"))?;
    let code = byte & !PADDED;
    let kind = Compression::from_u8(code)
        .ok_or_else(|| location.unknown_code(format!("a block of codec {code}")))?;
    if byte & PADDED == 0 {
        return Ok((kind, payload));
    }
    let parts = payload.split_last_chunk::<2>().and_then(|(front, zeros)| {
        front.split_at_checked(front.len().checked_sub(usize::from(u16::from_le_bytes(*zeros)))?)
    });
    match parts {
        Some((payload, padding)) if padding.iter().all(|&byte| byte == 0) => Ok((kind, payload)),
        _ => Err(location.damaged("the padding of the block is not zero")),
    }
}

/// The crc of the block at `offset` of segment `id`, over the payload and its type byte.
pub fn block_crc(id: FileId, offset: u64, payload_and_type: &[u8]) -> u32 {
    crc32(&[payload_and_type, &id.0.to_le_bytes(), &offset.to_le_bytes()])
}

/// Checks a stored block. Returns its type and payload.
pub fn open_block<'a>(location: Location<'_>, stored: &'a [u8]) -> Result<(Compression, &'a [u8])> {
    let Some((body, crc)) = stored.split_last_chunk::<4>() else {
        return Err(location.damaged("the block is shorter than its trailer"));
    };
    let (found, expected) = (block_crc(location.id, location.offset, body), u32::from_le_bytes(*crc));
    if found != expected {
        return Err(
            location.damaged(format!("block checksum mismatch: computed {found:08x}, stored {expected:08x}"))
        );
    }
    take_type(location, body)
}

/// The start of a block of range tombstones. No index has it as its base.
pub(super) const RANGES_MARK: u64 = u64::MAX;
/// The start of the properties. No index has it as its base, either.
pub(super) const PROPERTIES_MARK: u64 = u64::MAX - 1;

/// The start of a block with the symbol table. No index has it as its base.
pub(super) const SYMBOLS_MARK: u64 = u64::MAX - 2;

/// Appends the payload of a block of range tombstones.
///
/// # Errors
/// [`Error::NumbersExhausted`].
pub(super) fn put_ranges(out: &mut Vec<u8>, ranges: &RangeTombstones) -> Result<()> {
    check_seq(ranges.seqs().map_or(0, |(_, newest)| newest))?;
    out.put_u64(RANGES_MARK);
    ranges.encode(out);
    Ok(())
}

/// Checks and parses a stored block of range tombstones.
pub(super) fn parse_ranges(location: Location<'_>, stored: &[u8]) -> Result<RangeTombstones> {
    let (kind, payload) = open_block(location, stored)?;
    let body = payload.strip_prefix(&RANGES_MARK.to_le_bytes()).filter(|_| kind == Compression::None);
    let ranges = body.and_then(RangeTombstones::decode).filter(|ranges| !ranges.is_empty());
    ranges.ok_or_else(|| location.damaged("the range tombstones do not parse"))
}

/// The fixed-size end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footer {
    /// The number of the segment.
    pub id: FileId,
    /// The version of the file's format.
    pub version: u32,
    /// The sequence number of all rows; 0 if they have their own.
    pub number: Seq,
    /// The top index.
    pub top: BlockHandle,
    /// The properties.
    pub properties: BlockHandle,
    /// Digest of all bytes before the footer.
    pub digest: u64,
}

impl Footer {
    /// The bytes on disk.
    ///
    /// # Errors
    /// [`Error::NumbersExhausted`], [`Error::Unencodable`] for what [`decode`](Self::decode) refuses.
    pub fn encode(&self) -> Result<Vec<u8>> {
        check_seq(self.number)?;
        let out = self.bytes();
        let location = Location { path: Path::new("-"), id: self.id, offset: self.properties.end() };
        match out.first_chunk().map(|bytes| Footer::decode(location, bytes)) {
            Some(Ok(decoded)) if decoded == *self => Ok(out),
            refused => {
                Err(Error::Unencodable { what: "the footer of a segment", why: format!("{refused:?}") })
            }
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        out.put_u64(self.id.0);
        out.put_u64(self.number);
        out.put_u64(self.properties.offset);
        out.put_u64(self.digest);
        out.put_u32(self.top.len);
        out.put_u32(self.properties.len);
        out.put_u32(self.version);
        out.extend_from_slice(&MAGIC);
        let crc = crc32(&[&out]);
        out.put_u32(crc);
        out
    }

    /// Decodes the footer at `location`, [`FOOTER_BYTES`] before the end of the file.
    pub fn decode(location: Location<'_>, bytes: &[u8; FOOTER_BYTES]) -> Result<Self> {
        if bytes[MAGIC_AT..CRC_AT] != MAGIC {
            return Err(location.damaged("no segment footer: the file is truncated or is not a segment"));
        }
        let mut fields = Decoder::new(bytes);
        let mut decode = || -> Option<(Footer, u32)> {
            let (id, number, properties, digest) =
                (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
            let (top_len, properties_len, version) = (fields.u32()?, fields.u32()?, fields.u32()?);
            fields.take(MAGIC.len())?;
            // A footer whose top index would begin before the file leaves a gap, which is checked below.
            let top = BlockHandle { offset: properties.saturating_sub(top_len.into()), len: top_len };
            let properties = BlockHandle { offset: properties, len: properties_len };
            Some((Footer { id: FileId(id), version, number, top, properties, digest }, fields.u32()?))
        };
        let (footer, crc) = decode().ok_or_else(|| location.damaged("the footer is too short"))?;
        // Checked first: a damaged version field must not pass for another version.
        if crc32(&[&bytes[..CRC_AT]]) != crc {
            return Err(location.damaged("footer checksum mismatch"));
        }
        if !READS.contains(&footer.version) {
            let (file, found) = (location.path.to_path_buf(), footer.version);
            return Err(Error::UnsupportedVersion { file, found, supported: READS });
        }
        if footer.id != location.id {
            return Err(location
                .damaged(format!("the footer belongs to segment {}; was the file renamed?", footer.id)));
        }
        if footer.top.end() != footer.properties.offset || footer.properties.end() != location.offset {
            return Err(location
                .damaged("the footer's offsets leave a gap or overlap: bytes are missing or were added"));
        }
        // The top index has a separator for every partition, and is longer than these.
        let top_max = footer.top.offset.min((MAX_BLOCK_BYTES + TRAILER_BYTES) as u64);
        if u64::from(footer.top.len) > top_max || footer.properties.len as usize > PROPERTIES_STORED_MAX {
            return Err(location.damaged(format!(
                "a top index of {} bytes and properties of {} bytes are too long for this file",
                footer.top.len, footer.properties.len
            )));
        }
        if footer.number > MAX_SEQ {
            return Err(location.damaged(format!("the sequence number {} is too large", footer.number)));
        }
        Ok(footer)
    }
}

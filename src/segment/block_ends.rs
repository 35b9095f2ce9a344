//! Finds the end of a block in segments without a readable index.
//!
//! 1. The beginning of a payload says how long it is: the areas of a data block, the sequences of an lz4
//!    block, the blocks of a zstd frame, the separators of an index, the keys of range tombstones and
//!    properties. Nearly all other bytes contradict themselves at once.
//! 2. Only then is a checksum computed, up to that end. It covers the location, so nothing else matches.

use super::block_layout::{BlockHeader, EXPIRY_WIDTH_MAX, HEADER_BYTES, Layout};
use super::format::{
    Compression, DATA_BYTES_MAX, MAX_BLOCK_BYTES, MIN_SEPARATOR_BYTES, PROPERTIES_MARK, RANGES_MARK,
    SYMBOLS_MARK, TRAILER_BYTES, block_crc, padded_type,
};
use crate::codec::Decoder;
use crate::id::FileId;
use crate::key::MAX_STORED_KEY_BYTES;

/// How many offsets from the start of `bytes` on cannot begin a block. Stops before the last seven.
pub fn offsets_without_block(bytes: &[u8]) -> usize {
    let may_begin = |number: &[u8]| {
        let number = number.first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
        let is_row_count_or_length = (1..=DATA_BYTES_MAX).contains(&(number as u32 as usize));
        is_row_count_or_length
            || number < NUMBER_MAX
            || matches!(number, PROPERTIES_MARK | RANGES_MARK | SYMBOLS_MARK)
    };
    bytes.windows(8).take_while(|number| !may_begin(number)).count()
}

/// Above the base of any index: files are below 256 TB.
const NUMBER_MAX: u64 = 1 << 48;

/// What starts at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockEnd {
    /// A block of this length, with its trailer.
    At(usize),
    /// More bytes are needed to decide.
    Beyond,
    /// No block.
    Nowhere,
}

/// Looking at the first bytes of a form is part of the effort of its offset.
const FREE_BYTES: usize = 128;
/// The effort of an offset where a block may begin, in bytes.
const OFFSET_EFFORT: u64 = 8;

/// Reads a payload from its start at an offset of a segment up to its end.
type PayloadEnd = fn(&mut Decoder<'_>, u64) -> Payload;
/// The type of the block, and the end of the payload.
type Payload = (Compression, BlockEnd);

/// The end of the block at `offset` of segment `id`, given the `bytes` from there on, out of the `rest` of
/// the file. Adds the number of inspected bytes to `effort`.
pub fn block_end(id: FileId, offset: u64, bytes: &[u8], rest: u64, effort: &mut u64) -> BlockEnd {
    *effort += OFFSET_EFFORT;
    let mut is_beyond = false;
    let forms: [PayloadEnd; 7] =
        [data_end, lz4_end, zstd_end, index_end, ranges_end, properties_end, symbols_end];
    for payload_end in forms {
        let mut fields = Decoder::new(bytes);
        let (kind, found) = payload_end(&mut fields, offset);
        *effort += fields.position().saturating_sub(FREE_BYTES) as u64;
        let found = match found {
            BlockEnd::At(payload) if (payload + TRAILER_BYTES) as u64 > rest => BlockEnd::Nowhere,
            BlockEnd::At(payload) => trailer_end(id, offset, bytes, payload, kind, effort),
            other => other,
        };
        match found {
            BlockEnd::At(_) => return found,
            BlockEnd::Beyond => is_beyond = true,
            BlockEnd::Nowhere => {}
        }
    }
    if is_beyond { BlockEnd::Beyond } else { BlockEnd::Nowhere }
}

/// The end of a block with such a payload, if its checksum matches.
fn trailer_end(
    id: FileId,
    offset: u64,
    bytes: &[u8],
    payload: usize,
    kind: Compression,
    effort: &mut u64,
) -> BlockEnd {
    let Some(tail) = bytes.get(payload..) else { return BlockEnd::Beyond };
    let mut matches = |type_at: usize| {
        let body = bytes.get(..=type_at);
        let stored = bytes.get(type_at + 1..).and_then(|rest| rest.first_chunk::<4>());
        let (Some(body), Some(stored)) = (body, stored) else { return BlockEnd::Beyond };
        *effort += body.len() as u64;
        if block_crc(id, offset, body) == u32::from_le_bytes(*stored) {
            BlockEnd::At(type_at + TRAILER_BYTES)
        } else {
            BlockEnd::Nowhere
        }
    };
    if tail.first() == Some(&(kind as u8)) {
        let found = matches(payload);
        if found != BlockEnd::Nowhere {
            return found;
        }
    }
    // Padding is zeros and their number, one or both of whose bytes may be zero as well.
    let zeros = tail.iter().take(usize::from(u16::MAX)).take_while(|byte| **byte == 0).count();
    for padding in [0, zeros.saturating_sub(1), zeros] {
        let Some(end) = tail.get(padding..).and_then(|rest| rest.first_chunk::<3>()) else {
            return BlockEnd::Beyond;
        };
        let [low, high, byte] = *end;
        if usize::from(u16::from_le_bytes([low, high])) == padding && byte == padded_type(kind) {
            let found = matches(payload + padding + 2);
            if found != BlockEnd::Nowhere {
                return found;
            }
        }
    }
    BlockEnd::Nowhere
}

/// `Beyond` if the end of the bytes may have cut off a field, and is no farther than `most` away.
fn cut_off(fields: &Decoder<'_>, most: usize) -> BlockEnd {
    if fields.remaining() < most { BlockEnd::Beyond } else { BlockEnd::Nowhere }
}

fn data_end(fields: &mut Decoder<'_>, _: u64) -> Payload {
    let Some(header) = fields.take(HEADER_BYTES).and_then(BlockHeader::decode) else {
        return (Compression::None, BlockEnd::Beyond);
    };
    let limits = [
        (header.count, DATA_BYTES_MAX),
        (header.prefix, MAX_STORED_KEY_BYTES),
        (header.keys, DATA_BYTES_MAX),
        (header.values, DATA_BYTES_MAX),
        (header.key_width.into(), 4),
        (header.value_width.into(), 4),
        (header.seq_width.into(), 8),
        (header.expiry_width().into(), EXPIRY_WIDTH_MAX.into()),
    ];
    let kind = if header.has_coded_values { Compression::Fsst } else { Compression::None };
    let is_possible = header.count > 0 && limits.iter().all(|(field, most)| *field as usize <= *most);
    let end = if is_possible { Layout::new(header).end } else { usize::MAX };
    (kind, if end <= DATA_BYTES_MAX { BlockEnd::At(end) } else { BlockEnd::Nowhere })
}

/// The length of a compressed data block: at least a header and an entry.
fn raw_len(fields: &mut Decoder<'_>) -> Result<usize, BlockEnd> {
    let len = fields.u32().ok_or(BlockEnd::Beyond)? as usize;
    let is_possible = (HEADER_BYTES..=DATA_BYTES_MAX).contains(&len);
    is_possible.then_some(len).ok_or(BlockEnd::Nowhere)
}

fn lz4_end(fields: &mut Decoder<'_>, _: u64) -> Payload {
    (Compression::Lz4, lz4_sequences(fields).unwrap_or_else(|end| end))
}

/// The sequences of an lz4 block: literals, and a copy of earlier output. The last one has only literals.
fn lz4_sequences(fields: &mut Decoder<'_>) -> Result<BlockEnd, BlockEnd> {
    let (len, mut output) = (raw_len(fields)?, 0);
    loop {
        let token = usize::from(fields.u8().ok_or(BlockEnd::Beyond)?);
        let literals = lz4_len(fields, token >> 4, len)?;
        output += literals;
        if output > len {
            return Err(BlockEnd::Nowhere);
        }
        fields.take(literals).ok_or(BlockEnd::Beyond)?;
        if output == len {
            return Ok(BlockEnd::At(fields.position()));
        }
        let distance = fields.take(2).and_then(|bytes| bytes.first_chunk::<2>()).ok_or(BlockEnd::Beyond)?;
        let distance = usize::from(u16::from_le_bytes(*distance));
        output += if (1..=output).contains(&distance) {
            lz4_len(fields, token & 15, len)? + 4
        } else {
            return Err(BlockEnd::Nowhere);
        };
        if output > len {
            return Err(BlockEnd::Nowhere);
        }
    }
}

/// A length that starts in the token. More bytes follow if that is 15, and each of them if it is 255.
fn lz4_len(fields: &mut Decoder<'_>, first: usize, most: usize) -> Result<usize, BlockEnd> {
    let mut len = first;
    let mut is_full = first == 15;
    while is_full {
        let byte = fields.u8().ok_or(BlockEnd::Beyond)?;
        len += usize::from(byte);
        if len > most {
            return Err(BlockEnd::Nowhere);
        }
        is_full = byte == 255;
    }
    Ok(len)
}

fn zstd_end(fields: &mut Decoder<'_>, _: u64) -> Payload {
    (Compression::Zstd, zstd_frame(fields).unwrap_or_else(|end| end))
}

/// A frame by RFC 8878, section 3.1.1: a header whose first byte gives its length, blocks with their lengths,
/// and perhaps a checksum.
fn zstd_frame(fields: &mut Decoder<'_>) -> Result<BlockEnd, BlockEnd> {
    const MAGIC: u32 = 0xfd2f_b528;
    let len = raw_len(fields)?;
    if fields.u32().ok_or(BlockEnd::Beyond)? != MAGIC {
        return Err(BlockEnd::Nowhere);
    }
    let descriptor = fields.u8().ok_or(BlockEnd::Beyond)?;
    let is_single = descriptor >> 5 & 1 == 1;
    let dictionary = [0, 1, 2, 4].get(usize::from(descriptor & 3)).copied().unwrap_or_default();
    let size = match descriptor >> 6 {
        0 => usize::from(is_single),
        power => 1 << power,
    };
    fields.take(usize::from(!is_single) + dictionary + size).ok_or(BlockEnd::Beyond)?;
    loop {
        let Some([low, middle, high]) = fields.take(3).and_then(|bytes| bytes.first_chunk::<3>()) else {
            return Err(BlockEnd::Beyond);
        };
        let head = u32::from_le_bytes([*low, *middle, *high, 0]);
        let bytes = match head >> 1 & 3 {
            0 | 2 => (head >> 3) as usize,
            1 => 1,
            _ => return Err(BlockEnd::Nowhere),
        };
        if bytes > len {
            return Err(BlockEnd::Nowhere);
        }
        fields.take(bytes).ok_or(BlockEnd::Beyond)?;
        if head & 1 == 1 {
            break;
        }
    }
    fields.take(usize::from(descriptor >> 2 & 1) * 4).ok_or(BlockEnd::Beyond)?;
    Ok(BlockEnd::At(fields.position()))
}

fn index_end(fields: &mut Decoder<'_>, offset: u64) -> Payload {
    (Compression::None, separators(fields, offset).unwrap_or_else(|end| end))
}

/// An index lists blocks that lie before it.
fn separators(fields: &mut Decoder<'_>, offset: u64) -> Result<BlockEnd, BlockEnd> {
    let mut listed_to = fields.u64().ok_or(BlockEnd::Beyond)?;
    let count = fields.u32().ok_or(BlockEnd::Beyond)? as usize;
    if count == 0 || count > MAX_BLOCK_BYTES / MIN_SEPARATOR_BYTES {
        return Err(BlockEnd::Nowhere);
    }
    for _ in 0..count {
        let Some((shared, rest, len)) = separator(fields) else {
            return Err(cut_off(fields, 3 * VARINT_BYTES));
        };
        listed_to = listed_to.saturating_add(len);
        if shared.saturating_add(rest) > MAX_STORED_KEY_BYTES
            || len <= TRAILER_BYTES as u64
            || listed_to > offset
        {
            return Err(BlockEnd::Nowhere);
        }
        fields.take(rest).ok_or(BlockEnd::Beyond)?;
    }
    Ok(BlockEnd::At(fields.position()))
}

fn separator(fields: &mut Decoder<'_>) -> Option<(usize, usize, u64)> {
    Some((fields.length()?, fields.length()?, fields.varint()?))
}

/// The longest varint.
const VARINT_BYTES: usize = 10;

fn ranges_end(fields: &mut Decoder<'_>, _: u64) -> Payload {
    (Compression::None, steps(fields).unwrap_or_else(|end| end))
}

fn steps(fields: &mut Decoder<'_>) -> Result<BlockEnd, BlockEnd> {
    if fields.u64().ok_or(BlockEnd::Beyond)? != RANGES_MARK {
        return Err(BlockEnd::Nowhere);
    }
    let count = fields.varint().ok_or_else(|| cut_off(fields, VARINT_BYTES))?;
    for _ in 0..count {
        key(fields, 0)?;
        fields.varint().ok_or_else(|| cut_off(fields, VARINT_BYTES))?;
    }
    Ok(BlockEnd::At(fields.position()))
}

/// Skips a key with its length, which is `more` too large, before it.
fn key(fields: &mut Decoder<'_>, more: usize) -> Result<(), BlockEnd> {
    let len = fields.length().ok_or_else(|| cut_off(fields, VARINT_BYTES))?.saturating_sub(more);
    if len > MAX_STORED_KEY_BYTES {
        return Err(BlockEnd::Nowhere);
    }
    fields.take(len).map(drop).ok_or(BlockEnd::Beyond)
}

fn properties_end(fields: &mut Decoder<'_>, _: u64) -> Payload {
    (Compression::None, properties(fields).unwrap_or_else(|end| end))
}

fn symbols_end(fields: &mut Decoder<'_>, _: u64) -> Payload {
    (Compression::None, symbols(fields).unwrap_or_else(|end| end))
}

fn symbols(fields: &mut Decoder<'_>) -> Result<BlockEnd, BlockEnd> {
    if fields.u64().ok_or(BlockEnd::Beyond)? != SYMBOLS_MARK {
        return Err(BlockEnd::Nowhere);
    }
    let count = fields.u8().ok_or(BlockEnd::Beyond)?;
    let lens = fields.take(count.into()).ok_or(BlockEnd::Beyond)?;
    fields.take(lens.iter().copied().map(usize::from).sum()).ok_or(BlockEnd::Beyond)?;
    Ok(BlockEnd::At(fields.position()))
}

fn properties(fields: &mut Decoder<'_>) -> Result<BlockEnd, BlockEnd> {
    const STORE_BYTES: usize = 8 + 1 + 2 * 8;
    if fields.u64().ok_or(BlockEnd::Beyond)? != PROPERTIES_MARK {
        return Err(BlockEnd::Nowhere);
    }
    fields.take(STORE_BYTES).ok_or(BlockEnd::Beyond)?;
    let mut ahead = *fields;
    let has_symbols = ahead.bytes() == Some(Compression::Fsst.name().as_bytes());
    key(fields, 0)?; // The compression's name.
    if has_symbols {
        key(fields, 0)?; // The symbol table.
    }
    [0, 1].into_iter().try_for_each(|more| key(fields, more))?;
    for _ in 0..fields.u8().ok_or(BlockEnd::Beyond)? {
        fields.varint().ok_or_else(|| cut_off(fields, VARINT_BYTES))?;
    }
    Ok(BlockEnd::At(fields.position()))
}

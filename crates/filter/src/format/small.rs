//! The form of a [`SmallFilter`] in a stream and in a file: compact, for filters of a few dozen bytes.
//!
//! | offset | bytes | field | meaning | invalid when |
//! |---|---|---|---|---|
//! | 0 | 4 | magic | `SBFS` | anything else: not a small filter |
//! | 4 | 1 | version | 1 in the low four bits, and their complement in the high four: 0xe1 | any other |
//! | 5 | 1 | hash | 1 xxh3-64, 4 siphash-1-3 | any other; above 4, a newer build may have written it |
//! | 6 | 8 or 16 | seed or key | 8 bytes for hash 1, 16 for hash 4 | |
//! | | varint | keys | n, the number of values | more than 65,536 |
//! | | 1 | rate bits | b: the values are below n·2^b | not 1 to 32 |
//! | | varint | length | of the coded values, in bytes | impossible for n and b |
//! | | length | coded values | in ascending order, coded by their gaps (`family/rice.rs`); keys may share one, which then occurs once per key | not n values below n·2^b, or nonzero bits after them |
//! | | 4 | checksum | CRC-32 of all bytes before it | does not match |
//!
//! Integers are little-endian; a varint has at most 3 bytes here. A filter has exactly one encoding: anything
//! else that decodes to it is invalid. A file has the same bytes, and no pages: it is read as a whole, so it
//! needs neither checksums of groups nor aligned lines.

use super::input::Input;
use crate::SmallFilter;
use crate::codec::{Decoder, Encode, crc32};
use crate::error::{Error, Result};
use crate::hash::{KeyHasher, SIPHASH_1_3, is_newer_code};
use std::io::Read;
use std::ops::RangeInclusive;

pub(super) const MAGIC: [u8; 4] = *b"SBFS";
/// The versions that this build reads.
const READS: RangeInclusive<u32> = 1..=1;
/// The version that it writes: the last one it reads.
const WRITES: u8 = *READS.end() as u8;
const VERSION_AT: usize = MAGIC.len();
const HASH_AT: usize = VERSION_AT + 1;
/// A version with its complement, so that a damaged one does not pass for another version.
const fn version_byte(version: u8) -> u8 {
    version | !version << 4
}
/// The largest filter, in bytes.
pub const MAX_BYTES: usize = 300_000;
const VARINT_MAX: usize = 3;

/// Whether these are the first bytes of a small filter.
pub fn is_small(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The bytes of a filter.
pub fn encode(filter: &SmallFilter) -> Vec<u8> {
    let (hash, [first, second]) = filter.hasher().to_code();
    let mut bytes = MAGIC.to_vec();
    bytes.put_u8(version_byte(WRITES));
    bytes.put_u8(hash);
    bytes.put_u64(first);
    if hash == SIPHASH_1_3 {
        bytes.put_u64(second);
    }
    bytes.put_varint(filter.keys());
    bytes.put_u8(filter.rate_bits() as u8);
    bytes.put_bytes(&filter.to_coded());
    bytes.put_u32(crc32(&[&bytes]));
    bytes
}

/// Decodes a filter that takes all of the bytes.
///
/// # Errors
/// [`Error::Damaged`], [`Error::UnsupportedVersion`] or [`Error::UnknownCode`].
pub fn decode(bytes: &[u8]) -> Result<SmallFilter> {
    let mut rest = bytes.strip_prefix(&MAGIC).ok_or_else(|| Error::damaged(0, "not a small filter"))?;
    if let Some(hash) = newer_hash(bytes) {
        return Err(Error::unknown_code(HASH_AT as u64, format!("hash code {hash}")));
    }
    let filter = receive(&mut Input { input: &mut rest, at: MAGIC.len() as u64 }, u64::MAX)?;
    match rest.len() {
        0 => Ok(filter),
        more => Err(Error::damaged((bytes.len() - more) as u64, "trailing data after the filter")),
    }
}

/// The hash of a whole filter, if only a newer version knows it.
fn newer_hash(bytes: &[u8]) -> Option<u8> {
    let (checked, crc) = bytes.split_last_chunk()?;
    let (byte, hash) = (*checked.get(VERSION_AT)?, *checked.get(HASH_AT)?);
    let version = byte & 15;
    let is_read = byte == version_byte(version) && READS.contains(&version.into());
    let is_sound = is_read && *crc == crc32(&[checked]).to_le_bytes();
    (is_sound && is_newer_code(hash)).then_some(hash)
}

/// Reads what follows the magic.
pub(super) fn receive<R: Read>(input: &mut Input<'_, R>, max_bytes: u64) -> Result<SmallFilter> {
    let mut fields = Fields { input, seen: MAGIC.to_vec() };
    let byte = fields.byte()?;
    let version = byte & 15;
    if byte != version_byte(version) {
        return Err(fields.damaged("invalid version"));
    }
    if !READS.contains(&version.into()) {
        return Err(Error::UnsupportedVersion { found: version.into(), supported: READS });
    }
    let hash = fields.byte()?;
    let key = [fields.word()?, if hash == SIPHASH_1_3 { fields.word()? } else { 0 }];
    let hasher = KeyHasher::from_code(hash, key);
    // An unknown hash has a key of unknown length, so nothing in a stream tells where the checksum is.
    let or_newer = if is_newer_code(hash) { ", unless a newer version wrote the filter" } else { "" };
    let hasher = hasher.ok_or_else(|| fields.damaged(format!("unknown hash {hash}{or_newer}")))?;
    let keys = fields.varint()?;
    if keys > SmallFilter::MAX_KEYS as u64 {
        return Err(fields.damaged(format!("{keys} keys in a small filter")));
    }
    let rate_bits = fields.byte()?.into();
    if !(1..=SmallFilter::MAX_RATE_BITS).contains(&rate_bits) {
        return Err(fields.damaged(format!("a rate of 2^-{rate_bits}")));
    }
    let length = fields.varint()?;
    if !SmallFilter::coded_lengths(keys, rate_bits).contains(&length) {
        return Err(fields.damaged(format!("{length} bytes for {keys} values")));
    }
    let bytes = SmallFilter::bytes_of(keys);
    if bytes > max_bytes {
        return Err(Error::TooLarge { bytes, max: max_bytes });
    }
    let coded = fields.take(length as usize)?;
    let crc = crc32(&[&fields.seen]).to_le_bytes();
    if fields.take(crc.len())? != crc {
        return Err(fields.damaged("checksum mismatch"));
    }
    let filter = SmallFilter::from_coded(rate_bits, hasher, keys, &coded);
    // Encoding it again checks every bit that decoding does not need.
    let filter = filter.filter(|filter| encode(filter) == fields.seen);
    filter.ok_or_else(|| fields.damaged("invalid coded values"))
}

/// Reads fields, and keeps their bytes.
struct Fields<'a, 'b, R> {
    input: &'a mut Input<'b, R>,
    seen: Vec<u8>,
}

impl<R: Read> Fields<'_, '_, R> {
    /// A failed check of the field that was read last.
    fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(self.seen.len() as u64 - 1, what)
    }

    fn take(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.input.fill(&mut bytes)?;
        self.seen.extend_from_slice(&bytes);
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8> {
        let mut byte = [0];
        self.input.fill(&mut byte)?;
        self.seen.extend(byte);
        Ok(byte[0])
    }

    fn word(&mut self) -> Result<u64> {
        Ok(Decoder::new(&self.take(8)?).u64().unwrap_or_default())
    }

    fn varint(&mut self) -> Result<u64> {
        let mut bytes = Vec::new();
        while bytes.len() < VARINT_MAX && bytes.last().is_none_or(|&byte| byte >= 0x80) {
            bytes.push(self.byte()?);
        }
        Decoder::new(&bytes).varint().ok_or_else(|| self.damaged("a number of more than 3 bytes"))
    }
}

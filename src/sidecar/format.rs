//! The sidecar file: one filter.
//!
//! ```text
//! 0                4096                    4096 + 64 × lines    end
//! ├── header page ──┼── lines, 64 bytes each ──┼── digest: 8 bytes ──┤
//! ```
//!
//! Header page, little-endian:
//!
//! | offset | bytes | field | meaning | invalid when |
//! |---|---|---|---|---|
//! | 0 | 8 | magic | `SBFILTER` | anything else: no sidecar |
//! | 8 | 4 | version | 1 | 0; a greater one was written by a newer build and is not read |
//! | 12 | 1 | kind | 1 blocked Bloom, 2 parity | any other |
//! | 13 | 1 | hash | 1 xxh3-64, seeded ([`crate::hash`]) | any other |
//! | 14 | 1 | bound | 1 belongs to one segment, 0 stands alone | any other |
//! | 15 | 1 | zero | | not 0 |
//! | 16 | 8 | seed | of the key hash | not the store's: every answer would be wrong |
//! | 24 | 8 | keys | how many hashes were added | |
//! | 32 | 8 | lines | | 0, or more than [`MAX_LINES`] |
//! | 40 | 8 | segment id | file number of the segment | not the expected one; not 0 while unbound |
//! | 48 | 8 | segment digest | the segment's own digest | not the expected one; not 0 while unbound |
//! | 56 | 8 | digest offset | 4096 + 64 × lines | anything else |
//! | 64 | 32 | parameters | of the kind, below; the rest zero | |
//! | 96 | 3996 | zero | | not 0: a new field needs a new version |
//! | 4092 | 4 | checksum | CRC-32 of the 4092 bytes before it | does not match |
//!
//! Parameters of a blocked Bloom filter: `k`, 4 bytes, bits per key, 1 to 16. Of a parity filter: its lanes, 4 bytes, 7, 8, 9, 12 or
//! 16; then seven times 4 bytes, how many lines each level has: the first level's come first, 0 means that there is no such level,
//! a level after a missing one is invalid, and so is a sum that is not `lines`.
//!
//! The magic, the version and the checksum keep their places in every version. The lines start on a page, so that a map of the
//! file holds each in one cache line. The digest is [`crate::hash::digest`] of all lines; nothing follows it: the length of the
//! file is 4096 + 64 × lines + 8, and any other length is invalid.

use crate::codec::{Decoder, Encode, crc32};
use crate::filter::{FilterKind, LINE_BYTES, Width, blocked::MAX_K, sizing::MAX_LINES};
use crate::id::FileId;

/// The size of the header in bytes, and the offset of the first line.
pub(super) const HEADER_BYTES: usize = 4096;
/// The size of the digest after the lines, in bytes.
pub(super) const DIGEST_BYTES: usize = 8;
/// The newest version that this build reads, and the one that it writes.
pub(super) const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"SBFILTER";
const KIND_BLOCKED_BLOOM: u8 = 1;
const KIND_PARITY: u8 = 2;
const HASH_XXH3_64: u8 = 1;
const VERSION_AT: usize = 8;
const KIND_AT: usize = 12;
const BOUND_AT: usize = 14;
const SEED_AT: usize = 16;
const KEYS_AT: usize = 24;
const LINES_AT: usize = 32;
const SEGMENT_AT: usize = 40;
const SEGMENT_DIGEST_AT: usize = 48;
const PARAMETERS_AT: usize = 64;
const PARAMETERS_BYTES: usize = 32;
const CRC_AT: usize = HEADER_BYTES - 4;

const _: () = assert!(HEADER_BYTES.is_multiple_of(LINE_BYTES) && PARAMETERS_AT + PARAMETERS_BYTES < CRC_AT);

/// The segment that a sidecar belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// Its file number.
    pub segment: FileId,
    /// Its own digest (`hash::Digest`), so that a number used again by another store does not pass.
    pub digest: u64,
}

/// The contents of a header page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// How the lines are read.
    pub kind: FilterKind,
    /// The seed of the key hash.
    pub seed: u64,
    /// How many hashes were added.
    pub keys: u64,
    /// How many lines follow.
    pub lines: u64,
    /// The segment; `None` for a filter that stands alone.
    pub binding: Option<Binding>,
}

/// Why a header page is no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BadHeader {
    Invalid { offset: usize, what: String },
    FutureVersion(u32),
}

fn invalid(offset: usize, what: impl Into<String>) -> BadHeader {
    BadHeader::Invalid { offset, what: what.into() }
}

impl Header {
    /// Where the digest stands.
    pub(super) fn digest_at(&self) -> u64 {
        HEADER_BYTES as u64 + LINE_BYTES as u64 * self.lines
    }

    /// The one length that a file with this header has, in bytes.
    pub(super) fn file_bytes(&self) -> u64 {
        self.digest_at() + DIGEST_BYTES as u64
    }

    /// The header page.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut page = Vec::with_capacity(HEADER_BYTES);
        page.extend_from_slice(&MAGIC);
        page.put_u32(VERSION);
        page.put_u8(match self.kind {
            FilterKind::BlockedBloom { .. } => KIND_BLOCKED_BLOOM,
            FilterKind::Parity { .. } => KIND_PARITY,
        });
        page.put_u8(HASH_XXH3_64);
        page.put_u8(u8::from(self.binding.is_some()));
        page.put_u8(0);
        page.put_u64(self.seed);
        page.put_u64(self.keys);
        page.put_u64(self.lines);
        page.put_u64(self.binding.map_or(0, |b| b.segment.0));
        page.put_u64(self.binding.map_or(0, |b| b.digest));
        page.put_u64(self.digest_at());
        match self.kind {
            FilterKind::BlockedBloom { k } => page.put_u32(k),
            FilterKind::Parity { width, levels } => {
                page.put_u32(width.lanes());
                levels.iter().for_each(|&count| page.put_u32(count));
            }
        }
        page.resize(CRC_AT, 0);
        page.put_u32(crc32(&[&page]));
        page
    }

    /// Reads and checks a header page; `bytes` may be any file's beginning.
    pub(super) fn decode(bytes: &[u8]) -> Result<Header, BadHeader> {
        let Some(page) = bytes.get(..HEADER_BYTES) else {
            return Err(invalid(bytes.len(), "the file ends within its header page"));
        };
        let (checked, crc) = page.split_at(CRC_AT);
        if !checked.starts_with(&MAGIC) {
            return Err(invalid(0, "it does not begin as a sidecar does"));
        }
        if crc != crc32(&[checked]).to_le_bytes() {
            return Err(invalid(CRC_AT, "the header's checksum does not match"));
        }
        let header = Header::decode_fields(checked)?;
        // One comparison checks all that must be zero and all that follows from other fields.
        match header.encode().iter().zip(page).position(|(expected, found)| expected != found) {
            None => Ok(header),
            Some(at) => {
                Err(invalid(at, "a header byte contradicts the others, or is not zero as it must be"))
            }
        }
    }

    /// The fields that can differ between valid headers.
    fn decode_fields(page: &[u8]) -> Result<Header, BadHeader> {
        let at = |offset: usize| Decoder::new(page.get(offset..).unwrap_or_default());
        let byte = |offset| at(offset).u8().unwrap_or_default();
        let number = |offset| at(offset).u32().unwrap_or_default();
        let long = |offset| at(offset).u64().unwrap_or_default();

        let version = number(VERSION_AT);
        if version > VERSION {
            return Err(BadHeader::FutureVersion(version));
        }
        let kind = match (byte(KIND_AT), number(PARAMETERS_AT)) {
            (KIND_BLOCKED_BLOOM, k) if (1..=MAX_K).contains(&k) => FilterKind::BlockedBloom { k },
            (KIND_PARITY, lanes) if let Some(width) = Width::from_lanes(lanes) => {
                let levels = std::array::from_fn(|i| number(PARAMETERS_AT + 4 + 4 * i));
                FilterKind::Parity { width, levels }
            }
            (kind, k) => return Err(invalid(KIND_AT, format!("unknown filter kind {kind} (parameter {k})"))),
        };
        let lines = long(LINES_AT);
        if !(1..=MAX_LINES).contains(&lines) {
            return Err(invalid(LINES_AT, format!("{lines} lines")));
        }
        if let FilterKind::Parity { levels, .. } = kind {
            let no_gap = levels.windows(2).all(|pair| pair[0] != 0 || pair[1] == 0);
            if !no_gap || levels.iter().map(|&count| u64::from(count)).sum::<u64>() != lines {
                return Err(invalid(PARAMETERS_AT, format!("levels of {levels:?} lines, {lines} in all")));
            }
        }
        let bound = byte(BOUND_AT) != 0;
        let binding = Binding { segment: FileId(long(SEGMENT_AT)), digest: long(SEGMENT_DIGEST_AT) };
        Ok(Header {
            kind,
            seed: long(SEED_AT),
            keys: long(KEYS_AT),
            lines,
            binding: bound.then_some(binding),
        })
    }
}

//! The filter file: a segment's sidecar, or a stand-alone filter. (A small filter has another one:
//! [`super::small`].)
//!
//! ```text
//! 0                4096                    4096 + 64 × lines                       end
//! ├── header page ──┼── lines, 64 bytes each ──┼── checksums, 8 bytes for 64 lines ──┤
//! ```
//!
//! Header page, little-endian:
//!
//! | offset | bytes | field | meaning | invalid when |
//! |---|---|---|---|---|
//! | 0 | 8 | magic | `SBFILTER` | anything else: not a filter file |
//! | 8 | 4 | version | 4 | not among those that this build reads ([`READS`]): an older or a newer build wrote it |
//! | 12 | 1 | kind | 3 Bloom, 4 counting Bloom, 5 scalable Bloom, 6 blocked Bloom, 7 parity | less than 3; above 7, a newer build wrote it |
//! | 13 | 1 | hash | 1 xxh3-64, 2 xxh3-128, 3 MurmurHash3 x64 128, 4 siphash-1-3 | not a hash of the kind; above 4, a newer build wrote it |
//! | 14 | 1 | bound | 1 belongs to one segment, 0 stands alone | any other; 1 for kinds 3 to 5 |
//! | 15 | 1 | zero | | not 0 |
//! | 16 | 8 | seed | seed of the key hash; for hash 4, the first half of its key | not the store's: every answer would be wrong |
//! | 24 | 8 | keys | number of hashes added, including those of prefixes | |
//! | 32 | 8 | lines | | 0, or more than [`MAX_LINES`] |
//! | 40 | 8 | segment id | file number of the segment | not the expected one; not 0 while unbound |
//! | 48 | 8 | segment digest | digest of the segment | not the expected one; not 0 while unbound |
//! | 56 | 8 | checksums offset | 4096 + 64 × lines | anything else |
//! | 64 | 32 | parameters | parameters of the kind, padded with zeros | impossible for the kind |
//! | 96 | 8 | second half of the key | for hash 4; else zero | as for the seed |
//! | 104 | 8 | expected rate | expected false-positive rate, IEEE 754: for kinds 6 and 7 computed from the lines, for 3 to 5 the rate of the current bits | not in 0 to 1 |
//! | 112 | 8 | prefixes | how many of the hashes are of prefixes | more than keys; not 0 without extractors |
//! | 120 | 64 | extractors | 8 bytes each, in ascending order, padded with zeros: what the prefixes of the keys are | no extractor's code; a code twice; not 0 while unbound |
//! | 184 | 3908 | zero | | not 0: a new field needs a new version |
//! | 4092 | 4 | checksum | CRC-32 of the 4092 bytes before it | does not match |
//!
//! Kinds, hashes and parameters are listed in [`super::kind`]. An extractor's code is 1 byte for the rule (1
//! the first bytes, 2 up to a delimiter), the delimiter (0 for rule 1), 2 zero bytes, and 4 bytes for the
//! number of bytes or delimiters, 1 to 65,536 ([`PrefixExtractor::code`]); a rule above 2 belongs to a newer
//! version. The filter has every distinct prefix of its keys as a further hash ([`PrefixExtractor::member`]).
//!
//! The magic, the version and the checksum keep their offsets in every version. The lines start at a page
//! boundary, so that each line of a mapped file is in one cache line.
//!
//! Each *group* of 64 lines (fewer in the last group) has a checksum of 8 bytes: the xxh3-64 of its lines,
//! seeded with the xxh3-64 of the header page plus the number of the group ([`super::groups`]). After a
//! mismatch, the whole file is no longer trusted. A reader checks a group before it reads a line of it, so
//! opening a file reads the header page only. The checksums come last: the file is 4096 + 64 × lines + 8 ×
//! ⌈lines / 64⌉ bytes long, and any other length is invalid.

use super::groups::{CHECKSUM_BYTES, GROUP_LINES};
use super::kind::{PARAMETERS_AT, PARAMETERS_BYTES, StoredKind};
use crate::codec::{Decoder, Encode, crc32};
use crate::error::{Error, Result};
use crate::prefix::{PrefixExtractor, PrefixSet};
use crate::{LINE_BYTES, MAX_LINES};
use std::ops::RangeInclusive;

/// The size of the header in bytes, and the offset of the first line.
pub const HEADER_BYTES: usize = 4096;
/// The versions that this build reads.
pub const READS: RangeInclusive<u32> = 4..=4;
/// The version that it writes: the last one it reads.
pub const WRITES: u32 = *READS.end();

const MAGIC: [u8; 8] = *b"SBFILTER";
const VERSION_AT: usize = 8;
pub(super) const BOUND_AT: usize = 14;
const SEED_AT: usize = 16;
pub(super) const KEYS_AT: usize = 24;
const LINES_AT: usize = 32;
const SEGMENT_AT: usize = 40;
const SEGMENT_DIGEST_AT: usize = 48;
const SECOND_HALF_AT: usize = PARAMETERS_AT + PARAMETERS_BYTES;
const EXPECTED_FPR_AT: usize = SECOND_HALF_AT + 8;
/// The end of a stand-alone filter's fields. Its page is zero from here to its checksum.
pub(super) const FIELDS_BYTES: usize = EXPECTED_FPR_AT + 8;
const PREFIXES_AT: usize = FIELDS_BYTES;
const EXTRACTORS_AT: usize = PREFIXES_AT + 8;
const EXTRACTORS_END: usize = EXTRACTORS_AT + 8 * PrefixSet::MAX;
const CRC_AT: usize = HEADER_BYTES - 4;

const _: () = assert!(HEADER_BYTES.is_multiple_of(LINE_BYTES) && EXTRACTORS_END < CRC_AT);

/// The segment that a filter file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// The file number of the segment.
    pub segment: u64,
    /// The digest of the segment ([`Digest`](crate::hash::Digest)), so that another store's segment with the
    /// same number does not match.
    pub digest: u64,
}

/// The contents of a header page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Header {
    /// What the lines are.
    pub kind: StoredKind,
    /// The number of hashes added, including those of prefixes.
    pub keys: u64,
    /// The number of lines.
    pub lines: u64,
    /// The expected false-positive rate when it was written, 0 to 1.
    pub expected_fpr: f64,
    /// The segment; `None` for a stand-alone filter.
    pub binding: Option<Binding>,
    /// The prefixes of the segment's keys; none in a stand-alone filter.
    pub prefixes: StoredPrefixes,
}

/// Which prefixes a filter has in addition to the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredPrefixes {
    /// What the prefixes of a key are.
    pub set: PrefixSet,
    /// The number of their hashes.
    pub count: u64,
}

impl Header {
    /// The offset of the checksums of the groups.
    pub fn checksums_at(&self) -> u64 {
        (LINE_BYTES as u64).saturating_mul(self.lines).saturating_add(HEADER_BYTES as u64)
    }

    /// The number of groups, each of which has a checksum.
    pub fn groups(&self) -> usize {
        self.lines.div_ceil(GROUP_LINES as u64) as usize
    }

    /// The length in bytes of a file with this header.
    pub fn file_bytes(&self) -> u64 {
        self.checksums_at() + (CHECKSUM_BYTES * self.groups()) as u64
    }

    /// Checks the length of a file with this header.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a file of any other length.
    pub fn check_length(&self, found: u64) -> Result<()> {
        let expected = self.file_bytes();
        if found == expected {
            return Ok(());
        }
        let what = format!("the file has {found} bytes, but its header says {expected}");
        Err(Error::damaged(expected.min(found), what))
    }

    /// The header page.
    ///
    /// # Errors
    /// [`Error::Unencodable`] for fields that [`decode`](Self::decode) refuses.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let page = self.page(WRITES);
        match Header::decode(&page) {
            Ok(decoded) if decoded == *self => Ok(page),
            Ok(_) => Err(Error::Unencodable { why: "it would be read back differently".into() }),
            Err(error) => Err(Error::Unencodable { why: error.to_string() }),
        }
    }

    /// The page in a version that this build reads.
    fn page(&self, version: u32) -> Vec<u8> {
        let mut page = Vec::with_capacity(HEADER_BYTES);
        page.extend_from_slice(&MAGIC);
        page.put_u32(version);
        page.extend_from_slice(&self.kind.codes());
        page.put_u8(u8::from(self.binding.is_some()));
        page.put_u8(0);
        let [seed, second_half] = self.kind.hash_key();
        page.put_u64(seed);
        page.put_u64(self.keys);
        page.put_u64(self.lines);
        page.put_u64(self.binding.map_or(0, |b| b.segment));
        page.put_u64(self.binding.map_or(0, |b| b.digest));
        page.put_u64(self.checksums_at());
        self.kind.put_parameters(&mut page);
        page.resize(SECOND_HALF_AT, 0);
        page.put_u64(second_half);
        page.put_u64(self.expected_fpr.to_bits());
        page.put_u64(self.prefixes.count);
        self.prefixes.set.iter().for_each(|extractor| page.put_u64(extractor.code()));
        page.resize(CRC_AT, 0);
        page.put_u32(crc32(&[&page]));
        page
    }

    /// Decodes and checks a header page. `bytes` may be the start of any file.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::UnsupportedVersion`] or [`Error::UnknownCode`].
    pub fn decode(bytes: &[u8]) -> Result<Header> {
        if !bytes.starts_with(&MAGIC) {
            return Err(Error::damaged(0, "not a filter file"));
        }
        let Some(page) = bytes.get(..HEADER_BYTES) else {
            return Err(Error::damaged(bytes.len() as u64, "the file ends within its header page"));
        };
        let (checked, crc) = page.split_at(CRC_AT);
        if crc != crc32(&[checked]).to_le_bytes() {
            return Err(Error::damaged(CRC_AT as u64, "header checksum mismatch"));
        }
        let version = Decoder::new(checked.get(VERSION_AT..).unwrap_or_default()).u32().unwrap_or_default();
        if !READS.contains(&version) {
            return Err(Error::UnsupportedVersion { found: version, supported: READS });
        }
        let header = Header::decode_fields(checked)?;
        // One comparison checks every byte that must be zero or that follows from other fields.
        let encoded = header.page(version);
        if encoded[..] == *page {
            return Ok(header);
        }
        let at = encoded.iter().zip(page).take_while(|(expected, found)| expected == found).count();
        Err(Error::damaged(at as u64, "a header byte contradicts other fields or must be zero"))
    }

    /// Decodes the fields that can differ between valid headers.
    fn decode_fields(page: &[u8]) -> Result<Header> {
        let at = |offset: usize| Decoder::new(page.get(offset..).unwrap_or_default());
        let byte = |offset| at(offset).u8().unwrap_or_default();
        let long = |offset| at(offset).u64().unwrap_or_default();

        let lines = long(LINES_AT);
        if !(1..=MAX_LINES).contains(&lines) {
            return Err(Error::damaged(LINES_AT as u64, format!("invalid number of lines {lines}")));
        }
        let expected_fpr = f64::from_bits(long(EXPECTED_FPR_AT));
        if !(0.0..=1.0).contains(&expected_fpr) {
            let what = format!("invalid false-positive rate {expected_fpr}");
            return Err(Error::damaged(EXPECTED_FPR_AT as u64, what));
        }
        let bound = byte(BOUND_AT) != 0;
        let kind = StoredKind::decode(page, [SEED_AT, SECOND_HALF_AT].map(long), lines)?;
        if bound && !matches!(kind, StoredKind::Lines(..)) {
            return Err(Error::damaged(BOUND_AT as u64, "a filter of this kind cannot belong to a segment"));
        }
        let binding = Binding { segment: long(SEGMENT_AT), digest: long(SEGMENT_DIGEST_AT) };
        let (keys, binding) = (long(KEYS_AT), bound.then_some(binding));
        let prefixes = if bound { StoredPrefixes::decode(keys, long)? } else { StoredPrefixes::default() };
        Ok(Header { kind, keys, lines, expected_fpr, binding, prefixes })
    }
}

impl StoredPrefixes {
    /// Decodes the prefix fields of a filter with `keys` hashes. `long` gives the eight bytes at an offset.
    fn decode(keys: u64, long: impl Fn(usize) -> u64) -> Result<Self> {
        let mut extractors = Vec::new();
        for at in (EXTRACTORS_AT..EXTRACTORS_END).step_by(8) {
            match long(at) {
                0 => {}
                code if PrefixExtractor::is_newer_code(code) => {
                    return Err(Error::unknown_code(at as u64, format!("prefix extractor {code:#x}")));
                }
                code => extractors.push(PrefixExtractor::from_code(code).ok_or_else(|| {
                    Error::damaged(at as u64, format!("invalid code {code:#x} of a prefix extractor"))
                })?),
            }
        }
        let invalid = |error: Error| Error::damaged(EXTRACTORS_AT as u64, error.to_string());
        let (set, count) = (PrefixSet::new(extractors).map_err(invalid)?, long(PREFIXES_AT));
        if count > keys || set.is_empty() && count > 0 {
            return Err(Error::damaged(PREFIXES_AT as u64, format!("invalid number of prefixes {count}")));
        }
        Ok(StoredPrefixes { set, count })
    }
}

//! The kinds of stored filters: bytes 12 and 13 of the header page, and the 32 bytes of parameters.
//!
//! | kind | hash | parameters, at these offsets of the 32 bytes | lines |
//! |---|---|---|---|
//! | 6 blocked Bloom | 1, 4 | 0: `k`, 4 bytes, bits per key, 1 to 16 | |
//! | 7 parity | 1, 4 | 0: the number of the width, 4 bytes, 7 to 12 or 16; 4: seven times 4 bytes, the number of lines in each level, first level first; 0 for this and all later levels if it does not exist | the sum of the levels |
//! | 3 Bloom | 2, 3, 4 | 0: `k`, 4 bytes, 1 to 64; 8: the highest false-positive rate, 8 bytes, IEEE 754, above 0 and below 1 | m / 512 |
//! | 4 counting Bloom | 2, 3, 4 | as 3 | m / 128, four bits a counter; a multiple of 4 |
//! | 5 scalable Bloom | 2, 3, 4 | 0: filters in the series, 4 bytes, 1 to 40; 8: the rate of the series, 8 bytes; 16: capacity of the first filter, 8 bytes | the sum over all filters, oldest first, as derived from the series |
//!
//! Hashes: 1 xxh3-64, 4 siphash-1-3 (both in [`crate::hash`]; with 128 bits for kinds 3 to 5), 2 xxh3-128, 3
//! MurmurHash3 x64 128. Hash 4 has a key of 16 bytes, the others a seed of 8 bytes. All other bytes are zero.
//! Kinds 3 to 5 never belong to a segment, because the filters of a store share one 64-bit hash per lookup.
//! Kind 1 was a blocked Bloom filter and kind 2 a parity filter, both with other bit layouts. A kind above 7
//! or a hash above 4 belongs to a newer version: a reader that does not know it says so
//! ([`Error::UnknownCode`]) and reports no damage.

use crate::codec::{Decoder, Encode};
use crate::error::{Error, Result};
use crate::hash::{KeyHasher, SIPHASH_1_3, is_newer_code};
use crate::shape::check_fpr;
use crate::{FilterKind, HashFunction, Levels, Plan, ScalableBloom, Series, Shape, Width, blocked::MAX_K};

/// The offset of the kind in the header page.
pub const KIND_AT: usize = 12;
/// The offset of the parameters in the header page.
pub(super) const PARAMETERS_AT: usize = 64;
/// The size of the parameters in bytes.
pub(super) const PARAMETERS_BYTES: usize = 32;

const BLOCKED_BLOOM: u8 = 6;
const PARITY: u8 = 7;
const BLOOM: u8 = 3;
const COUNTING: u8 = 4;
const SCALABLE: u8 = 5;
/// The last kind of this version.
const LAST: u8 = PARITY;

const XXH3_128: u8 = 2;
const MURMUR3_128: u8 = 3;

/// The kind of a stored filter with its parameters and hash: everything but the lines that affects an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StoredKind {
    /// Kinds 6 and 7, which a segment can have.
    Lines(FilterKind, KeyHasher),
    /// Kind 3.
    Bloom(Plan),
    /// Kind 4.
    Counting(Plan),
    /// Kind 5.
    Scalable {
        /// The parameters of the series.
        series: Series,
        /// The number of filters.
        layers: usize,
    },
}

impl StoredKind {
    /// The display name: "parity", "blocked-bloom", "bloom", "counting", "scalable".
    pub fn name(&self) -> &'static str {
        match self {
            Self::Lines(kind, _) => kind.family(),
            Self::Bloom(_) => "bloom",
            Self::Counting(_) => "counting",
            Self::Scalable { .. } => "scalable",
        }
    }

    /// The bytes for the kind and the hash.
    pub(super) fn codes(&self) -> [u8; 2] {
        match self {
            Self::Lines(FilterKind::BlockedBloom { .. }, hasher) => [BLOCKED_BLOOM, hasher.to_code().0],
            Self::Lines(FilterKind::Parity { .. }, hasher) => [PARITY, hasher.to_code().0],
            Self::Bloom(plan) => [BLOOM, hash_code(plan.hash).0],
            Self::Counting(plan) => [COUNTING, hash_code(plan.hash).0],
            Self::Scalable { series, .. } => [SCALABLE, hash_code(series.hash).0],
        }
    }

    /// The seed or the key of the hash, as two words. The second is zero for a seed.
    pub(super) fn hash_key(&self) -> [u64; 2] {
        match self {
            Self::Lines(_, hasher) => hasher.to_code().1,
            Self::Bloom(plan) | Self::Counting(plan) => hash_code(plan.hash).1,
            Self::Scalable { series, .. } => hash_code(series.hash).1,
        }
    }

    /// Appends the parameters, without the zeros that pad them to 32 bytes.
    pub(super) fn put_parameters(&self, page: &mut Vec<u8>) {
        match self {
            Self::Lines(FilterKind::BlockedBloom { k }, _) => page.put_u32(*k),
            Self::Lines(FilterKind::Parity { width, levels }, _) => {
                page.put_u32(width.number());
                levels.iter().for_each(|&count| page.put_u32(count));
            }
            Self::Bloom(plan) | Self::Counting(plan) => {
                page.put_u32(plan.shape.hashes());
                page.put_u32(0);
                page.put_u64(plan.fpr.to_bits());
            }
            Self::Scalable { series, layers } => {
                page.put_u32(*layers as u32);
                page.put_u32(0);
                page.put_u64(series.fpr.to_bits());
                page.put_u64(series.first_keys);
            }
        }
    }

    /// Decodes the kind of a header page. The caller has checked that the page is complete, and checks the
    /// bytes that this does not read.
    pub(super) fn decode(page: &[u8], hash_key: [u64; 2], lines: u64) -> Result<StoredKind> {
        let at = |offset: usize| Decoder::new(page.get(offset..).unwrap_or_default());
        let number = |offset| at(PARAMETERS_AT + offset).u32().unwrap_or_default();
        let long = |offset| at(PARAMETERS_AT + offset).u64().unwrap_or_default();
        let [kind, hash_code] = [KIND_AT, KIND_AT + 1].map(|offset| at(offset).u8().unwrap_or_default());
        if kind > LAST {
            return Err(Error::unknown_code(KIND_AT as u64, format!("filter kind {kind}")));
        }
        if is_newer_code(hash_code) {
            return Err(Error::unknown_code(KIND_AT as u64 + 1, format!("hash code {hash_code}")));
        }
        let hash = hash_of(hash_code, hash_key);
        let hasher = KeyHasher::from_code(hash_code, hash_key);
        let fpr = f64::from_bits(long(8));
        let plan = |lines| match (Shape::of_lines(lines, number(0)), hash, check_fpr(fpr)) {
            (Some(shape), Some(hash), Ok(())) => Some(Plan { shape, hash, fpr }),
            _ => None,
        };
        let decoded = match kind {
            BLOCKED_BLOOM => {
                let k = Some(number(0)).filter(|k| (1..=MAX_K).contains(k));
                k.zip(hasher).map(|(k, hasher)| Self::Lines(FilterKind::BlockedBloom { k }, hasher))
            }
            PARITY => {
                let levels = std::array::from_fn(|i| number(4 + 4 * i));
                let kind = parity(Width::from_number(number(0)), levels, lines);
                kind.zip(hasher).map(|(kind, hasher)| Self::Lines(kind, hasher))
            }
            BLOOM => plan(lines).map(StoredKind::Bloom),
            COUNTING => plan(lines / 4).filter(|_| lines.is_multiple_of(4)).map(Self::Counting),
            SCALABLE => {
                let layers = number(0) as usize;
                hash.map(|hash| Series { first_keys: long(16), fpr, hash })
                    .filter(|series| ScalableBloom::lines_of(*series, layers) == Some(lines))
                    .map(|series| Self::Scalable { series, layers })
            }
            _ => return Err(Error::damaged(KIND_AT as u64, format!("invalid filter kind {kind}"))),
        };
        decoded.ok_or_else(|| {
            let what = format!("invalid parameters or hash for a filter of kind {kind} with {lines} lines");
            Error::damaged(PARAMETERS_AT as u64, what)
        })
    }
}

/// The code of a hash of kinds 3 to 5, with its seed or key.
fn hash_code(hash: HashFunction) -> (u8, [u64; 2]) {
    match hash {
        HashFunction::Xxh3(seed) => (XXH3_128, [seed, 0]),
        HashFunction::Murmur3(seed) => (MURMUR3_128, [seed, 0]),
        HashFunction::SipHash13(key) => (SIPHASH_1_3, key),
    }
}

/// `None` for a code that kinds 3 to 5 do not have, or a second word for a hash with a seed.
fn hash_of(code: u8, key: [u64; 2]) -> Option<HashFunction> {
    match (code, key) {
        (XXH3_128, [seed, 0]) => Some(HashFunction::Xxh3(seed)),
        (MURMUR3_128, [seed, 0]) => Some(HashFunction::Murmur3(seed)),
        (SIPHASH_1_3, key) => Some(HashFunction::SipHash13(key)),
        _ => None,
    }
}

fn parity(width: Option<Width>, levels: Levels, lines: u64) -> Option<FilterKind> {
    let no_gap = levels.windows(2).all(|pair| pair[0] != 0 || pair[1] == 0);
    let sum: u64 = levels.iter().map(|&count| u64::from(count)).sum();
    let width = width.filter(|_| no_gap && sum == lines)?;
    Some(FilterKind::Parity { width, levels })
}

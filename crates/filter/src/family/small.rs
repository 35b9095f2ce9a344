//! A filter for small sets, stored and sent in as few bytes as possible.

use super::rice;
use crate::Verdict;
use crate::error::{Error, Result};
use crate::hash::KeyHasher;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// A static filter of up to 65,536 keys, for messages: it is sent and stored in `b` + 1.54 bits per key (3
/// for a `b` of 1) and 21 bytes or a few more, for a false-positive rate of 2^−b.
///
/// ```
/// use sidebloom_filter::{AnyFilter, SmallFilter, Verdict, send_filter};
///
/// let recipients = SmallFilter::build(8, ["ada", "grace", "barbara"], 42)?; // 2^−8: 0.39 % false positives
/// assert_eq!(recipients.contains("grace"), Verdict::Maybe);
/// assert_eq!(recipients.contains("linus"), Verdict::Absent);
/// let mut message = Vec::new();
/// assert_eq!(send_filter(&AnyFilter::Small(recipients), &mut message)?, 25); // bytes
/// # Ok::<(), sidebloom_filter::Error>(())
/// ```
///
/// # How it works
/// The 64-bit hash of each of `n` keys is mapped to a value in 0 to n·2^b (the high word of hash × n·2^b).
/// The filter is the sorted values, and a key is "maybe" if its value is among them. An absent key hits one
/// of them with probability 1 − (1 − 1 / (n·2^b))^n, just below 2^−b. The gaps between the values are coded
/// (Golomb-compressed filters: Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters",
/// 2007; the code is in `rice.rs`).
///
/// In memory, the values are decoded, 8 bytes each, and a query is a binary search: 2.6 ns among 10 keys, 8.0
/// ns among 1000, 26 ns among 65,536 (AMD EPYC, Zen 5, without the hash;
/// `cargo bench -p micro --bench filter -- small`).
///
/// # Size
/// Bytes of [`send_filter`](crate::send_filter), all included, as a test checks. A parity filter has whole
/// lines of 64 bytes, plus 136 bytes. Spare room in its lines lowers its rate, more or less depending on the
/// keys. From about a thousand keys on, it takes no more bytes for the same rate, and answers faster.
///
/// | keys | small, b = 8 | rate | [parity](crate::parity), width 8 | rate |
/// |---|---|---|---|---|
/// | 1 | 22 | 0.39 % | 164 | 0.026 % |
/// | 10 | 33 | 0.39 % | 200 | 0.026 % |
/// | 100 | 140 | 0.39 % | 264 | 0.11 to 0.15 % |
/// | 1000 | 1,217 | 0.39 % | 1,288 | 0.22 to 0.27 % |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallFilter {
    rate_bits: u32,
    hasher: KeyHasher,
    /// One per key, ascending, not always distinct.
    values: Vec<u64>,
}

impl SmallFilter {
    /// The most keys.
    pub const MAX_KEYS: usize = 65_536;
    /// The largest `b`.
    pub const MAX_RATE_BITS: u32 = 32;

    /// The average number of bits that a key takes in the coded values of a filter with a rate of
    /// 2^−`rate_bits`.
    pub fn bits_per_key(rate_bits: u32) -> f64 {
        rice::bits_per_value(rate_bits)
    }

    /// Builds a filter of all keys with a false-positive rate of 2^−`rate_bits` (1 to
    /// [`MAX_RATE_BITS`](Self::MAX_RATE_BITS)). Keys are hashed with `hasher`; a number is a seed for XXH3.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for other `rate_bits`, or over [`MAX_KEYS`](Self::MAX_KEYS) distinct keys.
    pub fn build<K: AsRef<[u8]>>(
        rate_bits: u32,
        keys: impl IntoIterator<Item = K>,
        hasher: impl Into<KeyHasher>,
    ) -> Result<Self> {
        let hasher = hasher.into();
        SmallFilter::from_hashes(rate_bits, keys.into_iter().map(|key| hasher.hash(key.as_ref())), hasher)
    }

    /// Builds a filter from the hashes of all keys ([`KeyHasher::hash`]).
    ///
    /// # Errors
    /// The errors of [`build`](Self::build).
    pub fn from_hashes(
        rate_bits: u32,
        hashes: impl IntoIterator<Item = u64>,
        hasher: impl Into<KeyHasher>,
    ) -> Result<Self> {
        if !(1..=Self::MAX_RATE_BITS).contains(&rate_bits) {
            return Err(Error::InvalidArgument(format!(
                "a small filter of a rate of 2^-{rate_bits} (allowed: 2^-1 to 2^-{})",
                Self::MAX_RATE_BITS
            )));
        }
        let mut distinct = BTreeSet::new();
        for hash in hashes {
            distinct.insert(hash);
            if distinct.len() > Self::MAX_KEYS {
                return Err(Error::InvalidArgument(format!(
                    "more than {} keys, too many for a small filter; build a parity filter",
                    Self::MAX_KEYS
                )));
            }
        }
        let range = (distinct.len() as u64) << rate_bits;
        let values = distinct.into_iter().map(|hash| value_of(hash, range)).collect();
        Ok(SmallFilter { rate_bits, hasher: hasher.into(), values })
    }

    /// Queries a key.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Verdict {
        self.contains_hash(self.hasher.hash(key.as_ref()))
    }

    /// Queries the hash of a key ([`KeyHasher::hash`] of [`hasher`](Self::hasher)).
    pub fn contains_hash(&self, hash: u64) -> Verdict {
        Verdict::of(self.values.binary_search(&value_of(hash, self.range())).is_ok())
    }

    /// The number of distinct keys.
    pub fn keys(&self) -> u64 {
        self.values.len() as u64
    }

    /// The `b` of its rate, 2^−b.
    pub fn rate_bits(&self) -> u32 {
        self.rate_bits
    }

    /// The key hash.
    pub fn hasher(&self) -> KeyHasher {
        self.hasher
    }

    /// The exact false-positive rate (0 to 1): the share of the range that values occupy.
    pub fn fpr(&self) -> f64 {
        let distinct = self.values.chunk_by(|a, b| a == b).count();
        distinct as f64 / self.range().max(1) as f64
    }

    /// The size of the coded values, as stored and sent, in bytes.
    pub fn coded_bytes(&self) -> u64 {
        self.to_coded().len() as u64
    }

    /// The size of the values in memory, in bytes.
    pub fn bytes(&self) -> u64 {
        Self::bytes_of(self.keys())
    }

    /// [`bytes`](Self::bytes) of a filter of this many keys.
    pub(crate) fn bytes_of(keys: u64) -> u64 {
        size_of::<u64>() as u64 * keys
    }

    /// The lengths in bytes that coded values can have.
    pub(crate) fn coded_lengths(keys: u64, rate_bits: u32) -> RangeInclusive<u64> {
        rice::lengths(keys, rate_bits)
    }

    fn range(&self) -> u64 {
        self.keys() << self.rate_bits
    }

    pub(crate) fn to_coded(&self) -> Vec<u8> {
        rice::encode(&self.values, self.rate_bits)
    }

    /// The filter with these parts, which the caller has checked against the limits. `None` if the coded
    /// values are invalid.
    pub(crate) fn from_coded(rate_bits: u32, hasher: KeyHasher, keys: u64, coded: &[u8]) -> Option<Self> {
        let values = rice::decode(coded, keys, rate_bits)?;
        Some(SmallFilter { rate_bits, hasher, values })
    }
}

/// The value of a hash. Ascending hashes have ascending values.
fn value_of(hash: u64, range: u64) -> u64 {
    ((u128::from(hash) * u128::from(range)) >> 64) as u64
}

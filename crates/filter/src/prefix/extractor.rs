//! Which prefix a key has.

use crate::error::{Error, Result};
use std::fmt;

/// Says which prefix of a key a filter holds in addition to the key. Keys that lack such a prefix are outside
/// its domain: for them, the filter holds only the key.
///
/// ```
/// use sidebloom_filter::PrefixExtractor;
///
/// assert_eq!(PrefixExtractor::fixed(4).extract(b"user17"), Some(&b"user"[..]));
/// let [row, column] = PrefixExtractor::row_and_column(b'/');
/// assert_eq!(row.extract(b"ada/born/1815"), Some(&b"ada/"[..]));
/// assert_eq!(column.extract(b"ada/born/1815"), Some(&b"ada/born/"[..]));
/// assert_eq!(column.extract(b"ada/born"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PrefixExtractor(Rule);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Rule {
    Fixed { bytes: u32 },
    Delimited { byte: u8, count: u32 },
}

/// The codes of the rules in every file format.
const FIXED: u8 = 1;
const DELIMITED: u8 = 2;

impl PrefixExtractor {
    /// The longest fixed prefix in bytes, and the largest number of delimiters: the size of the largest key.
    pub const MAX: usize = 64 << 10;

    /// The first `bytes` bytes, 1 to [`MAX`](Self::MAX). Shorter keys are outside the domain.
    pub const fn fixed(bytes: usize) -> Self {
        PrefixExtractor(Rule::Fixed { bytes: saturated(bytes) })
    }

    /// Everything up to and including the `count`-th `byte`, 1 to [`MAX`](Self::MAX). Keys with fewer are
    /// outside the domain.
    pub const fn delimited(byte: u8, count: usize) -> Self {
        PrefixExtractor(Rule::Delimited { byte, count: saturated(count) })
    }

    /// For compound keys, `row` delimiter `column` delimiter …: the prefix up to the first delimiter, and the
    /// one up to the second.
    pub const fn row_and_column(delimiter: u8) -> [Self; 2] {
        [PrefixExtractor::delimited(delimiter, 1), PrefixExtractor::delimited(delimiter, 2)]
    }

    /// The prefix of a key; `None` if the key is outside the domain. All keys that start with it share it.
    #[inline]
    pub fn extract<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        match self.0 {
            Rule::Fixed { bytes } => key.get(..bytes as usize),
            Rule::Delimited { byte, count } => {
                let mut ends = (1..=key.len()).zip(key).filter(|(_, found)| **found == byte);
                key.get(..ends.nth(count.checked_sub(1)? as usize)?.0)
            }
        }
    }

    /// The prefix of a key without its first `head` bytes, with these in front. `None` also for a shorter
    /// key.
    #[inline]
    pub fn extract_after<'k>(&self, head: usize, key: &'k [u8]) -> Option<&'k [u8]> {
        key.get(..head + self.extract(key.get(head..)?)?.len())
    }

    /// The hash that a filter has for a prefix, given the [`KeyHasher`](crate::KeyHasher)'s hash of it. It
    /// differs between extractors, so a prefix never causes a "maybe" for the key with the same bytes, or for
    /// another extractor's prefix.
    #[inline]
    pub fn member(&self, hash: u64) -> u64 {
        mix(hash ^ mix(self.code()))
    }

    /// The stored form: the rule (low byte), the delimiter (second byte), and the number (upper half). Only
    /// for what [`check`](Self::check) accepts. Members are derived from it, so it is frozen.
    pub fn code(&self) -> u64 {
        let code = |rule: u8, byte: u8, number: u32| {
            u64::from(rule) | u64::from(byte) << 8 | u64::from(number) << 32
        };
        match self.0 {
            Rule::Fixed { bytes } => code(FIXED, 0, bytes),
            Rule::Delimited { byte, count } => code(DELIMITED, byte, count),
        }
    }

    /// The extractor with this stored form; `None` if there is none.
    pub fn from_code(code: u64) -> Option<Self> {
        let [rule, byte, ..] = code.to_le_bytes();
        let number = (code >> 32) as usize;
        let extractor = match rule {
            FIXED => PrefixExtractor::fixed(number),
            DELIMITED => PrefixExtractor::delimited(byte, number),
            _ => return None,
        };
        (extractor.check().is_ok() && extractor.code() == code).then_some(extractor)
    }

    /// Whether a stored form has a rule of a newer version.
    pub(crate) fn is_newer_code(code: u64) -> bool {
        let [rule, ..] = code.to_le_bytes();
        rule > DELIMITED
    }

    /// Checks its parameters.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless the number is from 1 to [`MAX`](Self::MAX).
    pub fn check(&self) -> Result<()> {
        let (what, number) = match self.0 {
            Rule::Fixed { bytes } => ("bytes", bytes),
            Rule::Delimited { count, .. } => ("delimiters", count),
        };
        if (1..=Self::MAX).contains(&(number as usize)) {
            Ok(())
        } else {
            Err(Error::InvalidArgument(format!("prefix {self}: {number} {what}; must be 1 to {}", Self::MAX)))
        }
    }
}

/// A number in the few bytes that it needs; larger ones are out of range anyway.
const fn saturated(number: usize) -> u32 {
    if number > u32::MAX as usize { u32::MAX } else { number as u32 }
}

/// `fixed:8`, `delimited:/:2`, `delimited:0x09:1`.
impl fmt::Display for PrefixExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Rule::Fixed { bytes } => write!(f, "fixed:{bytes}"),
            Rule::Delimited { byte, count } if byte.is_ascii_graphic() => {
                write!(f, "delimited:{}:{count}", char::from(byte))
            }
            Rule::Delimited { byte, count } => write!(f, "delimited:{byte:#04x}:{count}"),
        }
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014):
/// one-to-one, so that two prefixes collide only if their hashes do. Frozen.
fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

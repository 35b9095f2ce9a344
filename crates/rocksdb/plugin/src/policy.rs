//! Policy strings, and the filter that an SST file gets.

use crate::size::{Size, bits_per_key_range};
use sidebloom_filter::Width;
use std::fmt;
use std::str::FromStr;

/// RocksDB's name for the policy, before the colon.
pub const NAME: &str = "sidebloom.parity";

/// The bits per key of a filter policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// Filters of one width everywhere.
    Width(Width),
    /// This many bits per key on average, more on upper levels.
    Auto {
        /// Filter bits per key, averaged over a tree whose levels grow tenfold.
        bits_per_key: f64,
    },
}

/// Where an SST file will be, which decides how many keys have filters like its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Place {
    /// The last sorted run: nine tenths of the keys.
    Bottom = 0,
    /// A level above it, or level 0.
    Upper = 1,
    /// Unknown: files for ingestion, and FIFO compaction, whose files are all alike.
    Unknown = 2,
}

impl Place {
    /// The place with this number; `Unknown` for other numbers.
    pub fn from_number(number: u32) -> Place {
        match number {
            0 => Place::Bottom,
            1 => Place::Upper,
            _ => Place::Unknown,
        }
    }
}

/// How many bits per key fewer a ten times larger level should have: log2(10). Then the last false positive
/// that a bit saves costs the same number of bits on all levels (Dayan, Athanassoulis, Idreos: "Monkey:
/// Optimal Navigable Key-Value Store", 2017).
const LEVEL_BITS: f64 = std::f64::consts::LOG2_10;
/// The meaning of `auto` alone: the bits per key that RocksDB's manual uses for Bloom filters.
const AUTO_BITS: f64 = 10.0;
/// The share of the keys above the last level: a tenth, of which nine tenths are in the next one.
const UPPER_SHARE: f64 = 0.1;

impl Policy {
    /// The size of the filter of a file.
    pub fn size(self, place: Place) -> Size {
        match (self, place) {
            (Policy::Width(width), _) => Size::of_width(width),
            (Policy::Auto { bits_per_key }, Place::Unknown) => Size::of_bits(bits_per_key),
            (Policy::Auto { bits_per_key }, Place::Bottom) => {
                Size::of_bits(bits_per_key - LEVEL_BITS * UPPER_SHARE)
            }
            (Policy::Auto { bits_per_key }, Place::Upper) => {
                Size::of_bits(bits_per_key + LEVEL_BITS * (1.0 - UPPER_SHARE))
            }
        }
    }

    /// The range of `auto=`, in tenths: below it, there is no narrower filter for the last level.
    fn auto_range() -> std::ops::RangeInclusive<f64> {
        let (min, max) = bits_per_key_range();
        let least = min + LEVEL_BITS * UPPER_SHARE;
        (least * 10.0).ceil() / 10.0..=(max * 10.0).floor() / 10.0
    }
}

impl fmt::Display for Policy {
    /// The form in RocksDB's options files. It has no `=`, which would end an option's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Width(width) => write!(f, "{NAME}:{}", width.number()),
            Policy::Auto { bits_per_key } => write!(f, "{NAME}:auto:{bits_per_key}"),
        }
    }
}

/// A policy string that this build does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("filter policy \"{policy}\": {what}; use {NAME}:W with a width W of {} lanes, or {NAME}:auto=B with B bits per key on average, {:.1} to {:.1}", widths(), Policy::auto_range().start(), Policy::auto_range().end())]
pub struct PolicyError {
    policy: String,
    what: &'static str,
}

fn widths() -> String {
    let numbers = Width::ALL.map(|width| width.number().to_string());
    numbers.join(", ")
}

impl FromStr for Policy {
    type Err = PolicyError;

    /// Parses `sidebloom.parity:8`, `sidebloom.parity:auto=10.0` or `sidebloom.parity:auto:10.0`. The default
    /// width is 8, and `auto` alone means 10 bits.
    fn from_str(policy: &str) -> Result<Self, PolicyError> {
        let refuse = |what| PolicyError { policy: policy.to_owned(), what };
        let Some(parameter) = policy.strip_prefix(NAME) else { return Err(refuse("another policy's name")) };
        if parameter.is_empty() {
            return Ok(Policy::Width(Width::Eight));
        }
        let Some(parameter) = parameter.strip_prefix(':') else {
            return Err(refuse("another policy's name"));
        };
        if let Some(bits) = parameter.strip_prefix("auto") {
            if bits.is_empty() {
                return Ok(Policy::Auto { bits_per_key: AUTO_BITS });
            }
            let Some(bits) = bits.strip_prefix(['=', ':']) else { return Err(refuse("no such width")) };
            let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let bits = bits.parse().ok().filter(|_| digits);
            let Some(bits_per_key) = bits else {
                return Err(refuse("the bits per key are not a decimal number"));
            };
            return if Policy::auto_range().contains(&bits_per_key) {
                Ok(Policy::Auto { bits_per_key })
            } else {
                Err(refuse("the bits per key are out of range"))
            };
        }
        let digits = !parameter.is_empty() && parameter.bytes().all(|byte| byte.is_ascii_digit());
        let number = parameter.parse().ok().filter(|_| digits);
        let Some(number) = number else { return Err(refuse("the width is not a number")) };
        let width = Width::from_number(number);
        width.map(Policy::Width).ok_or_else(|| refuse("no such width"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_strings_come_back() {
        for policy in Width::ALL.map(Policy::Width).into_iter().chain([Policy::Auto { bits_per_key: 10.25 }])
        {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!("sidebloom.parity".parse(), Ok(Policy::Width(Width::Eight)));
        for auto in ["sidebloom.parity:auto=10.0", "sidebloom.parity:auto:10", "sidebloom.parity:auto"] {
            assert_eq!(auto.parse(), Ok(Policy::Auto { bits_per_key: 10.0 }));
        }
        assert_eq!(Policy::Auto { bits_per_key: 10.0 }.to_string(), "sidebloom.parity:auto:10");
    }

    #[test]
    fn junk_is_refused_with_what_to_use_instead() {
        for (junk, what) in [
            ("sidebloom.parity:13", "no such width"),
            ("sidebloom.parity:0", "no such width"),
            ("sidebloom.parity:99999999999999999999", "the width is not a number"),
            ("sidebloom.parity:", "the width is not a number"),
            ("sidebloom.parity:8 ", "the width is not a number"),
            ("sidebloom.parity:+8", "the width is not a number"),
            ("sidebloom.parity:8:false", "the width is not a number"),
            ("sidebloom.parity:automatic", "no such width"),
            ("sidebloom.parity:auto=", "the bits per key are not a decimal number"),
            ("sidebloom.parity:auto=ten", "the bits per key are not a decimal number"),
            ("sidebloom.parity:auto=NaN", "the bits per key are not a decimal number"),
            ("sidebloom.parity:auto=inf", "the bits per key are not a decimal number"),
            ("sidebloom.parity:auto=1e1", "the bits per key are not a decimal number"),
            ("sidebloom.parity:auto=-10", "the bits per key are not a decimal number"),
            ("sidebloom.parity:auto=8.0", "the bits per key are out of range"),
            ("sidebloom.parity:auto=100", "the bits per key are out of range"),
            ("sidebloom.parityy:8", "another policy's name"),
            ("rocksdb.BuiltinBloomFilter", "another policy's name"),
        ] {
            let error = junk.parse::<Policy>().unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(junk), "{junk}: {error}");
            assert!(
                error.contains("7, 8, 9, 10, 11, 12, 16 lanes") && error.contains("8.1 to 19.4"),
                "{error}"
            );
        }
    }

    #[test]
    fn auto_keeps_its_average_and_gives_upper_levels_more() {
        for bits_per_key in [8.1, 9.0, 10.0, 12.5, 16.0] {
            let [bottom, upper] = [Place::Bottom, Place::Upper]
                .map(|place| Policy::Auto { bits_per_key }.size(place).bits_per_key());
            let average = bottom * (1.0 - UPPER_SHARE) + upper * UPPER_SHARE;
            assert!((average - bits_per_key).abs() < 0.02, "{bits_per_key}: {bottom}, {upper}");
            assert!(upper > bottom + 3.0, "{bits_per_key}: {bottom}, {upper}");
        }
    }
}

//! The filters of RocksDB's tables, with names such as `bloom:10` for the command line and the results.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The prefix of the plug-in's policies.
const PLUGIN: &str = "sidebloom.";

/// A filter policy of RocksDB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RocksFilter {
    /// No filter, RocksDB's default.
    Off,
    /// RocksDB's Bloom filter with these bits per key.
    Bloom(f64),
    /// RocksDB's Ribbon filter with the false-positive rate of a Bloom filter with these bits per key.
    Ribbon(f64),
    /// A policy of sidebloom's plug-in, by its full name.
    Plugin(String),
}

impl RocksFilter {
    /// In words.
    #[cfg(feature = "rocksdb")]
    pub fn describe(&self) -> String {
        match self {
            RocksFilter::Off => "no filter (the default)".to_owned(),
            RocksFilter::Bloom(bits) => format!("Bloom {bits} bits per key and memtable whole-key Bloom"),
            RocksFilter::Ribbon(bits) => {
                format!(
                    "Ribbon with the false-positive rate of a {bits}-bit Bloom and memtable whole-key Bloom"
                )
            }
            RocksFilter::Plugin(policy) => format!("{policy} and memtable whole-key Bloom"),
        }
    }
}

impl fmt::Display for RocksFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RocksFilter::Off => write!(f, "off"),
            RocksFilter::Bloom(bits) => write!(f, "bloom:{bits}"),
            RocksFilter::Ribbon(bits) => write!(f, "ribbon:{bits}"),
            RocksFilter::Plugin(policy) => write!(f, "{}", policy.trim_start_matches(PLUGIN)),
        }
    }
}

impl FromStr for RocksFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bits = |digits: &str| {
            let bits = digits.parse().ok().filter(|bits| (1.0..=64.0).contains(bits));
            bits.ok_or_else(|| format!("{text}: expected 1 to 64 bits per key"))
        };
        match text.split_once(':') {
            None if text == "off" => Ok(RocksFilter::Off),
            Some(("bloom", digits)) => bits(digits).map(RocksFilter::Bloom),
            Some(("ribbon", digits)) => bits(digits).map(RocksFilter::Ribbon),
            Some(("parity", _)) => Ok(RocksFilter::Plugin(format!("{PLUGIN}{text}"))),
            _ => Err(format!(
                "{text}: expected off, bloom:BITS, ribbon:BITS, parity:WIDTH or parity:auto:BITS"
            )),
        }
    }
}

impl TryFrom<String> for RocksFilter {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<RocksFilter> for String {
    fn from(filter: RocksFilter) -> String {
        filter.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_other_names_are_refused() {
        for name in ["off", "bloom:10", "bloom:12.3", "ribbon:10", "parity:8", "parity:auto:10"] {
            let filter: RocksFilter = name.parse().unwrap();
            assert_eq!(filter.to_string(), name);
            let json = serde_json::to_string(&filter).unwrap();
            assert_eq!(serde_json::from_str::<RocksFilter>(&json).unwrap(), filter);
        }
        let plugin = RocksFilter::Plugin("sidebloom.parity:8".to_owned());
        assert_eq!("parity:8".parse(), Ok(plugin));
        for junk in ["", "bloom", "bloom:", "bloom:0", "ribbon:x", "xor:8", "off:1"] {
            assert!(junk.parse::<RocksFilter>().is_err(), "{junk}");
        }
    }
}

//! The kinds of line filters: what to build, and how to read what was built.

use crate::blocked::sizing;
use crate::parity::width::{Levels, Width};

/// What to build.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FilterSpec {
    /// A blocked Bloom filter with this many bits per key ([`sizing::MIN_BITS_PER_KEY`] to
    /// [`sizing::MAX_BITS_PER_KEY`]).
    BlockedBloom {
        /// Filter bits per key.
        bits_per_key: f64,
    },
    /// A parity filter. Its width decides its false-positive rate and its size.
    Parity {
        /// Lanes per line.
        width: Width,
    },
}

/// How the lines of a filter are read: everything besides the lines and the hash that affects an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterKind {
    /// `k` bits in one line per key.
    BlockedBloom {
        /// Bits per key, 1 to [`MAX_K`](crate::blocked::MAX_K).
        k: u32,
    },
    /// A linear system in each line.
    Parity {
        /// Lanes per line.
        width: Width,
        /// Lines per level.
        levels: Levels,
    },
}

impl FilterKind {
    /// The display name of the kind: "blocked-bloom", "parity".
    pub fn family(self) -> &'static str {
        match self {
            FilterKind::BlockedBloom { .. } => "blocked-bloom",
            FilterKind::Parity { .. } => "parity",
        }
    }

    /// The display name of the kind with its parameter: "blocked-bloom-k6", "parity-8".
    pub fn name(self) -> String {
        match self {
            FilterKind::BlockedBloom { k } => format!("blocked-bloom-k{k}"),
            FilterKind::Parity { width, .. } => format!("parity-{}", width.number()),
        }
    }

    /// Whether building `spec` for this number of keys would give a filter of this kind and size.
    pub fn matches_spec(self, spec: FilterSpec, keys: u64, lines: u64) -> bool {
        match (self, spec) {
            (FilterKind::BlockedBloom { .. }, FilterSpec::BlockedBloom { bits_per_key }) => {
                sizing::lines_for(keys, bits_per_key).is_ok_and(|n| n as u64 == lines)
            }
            (FilterKind::Parity { width, .. }, FilterSpec::Parity { width: wanted }) => width == wanted,
            _ => false,
        }
    }
}

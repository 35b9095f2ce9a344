//! Filters over 64-bit key hashes: bytes in, verdicts out, no files. A key that was added is never [`Verdict::Absent`] (I1).
//!
//! A filter is an array of 64-byte lines and a [`FilterKind`] that says how to read them. A [`FilterSpec`] says what to build,
//! [`BuiltFilter`] is the result, and a [`Prober`] asks any array of lines, wherever it lives.
//!
//! Those serve a store's segments. To use a filter on its own, asked by key, take one of the family:
//!
//! | type | when to choose it |
//! |---|---|
//! | [`LineFilter`] | the keys are known now: the smallest (parity), or one that can still grow a little (blocked Bloom); one cache line a probe |
//! | [`Bloom`] | filters that are to be united, compared, folded or sent |
//! | [`CountingBloom`] | keys come and go |
//! | [`ScalableBloom`] | nobody knows how many keys will come |
//! | [`NoisyBloom`] | the parts are held by different parties, and each part alone must tell little |
//!
//! [`AnyFilter`] is any of those that have a file form (all but the noisy one, whose parts are [`Bloom`]s): see
//! [`format`] and [`send_filter`]. None lets its false-positive rate collapse in silence: past its capacity
//! a filter refuses new keys with [`Error::Full`].
//!
//! # From a hash to a line (frozen: filters on disk depend on it)
//! The line is the *multiply-shift range* of the hash, `(hash × lines) >> 64` (Lemire, "Fast random integer generation in an
//! interval", 2019): it depends on the high bits, evenly for any number of lines, without a division. What happens inside the
//! line is drawn from other bits: [`blocked`] takes the low 32 bits (there are at most 2³² lines, so the hashes that share one
//! still take every value of those), [`parity`] the fraction that the shift drops and a mix of all bits.

pub mod blocked;
pub mod codec;
mod error;
mod family;
pub mod format;
pub mod hash;
mod isa;
mod lines;
pub mod parity;
mod prober;
pub mod sizing;

#[cfg(test)]
extern crate self as sidebloom_filter;
#[cfg(test)]
#[path = "../../../fixtures/all_kinds.rs"]
mod all_kinds;
#[cfg(test)]
#[path = "../../../fixtures/golden.rs"]
mod golden;

pub use blocked::AtomicBloom;
pub use error::{Error, Result};
pub use family::shape;
pub use family::{
    AnyFilter, Bloom, CountingBloom, HashFunction, LineFilter, NoisyBloom, Overlap, Plan, ScalableBloom,
    Series, Shape,
};
pub use format::{receive_filter, send_filter};
pub use hash::{KeyHash, KeyHasher};
pub use isa::Isa;
pub use lines::Lines;
pub use parity::{EachPiece, Levels, SortHashes, Width};
pub use prober::Prober;
use prober::{Asks, FetchedAhead};

/// The size of a line in bytes: one cache line, so that one probe costs one miss.
pub const LINE_BYTES: usize = 64;

/// The size of a line in bits.
pub const LINE_BITS: usize = 8 * LINE_BYTES;

/// One line: 512 bits, bit `p` being bit `p % 8` of byte `p / 8`.
pub type Line = [u8; LINE_BYTES];

/// What a filter says about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The key was never added.
    Absent,
    /// The key may have been added; look for it.
    Maybe,
}

impl Verdict {
    /// Of whether the key may have been added.
    #[inline(always)]
    fn of(maybe: bool) -> Verdict {
        if maybe { Verdict::Maybe } else { Verdict::Absent }
    }
}

/// The line of a hash among `lines` (which must not be 0). See the module's derivation.
#[inline]
pub(crate) fn line_of(hash: u64, lines: usize) -> usize {
    ((u128::from(hash) * lines as u128) >> 64) as usize
}

/// What to build.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FilterSpec {
    /// A blocked Bloom filter of this many bits per key ([`sizing::MIN_BITS_PER_KEY`] to [`sizing::MAX_BITS_PER_KEY`]).
    BlockedBloom {
        /// Filter bits per key.
        bits_per_key: f64,
    },
    /// A parity filter, whose width gives its rate and its size.
    Parity {
        /// Lanes of a line.
        width: Width,
    },
}

/// How the lines of a filter are read: everything that decides an answer besides the lines and the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterKind {
    /// `k` bits in one line per key.
    BlockedBloom {
        /// Bits per key, 1 to [`blocked::MAX_K`].
        k: u32,
    },
    /// A linear system in each line.
    Parity {
        /// Lanes of a line.
        width: Width,
        /// Lines of each level.
        levels: Levels,
    },
}

impl FilterKind {
    /// The kind's name for people, with its parameter: "blocked-bloom-k6", "parity-8".
    pub fn name(self) -> String {
        match self {
            FilterKind::BlockedBloom { k } => format!("blocked-bloom-k{k}"),
            FilterKind::Parity { width, .. } => format!("parity-{}", width.lanes()),
        }
    }

    /// Whether building `spec` for as many keys would give a filter of this kind and size.
    pub fn is_what(self, spec: FilterSpec, keys: u64, lines: u64) -> bool {
        match (self, spec) {
            (FilterKind::BlockedBloom { .. }, FilterSpec::BlockedBloom { bits_per_key }) => {
                sizing::lines_for(keys, bits_per_key).is_ok_and(|n| n as u64 == lines)
            }
            (FilterKind::Parity { width, .. }, FilterSpec::Parity { width: asked }) => width == asked,
            _ => false,
        }
    }

    /// The false-positive rate (0 to 1) to expect of `lines` lines that hold `keys` distinct keys.
    pub fn expected_fpr(self, keys: u64, lines: u64) -> f64 {
        match self {
            FilterKind::BlockedBloom { k } => sizing::blocked_fpr(keys, lines, k),
            FilterKind::Parity { width, .. } => width.fpr(),
        }
    }
}

/// A finished filter in memory, ready to be asked or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltFilter {
    /// How the lines are read.
    pub kind: FilterKind,
    /// How many hashes were added; to a parity filter, different ones.
    pub keys: u64,
    /// The lines; at least one.
    pub lines: Lines,
}

impl BuiltFilter {
    /// Builds what `spec` asks for from the hashes of all keys; the same hashes give the same bytes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for bits per key or a total size outside the limits of [`sizing`].
    pub fn build(spec: FilterSpec, hashes: &[u64]) -> Result<Self> {
        match spec {
            FilterSpec::BlockedBloom { bits_per_key } => blocked::build(hashes, bits_per_key),
            FilterSpec::Parity { width } => parity::build(hashes, width),
        }
    }

    /// How many lines a probe of an absent key reads on average.
    pub fn lines_per_probe(&self) -> f64 {
        match self.kind {
            FilterKind::BlockedBloom { .. } => 1.0,
            FilterKind::Parity { width, levels } => parity::lines_per_probe(&self.lines, width, &levels),
        }
    }

    /// Checks a filter that was just built against its own hashes, before anybody believes it.
    ///
    /// # Errors
    /// [`Error::SelfCheck`] with the first hash that is denied.
    pub fn check_members(&self, hashes: &[u64]) -> Result<()> {
        match self.first_denied(hashes) {
            None => Ok(()),
            Some(hash) => Err(Error::SelfCheck { hash }),
        }
    }

    /// The first of `hashes` that this filter denies: `None` for the hashes that it was built from, on a machine that works.
    pub fn first_denied(&self, hashes: &[u64]) -> Option<u64> {
        let prober = Prober::new(self.kind);
        let mut verdicts = Vec::new();
        hashes.chunks(1024).find_map(|some| {
            verdicts.clear();
            prober.probe_many(&self.lines, some, &mut verdicts);
            let denied = verdicts.iter().position(|&verdict| verdict == Verdict::Absent)?;
            some.get(denied).copied()
        })
    }
}

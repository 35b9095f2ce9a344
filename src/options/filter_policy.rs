//! The policy that decides which filters segments get; `engine/filters/plan.rs` applies it.

use crate::error::{Error, Result};
use crate::filter::sizing;

/// Which filters segments get, and whether filters are used at all.
///
/// The policy of a store spans all keyspaces without
/// [their own](crate::KeyspaceOptions::filter_policy). Those in which keys are missing more often than in
/// others, relative to their entries, get more bits, and the others fewer, except with
/// [`blocked_bloom`](Self::blocked_bloom).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilterPolicy {
    objective: Objective,
}

/// What a policy asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Objective {
    Off,
    /// Bits per key, on average over the store.
    AverageBits(f64),
    /// The sum of the runs' false-positive rates.
    SumFpr(f64),
    /// Bytes of all filters together.
    TotalBytes(u64),
    /// Blocked Bloom filters with these bits per key on every level.
    BlockedBloom(f64),
}

impl FilterPolicy {
    /// No filters are used or written; existing sidecars are left alone. For measuring what filters save.
    pub const OFF: FilterPolicy = FilterPolicy { objective: Objective::Off };

    /// Parity filters with this many bits per key on average over the store, spread over the levels so that a
    /// lookup of a missing key meets the fewest false positives. 2 to 64; bits beyond 19 are not used.
    pub const fn bits_per_key(bits: f64) -> Self {
        FilterPolicy { objective: Objective::AverageBits(bits) }
    }

    /// The least memory with which a lookup of a missing key meets at most this many false positives on
    /// average, in all runs (0 to 1, exclusive). The widest filters give 0.0015 % per run, the minimum.
    pub const fn target_fpr(rate: f64) -> Self {
        FilterPolicy { objective: Objective::SumFpr(rate) }
    }

    /// At most this many bytes of filters for the whole store, spread as by
    /// [`bits_per_key`](Self::bits_per_key). As the store grows, new segments get fewer bits. The minimum is
    /// 2 bits per key, even if that exceeds the budget.
    pub const fn memory_budget(bytes: u64) -> Self {
        FilterPolicy { objective: Objective::TotalBytes(bytes) }
    }

    /// Blocked Bloom filters of the same size on every level, as in other stores. 2 to 64 bits per key.
    pub const fn blocked_bloom(bits_per_key: f64) -> Self {
        FilterPolicy { objective: Objective::BlockedBloom(bits_per_key) }
    }

    /// Whether filters are used and written.
    pub fn is_on(&self) -> bool {
        self.objective != Objective::Off
    }

    /// A policy for this objective; `None` if it is out of range.
    pub(crate) fn new(objective: Objective) -> Option<Self> {
        Some(FilterPolicy { objective }).filter(|policy| policy.validate().is_ok())
    }

    pub(crate) fn objective(&self) -> Objective {
        self.objective
    }

    /// Its code in files, and its parameter.
    pub(crate) fn to_code(self) -> (u8, u64) {
        match self.objective {
            Objective::Off => (0, 0),
            Objective::AverageBits(bits) => (1, bits.to_bits()),
            Objective::SumFpr(rate) => (2, rate.to_bits()),
            Objective::TotalBytes(bytes) => (3, bytes),
            Objective::BlockedBloom(bits) => (4, bits.to_bits()),
        }
    }

    /// Whether only a newer version writes this code.
    pub(crate) fn is_newer_code(code: u8) -> bool {
        code > 4
    }

    /// The policy with this code and parameter; `None` if there is none.
    pub(crate) fn from_code(code: u8, number: u64) -> Option<Self> {
        FilterPolicy::new(match code {
            0 if number == 0 => Objective::Off,
            1 => Objective::AverageBits(f64::from_bits(number)),
            2 => Objective::SumFpr(f64::from_bits(number)),
            3 => Objective::TotalBytes(number),
            4 => Objective::BlockedBloom(f64::from_bits(number)),
            _ => return None,
        })
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let problem = match self.objective {
            Objective::AverageBits(bits) | Objective::BlockedBloom(bits) => {
                let allowed = sizing::MIN_BITS_PER_KEY..=sizing::MAX_BITS_PER_KEY;
                (!allowed.contains(&bits)).then(|| format!("{bits:?} bits per key: must be between 2 and 64"))
            }
            Objective::SumFpr(rate) => (!(rate > 0.0 && rate < 1.0))
                .then(|| format!("false-positive rate {rate:?}: must be between 0 and 1")),
            Objective::Off | Objective::TotalBytes(_) => None,
        };
        problem.map_or(Ok(()), |what| Err(Error::InvalidArgument(what)))
    }
}

/// What it asks for: `10 bits per key`.
impl std::fmt::Display for FilterPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.objective {
            Objective::Off => f.write_str("off"),
            Objective::AverageBits(bits) => write!(f, "{bits} bits per key"),
            Objective::SumFpr(rate) => write!(f, "false-positive rate {rate}"),
            Objective::TotalBytes(bytes) => write!(f, "{bytes} bytes in all"),
            Objective::BlockedBloom(bits) => write!(f, "blocked Bloom, {bits} bits per key"),
        }
    }
}

impl Default for FilterPolicy {
    /// 10 bits per key on average.
    fn default() -> Self {
        FilterPolicy::bits_per_key(10.0)
    }
}

//! A filter built from the hashes of all its keys.

use crate::error::{Error, Result};
use crate::kind::{FilterKind, FilterSpec};
use crate::lines::Lines;
use crate::parity::build::ParityLines;
use crate::parity::sort::{InMemory, SortHashes};
use crate::parity::width::Width;
use crate::prober::Prober;
use crate::verdict::Verdict;
use crate::{blocked, parity, sizing};

/// A finished filter in memory, ready to be probed or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltFilter {
    /// How the lines are read.
    pub kind: FilterKind,
    /// The number of hashes added; for a parity filter, of distinct hashes.
    pub keys: u64,
    /// The lines; at least one.
    pub lines: Lines,
}

impl BuiltFilter {
    /// Builds a filter of `spec` from the hashes of all keys. The same hashes give the same bytes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for bits per key outside the limits of [`sizing`](crate::sizing),
    /// [`Error::TooManyKeys`] and [`Error::OutOfMemory`].
    pub fn build(spec: FilterSpec, hashes: &[u64]) -> Result<Self> {
        match spec {
            FilterSpec::BlockedBloom { bits_per_key } => {
                let (lines, k) = blocked::build::build(hashes, bits_per_key)?;
                Ok(BuiltFilter { kind: FilterKind::BlockedBloom { k }, keys: hashes.len() as u64, lines })
            }
            FilterSpec::Parity { width } => BuiltFilter::parity(width, width.keys_per_line(), hashes),
        }
    }

    /// Builds a parity filter with this many keys per line on average. Fewer than [`Width::keys_per_line`]
    /// give it a size and a rate between this width and the next: a fifth fewer halve the rate. More keys per
    /// line would only be bumped.
    ///
    /// # Errors
    /// As for [`build`](Self::build). Keys per line must be from 1 to those of the width.
    pub fn parity(width: Width, keys_per_line: f64, hashes: &[u64]) -> Result<Self> {
        if !(1.0..=width.keys_per_line()).contains(&keys_per_line) {
            let max = width.keys_per_line();
            return Err(Error::InvalidArgument(format!(
                "{keys_per_line} keys per line for {} lanes; use 1 to {max}",
                width.number()
            )));
        }
        let mut hashes = InMemory::of(hashes)?;
        let ParityLines { lines, levels, keys } = parity::build::build(&mut hashes, width, keys_per_line)?;
        Ok(BuiltFilter { kind: FilterKind::Parity { width, levels }, keys, lines })
    }

    /// Builds a parity filter from all hashes that a sorter holds.
    pub(crate) fn from_sorter<S: SortHashes>(width: Width, hashes: &mut S) -> Result<Self, S::Error> {
        let ParityLines { lines, levels, keys } = parity::build::build(hashes, width, width.keys_per_line())?;
        Ok(BuiltFilter { kind: FilterKind::Parity { width, levels }, keys, lines })
    }

    /// The average number of lines that a probe of an absent key reads.
    pub fn lines_per_probe(&self) -> f64 {
        match self.kind {
            FilterKind::BlockedBloom { .. } => 1.0,
            FilterKind::Parity { width, levels } => {
                parity::cost::expected(&self.lines, width, &levels).lines_per_probe
            }
        }
    }

    /// The expected false-positive rate, 0 to 1. For a parity filter, it is computed from each line's own
    /// rate, which reads every line.
    pub fn expected_fpr(&self) -> f64 {
        match self.kind {
            FilterKind::BlockedBloom { k } => sizing::blocked_fpr(self.keys, self.lines.len() as u64, k),
            // Rounding can lift the sum over the levels above 1.
            FilterKind::Parity { width, levels } => {
                parity::cost::expected(&self.lines, width, &levels).fpr.min(1.0)
            }
        }
    }

    /// Checks a new filter against its own hashes, before anything relies on it.
    ///
    /// # Errors
    /// [`Error::SelfCheck`] with the first hash that is denied.
    pub fn check_members(&self, hashes: &[u64]) -> Result<()> {
        match self.first_denied(hashes) {
            None => Ok(()),
            Some(hash) => Err(Error::SelfCheck { hash }),
        }
    }

    /// The first of `hashes` that this filter denies. On working hardware this is `None` for the hashes that
    /// the filter was built from.
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

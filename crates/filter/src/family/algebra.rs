//! Set algebra on filters: union, intersection, sizes and overlap.
//!
//! The OR of two filters with the same plan is bit for bit the filter of the union. Their AND holds every key
//! of the intersection, and more bits than a filter of just the intersection; its rate is at most that of
//! either. Sizes are estimated from the bits set, X of m (Swamidass and Baldi, "Mathematical Correction for
//! Fingerprint Similarity Measures to Improve Chemical Retrieval", 2007):
//!
//! > n* = −(m/k) ln(1 − X/m)
//!
//! The intersection follows by inclusion and exclusion, n*(A) + n*(B) − n*(A ∪ B), because the bits of the
//! AND would also count those that coincide by chance.

use super::bloom::{Bloom, Plan, ones, words};
use super::shape::Shape;
use crate::Line;
use crate::error::{Error, Result};

/// Estimates of how much two sets share. See [`Bloom::overlap`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overlap {
    /// Keys of the first set.
    pub left: f64,
    /// Keys of the second set.
    pub right: f64,
    /// Keys of either.
    pub union: f64,
    /// Keys of both; never negative.
    pub intersection: f64,
}

impl Overlap {
    /// The Jaccard index: the share of the union that is in both sets, 0 to 1; 0 for two empty sets.
    pub fn jaccard(&self) -> f64 {
        if self.union > 0.0 { (self.intersection / self.union).min(1.0) } else { 0.0 }
    }
}

/// n* as defined in the module documentation; infinite if all bits are set.
fn estimate(shape: Shape, ones: u64) -> f64 {
    let bits = shape.bits() as f64;
    if ones == 0 { 0.0 } else { -(bits / f64::from(shape.hashes())) * (-(ones as f64) / bits).ln_1p() }
}

impl Bloom {
    /// The number of distinct keys, estimated from the bits (Swamidass and Baldi); infinite if all are set.
    pub fn estimated_keys(&self) -> f64 {
        estimate(self.plan.shape, self.ones())
    }

    /// The filter of the keys of both: bit for bit the same as after inserting them all.
    ///
    /// The union may hold more keys than its rate allows (see [`Bloom::fpr`]). It then takes no new keys.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for filters of different shape or hash.
    pub fn union(&self, other: &Bloom) -> Result<Bloom> {
        self.combined(other, |a, b| a | b)
    }

    /// A filter that holds every key of both. Its false-positive rate is at most that of either.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for filters of different shape or hash.
    pub fn intersection(&self, other: &Bloom) -> Result<Bloom> {
        let mut both = self.combined(other, |a, b| a & b)?;
        both.keys = self.overlap(other)?.intersection.round() as u64;
        Ok(both)
    }

    /// Estimates the number of keys of each set, of the union and of the intersection.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for filters of different shape or hash.
    pub fn overlap(&self, other: &Bloom) -> Result<Overlap> {
        self.check_equal(other)?;
        let shape = self.plan.shape;
        let both: u64 = self
            .lines
            .iter()
            .flat_map(words)
            .zip(other.lines.iter().flat_map(words))
            .map(|(a, b)| u64::from((a | b).count_ones()))
            .sum();
        let (left, right, union) = (self.estimated_keys(), other.estimated_keys(), estimate(shape, both));
        // For filters with all bits set, ∞ − ∞ is NaN, and `max` turns it into 0.
        Ok(Overlap { left, right, union, intersection: (left + right - union).max(0.0) })
    }

    fn combined(&self, other: &Bloom, op: impl Fn(u8, u8) -> u8) -> Result<Bloom> {
        self.check_equal(other)?;
        let mut lines = self.lines.clone();
        let (left, right): (&mut [u8], &[u8]) = (lines.as_flattened_mut(), other.lines.as_flattened());
        left.iter_mut().zip(right).for_each(|(a, b)| *a = op(*a, *b));
        let keys = keys_of(self.plan.shape, &lines);
        Ok(Bloom { plan: self.plan, keys, lines })
    }

    /// The rates may differ: a rate is a limit, not a property of the bits.
    fn check_equal(&self, other: &Bloom) -> Result<()> {
        if (self.plan.shape, self.plan.hash) == (other.plan.shape, other.plan.hash) {
            return Ok(());
        }
        let describe = |Plan { shape, hash, .. }: &Plan| {
            format!("{} bits, k {}, {hash:?}", shape.bits(), shape.hashes())
        };
        let (left, right) = (describe(&self.plan), describe(&other.plan));
        let what = if left == right {
            format!("both have {left}, but the keys differ")
        } else {
            format!("one has {left}, the other {right}")
        };
        Err(Error::Mismatch { what })
    }
}

/// The estimate as a number of keys. The cast saturates if it is infinite.
pub(super) fn keys_of(shape: Shape, lines: &[Line]) -> u64 {
    estimate(shape, ones(lines)).round() as u64
}

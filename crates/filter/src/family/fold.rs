//! Folding: halving a filter that is larger than its keys need.
//!
//! Every position p becomes p mod m/2: the upper half of the bits is ORed onto the lower half. Because (x mod
//! m) mod m/2 is x mod m/2, the result is bit for bit the filter that would have been built with m/2 bits.
//! Its rate is [`Shape::fpr`](super::Shape::fpr) of the half with the same `k` (each halving makes that `k`
//! too large by about one, compared with a new filter).

use super::bloom::{Bloom, Plan};
use super::shape::check_fpr;
use crate::Lines;
use crate::error::{Error, Result};

impl Bloom {
    /// The filter of half the bits, with the same members and the same `k`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the filter has an odd number of lines.
    pub fn halved(&self) -> Result<Bloom> {
        let Some(shape) = self.plan.shape.halved() else {
            let bits = self.plan.shape.bits();
            return Err(Error::InvalidArgument(format!(
                "a filter of {bits} bits has an odd number of lines and cannot be halved"
            )));
        };
        let (lower, upper) = self.lines.split_at(shape.lines());
        let mut lines = Lines::from(lower);
        let (to, from): (&mut [u8], &[u8]) = (lines.as_flattened_mut(), upper.as_flattened());
        to.iter_mut().zip(from).for_each(|(to, from)| *to |= from);
        Ok(Bloom { plan: Plan { shape, ..self.plan }, keys: self.keys, lines })
    }

    /// The smallest fold whose predicted false-positive rate for its keys is at most `fpr`, which becomes its
    /// rate. A filter that cannot be halved at that rate is returned unchanged, with its old rate.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a rate below [`MIN_FPR`](super::shape::MIN_FPR) or not below 1.
    pub fn folded_to(&self, fpr: f64) -> Result<Bloom> {
        check_fpr(fpr)?;
        let mut folded = self.clone();
        while let Some(half) = folded.plan.shape.halved()
            && half.fpr(self.keys) <= fpr
        {
            folded = folded.halved()?;
            folded.plan.fpr = fpr;
        }
        Ok(folded)
    }
}

//! Folding: a filter that was made too large, halved to what its keys need.
//!
//! Every position p becomes p mod m/2: the upper half of the bits is ORed onto the lower. Because a remainder mod m/2 is the
//! remainder mod m taken again, the result is bit for bit the filter that m/2 bits would have given from the start; its rate is
//! [`Shape::fpr`](super::Shape::fpr) of the half with the same `k` (too large a `k` for a fresh filter, by one for each halving or so).

use super::bloom::Bloom;
use super::shape::check_fpr;
use crate::Lines;
use crate::error::{Error, Result};

impl Bloom {
    /// The filter of half the bits, with the same members and the same `k`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when the bits are an odd number of lines of 512.
    pub fn halved(&self) -> Result<Bloom> {
        let Some(shape) = self.plan.shape.halved() else {
            let bits = self.plan.shape.bits();
            return Err(Error::InvalidArgument(format!(
                "half of a filter of {bits} bits, an odd number of lines of 512"
            )));
        };
        let (lower, upper) = self.lines.split_at(shape.lines());
        let mut lines = Lines::from(lower);
        let (to, from): (&mut [u8], &[u8]) = (lines.as_flattened_mut(), upper.as_flattened());
        to.iter_mut().zip(from).for_each(|(to, from)| *to |= from);
        Ok(Bloom { plan: super::bloom::Plan { shape, ..self.plan }, keys: self.keys, lines })
    }

    /// The smallest fold whose false-positive rate, predicted for its keys, is at most `fpr`; that becomes its rate. A filter that
    /// cannot be halved at that rate comes back as it is, with the rate that it had.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a rate outside (0, 1).
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

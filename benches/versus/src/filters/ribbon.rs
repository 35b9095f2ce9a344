//! Ribbon filters from pleat, with `R` result bits and so a false-positive rate of 2^−R.

use super::filter::{BATCH_KEYS, Filter};
use crate::error::Result;
use pleat::filter::{Ribbon, StdRibbon};

/// A standard Ribbon filter, 128 wide: the parameters of RocksDB's.
pub struct StandardRibbon<const R: usize>(StdRibbon<R>);

/// A homogeneous Ribbon filter, 64 wide.
pub struct HomogeneousRibbon<const R: usize>(Ribbon<R>);

impl<const R: usize> StandardRibbon<R> {
    /// A filter over all keys.
    pub fn build(keys: &[u64]) -> Result<Box<dyn Filter>> {
        Ok(Box::new(StandardRibbon::<R>(StdRibbon::from_keys_pleated(keys)?)))
    }
}

impl<const R: usize> HomogeneousRibbon<R> {
    /// A filter over all keys.
    pub fn build(keys: &[u64]) -> Result<Box<dyn Filter>> {
        Ok(Box::new(HomogeneousRibbon::<R>(Ribbon::from_keys_pleated(keys))))
    }
}

impl<const R: usize> Filter for StandardRibbon<R> {
    fn bytes(&self) -> usize {
        self.0.size_bytes()
    }

    fn copy(&self) -> Result<Box<dyn Filter>> {
        Ok(Box::new(StandardRibbon::<R>(StdRibbon::from_bytes(&self.0.to_bytes())?)))
    }

    #[inline]
    fn may_contain(&self, prepared: u64) -> bool {
        self.0.contains(prepared)
    }

    fn batched(&self, keys: &[u64], _: &[u64]) -> Option<usize> {
        Some(counted(keys, |keys, found| self.0.contains_batch(keys, found)))
    }
}

impl<const R: usize> Filter for HomogeneousRibbon<R> {
    fn bytes(&self) -> usize {
        self.0.size_bytes()
    }

    fn copy(&self) -> Result<Box<dyn Filter>> {
        Ok(Box::new(HomogeneousRibbon::<R>(Ribbon::from_bytes(&self.0.to_bytes())?)))
    }

    #[inline]
    fn may_contain(&self, prepared: u64) -> bool {
        self.0.contains(prepared)
    }

    fn batched(&self, keys: &[u64], _: &[u64]) -> Option<usize> {
        Some(counted(keys, |keys, found| self.0.contains_batch(keys, found)))
    }
}

/// Probes in batches and counts the keys that may be present.
fn counted(keys: &[u64], ask: impl Fn(&[u64], &mut [bool])) -> usize {
    let mut found = [false; BATCH_KEYS];
    let mut asked = |keys: &[u64]| {
        let found = &mut found[..keys.len()];
        ask(keys, found);
        found.iter().filter(|&&found| found).count()
    };
    keys.chunks(BATCH_KEYS).map(&mut asked).sum()
}

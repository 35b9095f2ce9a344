//! sidebloom's filters.

use super::filter::{BATCH_KEYS, Filter};
use crate::error::Result;
use sidebloom::filter::{BuiltFilter, FilterSpec, Lines, Prober, Verdict};

/// A filter and its prober.
#[derive(Clone)]
pub struct SidebloomFilter {
    lines: Lines,
    prober: Prober,
}

impl SidebloomFilter {
    /// A filter over all keys.
    pub fn build(spec: FilterSpec, keys: &[u64]) -> Result<Self> {
        let filter = BuiltFilter::build(spec, keys)?;
        Ok(SidebloomFilter { prober: Prober::new(filter.kind), lines: filter.lines })
    }
}

impl Filter for SidebloomFilter {
    fn bytes(&self) -> usize {
        size_of_val(&self.lines[..])
    }

    fn copy(&self) -> Result<Box<dyn Filter>> {
        Ok(Box::new(self.clone()))
    }

    #[inline]
    fn may_contain(&self, prepared: u64) -> bool {
        self.prober.probe(&self.lines, prepared) == Verdict::Maybe
    }

    fn batched(&self, _: &[u64], prepared: &[u64]) -> Option<usize> {
        let mut verdicts = Vec::with_capacity(BATCH_KEYS);
        let mut asked = |hashes: &[u64]| {
            verdicts.clear();
            self.prober.probe_many(&self.lines, hashes, &mut verdicts);
            verdicts.iter().filter(|&&verdict| verdict == Verdict::Maybe).count()
        };
        Some(prepared.chunks(BATCH_KEYS).map(&mut asked).sum())
    }
}

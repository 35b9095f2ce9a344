//! This project's filters.

use super::{Filter, QUESTIONS};
use crate::engine::Result;
use sidebloom::filter::{BuiltFilter, FilterSpec, Lines, Prober, Verdict};

/// A filter and how it is asked.
#[derive(Clone)]
pub struct Ours {
    lines: Lines,
    prober: Prober,
}

impl Ours {
    /// Of all keys.
    pub fn build(spec: FilterSpec, keys: &[u64]) -> Result<Self> {
        let filter = BuiltFilter::build(spec, keys)?;
        Ok(Ours { prober: Prober::new(filter.kind), lines: filter.lines })
    }
}

impl Filter for Ours {
    fn bytes(&self) -> usize {
        size_of_val(&self.lines[..])
    }

    fn copy(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }

    #[inline]
    fn may_contain(&self, prepared: u64) -> bool {
        self.prober.probe(&self.lines, prepared) == Verdict::Maybe
    }

    fn batched(&self, _: &[u64], prepared: &[u64]) -> Option<usize> {
        let asked = |hashes: &[u64]| {
            hashes.iter().for_each(|&hash| self.prober.prefetch(&self.lines, hash));
            hashes.iter().filter(|&&hash| self.may_contain(hash)).count()
        };
        Some(prepared.chunks(QUESTIONS).map(asked).sum())
    }
}

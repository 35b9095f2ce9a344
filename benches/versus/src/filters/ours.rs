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
        let mut verdicts = Vec::with_capacity(QUESTIONS);
        let mut asked = |hashes: &[u64]| {
            verdicts.clear();
            self.prober.probe_many(&self.lines, hashes, &mut verdicts);
            verdicts.iter().filter(|&&verdict| verdict == Verdict::Maybe).count()
        };
        Some(prepared.chunks(QUESTIONS).map(&mut asked).sum())
    }
}

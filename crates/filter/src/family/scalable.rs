//! The scalable Bloom filter: a growing series of filters.

use super::bloom::{Bloom, Plan};
use super::hashing::HashFunction;
use super::shape::check_fpr;
use crate::error::{Error, Result};
use crate::{Line, Verdict};

/// The capacity of each filter of the series, relative to the previous one.
const GROWTH: u64 = 2;
/// The false-positive rate of each filter, relative to the previous one. According to Almeida et al., 0.8 to
/// 0.9 takes the fewest bits.
const TIGHTENING: f64 = 0.85;
/// The most layers. The capacity doubles with each, so no machine has the memory for more.
pub(crate) const MAX_LAYERS: usize = 40;

/// The parameters of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Series {
    /// The capacity of the first filter.
    pub first_keys: u64,
    /// The false-positive rate (0 to 1) that the whole series stays below.
    pub fpr: f64,
    /// The hash of keys, with its seed or key.
    pub hash: HashFunction,
}

impl Series {
    /// The plan of filter `i`: n₀ · 2^i keys at a rate of p (1 − r) r^i.
    fn plan(&self, i: usize) -> Result<Plan> {
        let keys = GROWTH.checked_pow(i as u32).and_then(|times| self.first_keys.checked_mul(times));
        let Some(keys) = keys.filter(|_| i < MAX_LAYERS) else {
            return Err(Error::Full { capacity: u64::MAX, fpr: self.fpr });
        };
        let fpr = self.fpr * (1.0 - TIGHTENING) * TIGHTENING.powi(i as i32);
        Ok(Plan { hash: self.hash, ..Plan::new(keys, fpr)? })
    }
}

/// A Bloom filter for an unknown number of keys (Almeida, Baquero, Preguiça, Hutchison, "Scalable Bloom
/// Filters", 2007): when a filter of the series is full, a new one with twice the capacity and 0.85 times the
/// rate takes over. A query checks all of them.
///
/// The rates are p (1 − r) r^i with r = 0.85, so their sum is at most p for any length. Compared with one
/// filter of the right size from the start, a series takes about 4 more bits per key, and log2(n / first)
/// probes instead of one. Choose [`Bloom`] if `n` is known.
#[derive(Debug, Clone, PartialEq)]
pub struct ScalableBloom {
    series: Series,
    layers: Vec<Bloom>,
}

impl ScalableBloom {
    /// An empty series that starts with a filter for `first_keys` keys and stays below a false-positive rate
    /// of `fpr` (0 to 1).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no keys, or a rate below [`MIN_FPR`](super::shape::MIN_FPR) or not
    /// below 1; [`Error::TooManyKeys`]; [`Error::OutOfMemory`].
    pub fn new(first_keys: u64, fpr: f64) -> Result<Self> {
        ScalableBloom::with_series(Series { first_keys, fpr, hash: HashFunction::default() })
    }

    /// An empty series.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no keys, or a rate below [`MIN_FPR`](super::shape::MIN_FPR) or not
    /// below 1; [`Error::TooManyKeys`]; [`Error::OutOfMemory`].
    pub fn with_series(series: Series) -> Result<Self> {
        check_fpr(series.fpr)?;
        Ok(ScalableBloom { series, layers: vec![Bloom::with_plan(series.plan(0)?)?] })
    }

    /// A series from its stored parts: the lines of all filters, one after the other. `None` if the numbers
    /// contradict each other.
    pub(crate) fn from_parts(series: Series, layers: usize, keys: u64, lines: &[Line]) -> Option<Self> {
        let plans = ScalableBloom::plans(series, layers)?;
        let (mut keys_left, mut rest) = (keys, lines);
        let mut taken = Vec::with_capacity(layers);
        for (i, plan) in plans.iter().enumerate() {
            let (here, after) = rest.split_at_checked(plan.shape.lines())?;
            // All filters except the last are full.
            let last = i + 1 == layers;
            let keys_here = if last { keys_left } else { plan.capacity() };
            keys_left = keys_left.checked_sub(keys_here)?;
            taken.push(Bloom::from_parts(*plan, keys_here, here.into()));
            rest = after;
        }
        rest.is_empty().then_some(ScalableBloom { series, layers: taken })
    }

    /// The number of lines of a series with this number of filters; `None` if there is no such series.
    pub(crate) fn lines_of(series: Series, layers: usize) -> Option<u64> {
        Some(ScalableBloom::plans(series, layers)?.iter().map(|plan| plan.shape.lines() as u64).sum())
    }

    fn plans(series: Series, layers: usize) -> Option<Vec<Plan>> {
        let valid = (1..=MAX_LAYERS).contains(&layers) && check_fpr(series.fpr).is_ok();
        if valid { (0..layers).map(|i| series.plan(i).ok()).collect() } else { None }
    }

    /// Adds a key. Returns `false`, without a change, if the filter already answered "maybe".
    ///
    /// # Errors
    /// [`Error::TooManyKeys`] or [`Error::OutOfMemory`] if the next filter of the series would be too large;
    /// [`Error::Full`] if the series has its maximum length. The series is then unchanged.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        if self.contains(key) == Verdict::Maybe {
            return Ok(false);
        }
        match self.layers.last_mut() {
            Some(last) if last.keys() < last.plan().capacity() => last.insert(key),
            _ => {
                let mut next = Bloom::with_plan(self.series.plan(self.layers.len())?)?;
                let new = next.insert(key)?;
                self.layers.push(next);
                Ok(new)
            }
        }
    }

    /// See [`Bloom::prefetch`]; for the largest filter.
    #[inline]
    pub(super) fn prefetch(&self, key: &[u8], positions: usize) {
        self.layers.last().into_iter().for_each(|layer| layer.prefetch(key, positions));
    }

    /// Queries a key, in the largest filter first.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Verdict {
        let key = key.as_ref();
        let any = self.layers.iter().rev().any(|layer| layer.contains(key) == Verdict::Maybe);
        if any { Verdict::Maybe } else { Verdict::Absent }
    }

    /// The parameters of the series.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// The filters, oldest first.
    pub fn layers(&self) -> &[Bloom] {
        &self.layers
    }

    /// The number of inserts that changed it.
    pub fn keys(&self) -> u64 {
        self.layers.iter().map(Bloom::keys).sum()
    }

    /// The false-positive rate (0 to 1) of the current bits: 1 − Π (1 − pᵢ).
    pub fn fpr(&self) -> f64 {
        1.0 - self.layers.iter().map(|layer| 1.0 - layer.fpr()).product::<f64>()
    }
}

//! Filters that are to reach a false-positive rate: which width, how many bits.

use super::{LineFilter, SmallFilter};
use crate::error::{Error, Result};
use crate::hash::KeyHasher;
use crate::{FilterSpec, SortHashes, Width, sizing};

impl LineFilter {
    /// Builds the smallest parity filter from the hashes of all keys whose false-positive rate is at most
    /// `fpr` (0 to 1).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if no parity filter reaches the rate; the errors of
    /// [`LineFilter::from_hashes`].
    pub fn parity_at(fpr: f64, hashes: &[u64], hasher: impl Into<KeyHasher>) -> Result<Self> {
        let hasher = hasher.into();
        let build = |width| LineFilter::from_hashes(FilterSpec::Parity { width }, hashes, hasher);
        first_at(fpr, Width::ALL, build)
    }

    /// Builds the first parity filter of these widths whose false-positive rate is at most `fpr` (0 to 1),
    /// from more hashes than fit in memory ([`LineFilter::from_sorter`]).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if none reaches the rate; the errors of [`LineFilter::from_sorter`].
    pub fn parity_from_sorter_at<S: SortHashes>(
        fpr: f64,
        widths: impl IntoIterator<Item = Width>,
        hashes: &mut S,
        hasher: impl Into<KeyHasher>,
    ) -> Result<Self, S::Error> {
        let hasher = hasher.into();
        first_at(fpr, widths, |width| LineFilter::from_sorter(width, hashes, hasher))
    }

    /// An empty blocked Bloom filter for `keys` keys at a false-positive rate of at most `fpr` (0 to 1), with
    /// the fewest bits per key, to a hundredth. Fill it with [`LineFilter::insert`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if no blocked Bloom filter reaches the rate; [`Error::TooManyKeys`];
    /// [`Error::OutOfMemory`].
    pub fn empty_blocked_at(fpr: f64, keys: u64, hasher: impl Into<KeyHasher>) -> Result<Self> {
        LineFilter::empty_blocked(keys, blocked_bits(fpr, keys)?, hasher)
    }
}

impl SmallFilter {
    /// The least b of a rate 2^−b that is at most `fpr` (0 to 1), for [`SmallFilter::from_hashes`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if no small filter reaches the rate.
    pub fn rate_bits_at(fpr: f64) -> Result<u32> {
        let least = 0.5f64.powi(SmallFilter::MAX_RATE_BITS as i32);
        (1..=SmallFilter::MAX_RATE_BITS)
            .find(|&bits| 0.5f64.powi(bits as i32) <= fpr)
            .ok_or_else(|| out_of_reach("small", fpr, least))
    }
}

/// A width's rate holds for many keys; with a few hundred, it can be half as much again.
fn first_at<E: From<Error>>(
    fpr: f64,
    widths: impl IntoIterator<Item = Width>,
    mut build: impl FnMut(Width) -> Result<LineFilter, E>,
) -> Result<LineFilter, E> {
    let mut sharpest = Width::Sixteen.fpr();
    for width in widths.into_iter().filter(|width| width.fpr() <= fpr) {
        let filter = build(width)?;
        if filter.fpr() <= fpr {
            return Ok(filter);
        }
        sharpest = filter.fpr();
    }
    Err(out_of_reach("parity", fpr, sharpest).into())
}

fn blocked_bits(fpr: f64, keys: u64) -> Result<f64> {
    let rate = |bits: f64| -> Result<f64> {
        let lines = sizing::lines_for(keys, bits)? as u64;
        Ok(sizing::blocked_fpr(keys, lines, sizing::best_k(keys, lines)))
    };
    let (mut low, mut high) = (sizing::MIN_BITS_PER_KEY, sizing::MAX_BITS_PER_KEY);
    let least = rate(high)?;
    // The rate may be NaN.
    if fpr.is_nan() || least > fpr {
        return Err(out_of_reach("blocked Bloom", fpr, least));
    }
    while high - low > 0.01 {
        let middle = f64::midpoint(low, high);
        if rate(middle)? <= fpr { high = middle } else { low = middle }
    }
    Ok(high)
}

fn out_of_reach(kind: &str, fpr: f64, least: f64) -> Error {
    Error::InvalidArgument(format!(
        "no {kind} filter of these keys has a false-positive rate of {fpr:?}: the least is {least:.2e}; \
         ask for that or more, or for another kind"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyFilter, Verdict};

    fn hashes(keys: u64) -> Vec<u64> {
        (0..keys).map(|key| KeyHasher::from(3).hash(&key.to_le_bytes())).collect()
    }

    #[test]
    fn a_filter_is_the_smallest_that_reaches_its_rate() {
        for keys in [0, 1, 300, 20_000] {
            let hashes = hashes(keys);
            for fpr in [0.5, 0.01, 0.003, 0.0002, 0.00005] {
                let Ok(parity) = LineFilter::parity_at(fpr, &hashes, 3) else {
                    assert!(keys == 300 && fpr < 0.0001, "{keys} keys at {fpr}");
                    continue;
                };
                assert!(parity.fpr() <= fpr, "{} at {fpr}", parity.fpr());
                let smaller = Width::ALL.iter().rev().find(|width| {
                    let filter = LineFilter::from_hashes(FilterSpec::Parity { width: **width }, &hashes, 3);
                    filter.is_ok_and(|filter| filter.bits() < parity.bits() && filter.fpr() <= fpr)
                });
                assert_eq!(smaller, None, "{keys} keys at {fpr}");
                let blocked = LineFilter::empty_blocked_at(fpr, keys, 3).map(|mut filter| {
                    (0..keys).for_each(|key| _ = filter.insert(key.to_le_bytes()).unwrap());
                    filter
                });
                assert!(blocked.is_ok_and(|filter| filter.fpr() <= fpr));
            }
        }
    }

    #[test]
    fn rates_that_no_filter_reaches_are_errors_that_name_the_least() {
        for fpr in [0.0, -1.0, 1e-12, f64::NAN, f64::NEG_INFINITY] {
            let refused = [
                LineFilter::parity_at(fpr, &hashes(1000), 3).map(drop),
                LineFilter::empty_blocked_at(fpr, 1000, 3).map(drop),
                if fpr > 0.0 { Ok(()) } else { SmallFilter::rate_bits_at(fpr).map(drop) },
            ];
            for refused in &refused[..2] {
                assert!(refused.as_ref().unwrap_err().to_string().contains("the least is"), "{fpr}");
            }
            assert_eq!(refused[2].is_err(), fpr <= 0.0 || fpr.is_nan());
        }
        assert_eq!(SmallFilter::rate_bits_at(0.01).unwrap(), 7);
        assert_eq!(SmallFilter::rate_bits_at(1.0).unwrap(), 1);
        let parity = AnyFilter::Lines(LineFilter::parity_at(0.01, &hashes(10), 3).unwrap());
        assert_eq!(parity.contains(5u64.to_le_bytes()), Verdict::Maybe);
    }
}

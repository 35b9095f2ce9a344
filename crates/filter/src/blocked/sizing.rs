//! Sizing of blocked Bloom filters: lines, bits per key and computed false-positive rates.
//!
//! A line of B = 512 bits gets each of `n` keys with probability 1/lines, and each key sets `k` bits drawn
//! with replacement. (For many lines, the number of keys in a line is the Poisson load of Putze, Sanders,
//! Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007, eq. 3. Here it is binomial, which is
//! also correct for filters of one line.) A probe of an absent key draws `k` bits as well and is a false
//! positive when all are set.
//!
//! The usual inner term (1 − (1 − 1/B)^(ik))^k treats the bits as independent, and is a few per cent low in
//! lines this small (Bose et al., "On the false-positive rate of Bloom filters", 2008). By inclusion and
//! exclusion over the `d` distinct bits of the probe, a line of `i` keys has them all set with probability
//! Σ_j (−1)^j C(d,j) (1 − j/B)^(ik), and the sum over the loads `i` then has a closed form, because the
//! binomial's generating function is E\[z^i\] = (1 − (1 − z)/lines)^n:
//!
//! FPR = Σ_d P(d) Σ_j (−1)^j C(d,j) (1 − (1 − (1 − j/B)^k) / lines)^n
//!
//! where P(d) is the probability that `k` draws hit `d` distinct bits.

use super::bits::MAX_K;
use crate::error::{Error, Result};
use crate::line::{LINE_BITS, LINE_BYTES, MAX_LINES};

/// The fewest bits per key. With fewer, a filter answers "maybe" for half of all keys.
pub const MIN_BITS_PER_KEY: f64 = 2.0;

/// The most bits per key. With more, the filter is hardly smaller than the keys.
pub const MAX_BITS_PER_KEY: f64 = 64.0;

/// Lower rates are lost in rounding the alternating sum: 2^−53 times its largest binomial, and a margin.
const RATE_FLOOR: f64 = 1e-11;

/// The false-positive rate (0 to 1) of `lines` lines that hold `keys` distinct keys with `k` bits each.
pub fn blocked_fpr(keys: u64, lines: u64, k: u32) -> f64 {
    if keys == 0 {
        return 0.0;
    }
    let none_set: Vec<f64> = (0..=k)
        .map(|j| {
            let missed = (1.0 - f64::from(j) / LINE_BITS as f64).powi(k as i32);
            ((-(1.0 - missed) / lines as f64).ln_1p() * keys as f64).exp()
        })
        .collect();
    let all_set = |distinct: usize| -> f64 {
        let mut binomial = 1.0;
        let mut sum = 0.0;
        for (j, none_set) in none_set.iter().enumerate().take(distinct + 1) {
            let sign = if j % 2 == 0 { 1.0 } else { -1.0 };
            sum += sign * binomial * none_set;
            binomial *= (distinct - j) as f64 / (j + 1) as f64;
        }
        sum
    };
    let sum: f64 = distinct_draws(k).iter().enumerate().map(|(d, p)| p * all_set(d)).sum();
    sum.clamp(RATE_FLOOR, 1.0)
}

/// For each `d`, the probability that `k` draws from the bits of a line hit `d` distinct ones.
fn distinct_draws(k: u32) -> Vec<f64> {
    let mut chance = vec![0.0; k as usize + 1];
    chance[0] = 1.0;
    for _ in 0..k {
        for d in (0..chance.len()).rev() {
            let again = chance[d] * d as f64 / LINE_BITS as f64;
            let fresh =
                d.checked_sub(1).map_or(0.0, |e| chance[e] * (LINE_BITS - e) as f64 / LINE_BITS as f64);
            chance[d] = again + fresh;
        }
    }
    chance
}

/// The `k` with the lowest false-positive rate for `keys` keys in `lines` lines; the smaller one of a tie.
pub fn best_k(keys: u64, lines: u64) -> u32 {
    let rates = (1..=MAX_K).map(|k| (k, blocked_fpr(keys, lines, k)));
    rates.min_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(1, |(k, _)| k)
}

/// The number of lines for `keys` keys at `bits_per_key`, rounded up; at least one.
///
/// # Errors
/// [`Error::InvalidArgument`] for bits per key outside [`MIN_BITS_PER_KEY`] to [`MAX_BITS_PER_KEY`];
/// [`Error::TooManyKeys`] for more than [`MAX_LINES`].
pub fn lines_for(keys: u64, bits_per_key: f64) -> Result<usize> {
    if !(MIN_BITS_PER_KEY..=MAX_BITS_PER_KEY).contains(&bits_per_key) {
        return Err(Error::InvalidArgument(format!(
            "{bits_per_key:?} bits per key (allowed: {MIN_BITS_PER_KEY} to {MAX_BITS_PER_KEY})"
        )));
    }
    let lines = (keys as f64 * bits_per_key / LINE_BITS as f64).ceil().max(1.0);
    let addressable = MAX_LINES.min((isize::MAX as usize / LINE_BYTES) as u64);
    if lines > addressable as f64 {
        let max = (addressable as f64 * LINE_BITS as f64 / bits_per_key) as u64;
        return Err(Error::TooManyKeys { keys, max });
    }
    Ok(lines as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1e8 keys: the binomial load is Poisson's to all printed digits.
    fn at(bits_per_key: f64) -> (u32, f64) {
        let (keys, lines) = (100_000_000, lines_for(100_000_000, bits_per_key).unwrap() as u64);
        let k = best_k(keys, lines);
        (k, blocked_fpr(keys, lines, k))
    }

    /// Poisson loads and, for each, the exact distribution of set bits by stepping one draw at a time.
    fn fpr_by_simulating_the_chain(lambda: f64, k: u32) -> f64 {
        let mut bits = vec![0.0; LINE_BITS + 1];
        bits[0] = 1.0;
        let mut load = (-lambda).exp();
        let mut fpr = 0.0;
        for i in 0..(lambda + 12.0 * lambda.sqrt() + 20.0) as usize {
            let all_set = |(set, p): (usize, &f64)| p * (set as f64 / LINE_BITS as f64).powi(k as i32);
            fpr += load * bits.iter().enumerate().map(all_set).sum::<f64>();
            for _ in 0..k {
                for set in (1..=LINE_BITS).rev() {
                    let fresh = bits[set - 1] * (LINE_BITS - set + 1) as f64 / LINE_BITS as f64;
                    bits[set] = bits[set] * set as f64 / LINE_BITS as f64 + fresh;
                }
                bits[0] = 0.0;
            }
            load *= lambda / (i + 1) as f64;
        }
        fpr
    }

    #[test]
    fn closed_form_is_the_exact_sum_over_loads() {
        for (bits_per_key, k) in [(6.0, 4), (10.0, 6), (16.0, 9), (20.0, 10)] {
            let lines = lines_for(100_000_000, bits_per_key).unwrap() as u64;
            let (closed, stepped) = (
                blocked_fpr(100_000_000, lines, k),
                fpr_by_simulating_the_chain(LINE_BITS as f64 / bits_per_key, k),
            );
            assert!((closed / stepped - 1.0).abs() < 1e-4, "{bits_per_key} bits: {closed} and {stepped}");
        }
    }

    #[test]
    fn best_k_and_rate_by_bits_per_key() {
        for (bits_per_key, k, percent) in PER_CENT_BY_BITS {
            let (found_k, found) = at(bits_per_key);
            assert_eq!(found_k, k, "{bits_per_key} bits");
            assert!(
                (found * 100.0 / percent - 1.0).abs() < 0.001,
                "{bits_per_key} bits: {} %",
                found * 100.0
            );
        }
    }

    const PER_CENT_BY_BITS: [(f64, u32, f64); 4] =
        [(8.0, 5, 2.326), (10.0, 6, 0.966), (12.0, 8, 0.4135), (16.0, 9, 0.0844)];

    #[test]
    fn tiny_and_empty_filters_have_sane_sizes_and_rates() {
        assert_eq!(lines_for(0, 10.0).unwrap(), 1);
        assert_eq!(lines_for(51, 10.0).unwrap(), 1);
        assert_eq!(lines_for(52, 10.0).unwrap(), 2);
        assert_eq!(blocked_fpr(0, 1, 8), 0.0);
        assert!(blocked_fpr(1, 1, MAX_K) < 1e-10);
        assert!(blocked_fpr(1_000_000, 1, 1) > 0.999_999);
    }

    #[test]
    fn absurd_sizes_are_refused_by_name() {
        for bits_per_key in [0.0, 1.9, -8.0, f64::NAN, 1e9] {
            assert!(matches!(lines_for(1, bits_per_key), Err(Error::InvalidArgument(_))), "{bits_per_key}");
        }
        assert!(matches!(lines_for(u64::MAX, 10.0), Err(Error::TooManyKeys { keys: u64::MAX, .. })));
    }
}

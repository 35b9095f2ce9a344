//! Sizing: how the bits `m`, the positions per key `k`, the keys `n` and the false-positive rate `p` of a
//! Bloom filter relate.
//!
//! | wanted | formula | function |
//! |---|---|---|
//! | bits | m = −n ln p / (ln 2)² | [`optimal_bits`] |
//! | positions | k = (m/n) ln 2 = −log2 p, at 50 % of the bits set | [`optimal_hashes`] |
//! | rate, approximately | p ≈ (1 − e^(−kn/m))^k | [`approximate_fpr`] |
//! | rate, exactly | below | [`exact_fpr`] |
//! | capacity | n = −(m/k) ln(1 − p^(1/k)) | [`Shape::capacity`] |
//!
//! The approximation treats the bits as independent. In the exact rate (Bose et al., "On the false-positive
//! rate of Bloom filters", 2008), the k draws of an absent key hit `d` distinct bits, and the kn draws of the
//! members must have hit all of them. Both are Markov chains that only step upwards: d distinct bits after i
//! draws, and s of those d set after i draws. [`exact_fpr`] raises the matrix of the chain to the power kn by
//! squaring. Every term is positive, so nothing cancels.

use crate::error::{Error, Result};
use crate::line::{LINE_BITS, MAX_LINES};
use std::f64::consts::LN_2;

/// The most bits of a filter: [`MAX_LINES`] lines, 256 GiB.
pub const MAX_BITS: u64 = MAX_LINES * LINE_BITS as u64;

/// The most positions per key: the best for a rate of 2⁻⁶⁴.
pub const MAX_HASHES: u32 = 64;

/// The lowest false-positive rate of a filter.
pub const MIN_FPR: f64 = 1e-15;

/// Checks a requested false-positive rate.
///
/// # Errors
/// [`Error::InvalidArgument`] unless it is at least [`MIN_FPR`] and below 1.
pub fn check_fpr(fpr: f64) -> Result<()> {
    if (MIN_FPR..1.0).contains(&fpr) {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!("false-positive rate {fpr:?} (allowed: {MIN_FPR:e} to below 1)")))
}

/// The fewest bits for `keys` keys at a false-positive rate of `fpr`: −n ln p / (ln 2)², rounded up.
///
/// # Errors
/// [`Error::InvalidArgument`] for no keys, or a rate below [`MIN_FPR`] or not below 1; [`Error::TooManyKeys`]
/// for more than [`MAX_BITS`].
pub fn optimal_bits(keys: u64, fpr: f64) -> Result<u64> {
    check_fpr(fpr)?;
    if keys == 0 {
        return Err(Error::InvalidArgument("a filter needs room for at least 1 key".to_owned()));
    }
    let bits = (-(keys as f64) * fpr.ln() / (LN_2 * LN_2)).ceil().max(1.0);
    if bits > MAX_BITS as f64 {
        let max = (MAX_BITS as f64 / (bits / keys as f64)) as u64;
        return Err(Error::TooManyKeys { keys, max });
    }
    Ok(bits as u64)
}

/// The `k`, 1 to [`MAX_HASHES`], with the lowest rate for `keys` keys in `bits` bits: (m/n) ln 2, rounded up
/// or down.
pub fn optimal_hashes(bits: u64, keys: u64) -> u32 {
    let best = bits as f64 / keys.max(1) as f64 * LN_2;
    let below = (best as u32).clamp(1, MAX_HASHES);
    let above = (below + 1).min(MAX_HASHES);
    if approximate_fpr(keys, bits, below) <= approximate_fpr(keys, bits, above) { below } else { above }
}

/// The false-positive rate (0 to 1) of `bits` bits with `hashes` positions for each of `keys` keys, by the
/// usual formula. It is a few per cent too low below a thousand bits, and accurate above.
pub fn approximate_fpr(keys: u64, bits: u64, hashes: u32) -> f64 {
    let k = f64::from(hashes);
    (-(-k * keys as f64 / bits as f64).exp_m1()).powf(k)
}

/// The exact false-positive rate (0 to 1); see the module documentation. Takes about ten microseconds for
/// common `hashes`.
pub fn exact_fpr(keys: u64, bits: u64, hashes: u32) -> f64 {
    let draws = keys as f64 * f64::from(hashes);
    let m = bits as f64;
    // all_set[d]: the probability that d given bits are all set.
    let all_set = |d: usize| chain_power(d, m, draws as u64);
    let mut distinct = vec![0.0; hashes as usize + 1];
    distinct[0] = 1.0;
    for _ in 0..hashes {
        for d in (0..distinct.len()).rev() {
            let fresh = d.checked_sub(1).map_or(0.0, |e| distinct[e] * (m - e as f64).max(0.0) / m);
            distinct[d] = distinct[d] * d as f64 / m + fresh;
        }
    }
    // Numbers of distinct bits with a negligible probability add nothing to the sum.
    distinct
        .iter()
        .enumerate()
        .filter(|(_, p)| **p > 1e-30)
        .map(|(d, p)| p * all_set(d))
        .sum::<f64>()
        .min(1.0)
}

/// The probability that `draws` draws from `m` bits hit all of `d` given bits: entry (0, d) of the power.
fn chain_power(d: usize, m: f64, draws: u64) -> f64 {
    let states = d + 1;
    let mut square = vec![0.0; states * states];
    for s in 0..states {
        let missing = (d - s) as f64 / m;
        square[s * states + s] = (1.0 - missing).max(0.0);
        if s < d {
            square[s * states + s + 1] = missing.min(1.0);
        }
    }
    let mut row = vec![0.0; states];
    row[0] = 1.0;
    let mut left = draws;
    while left > 0 {
        if left & 1 == 1 {
            row = (0..states).map(|to| (0..=to).map(|by| row[by] * square[by * states + to]).sum()).collect();
        }
        left >>= 1;
        if left > 0 {
            square = squared(&square, states);
        }
    }
    row[d]
}

/// The square of an upper triangular matrix.
fn squared(matrix: &[f64], states: usize) -> Vec<f64> {
    let mut square = vec![0.0; states * states];
    for from in 0..states {
        for to in from..states {
            let through = |by: usize| matrix[from * states + by] * matrix[by * states + to];
            square[from * states + to] = (from..=to).map(through).sum();
        }
    }
    square
}

/// The size of a filter: its bits and its positions per key.
///
/// The bits are rounded up to whole cache lines of 512. Large filters are rounded up further, by less than
/// 1/64, so that they can be halved (folded) until 128 lines or fewer are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    bits: u64,
    hashes: u32,
}

impl Shape {
    /// The smallest shape with a [capacity](Self::capacity) of `keys` keys at a false-positive rate of `fpr`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no keys, or a rate below [`MIN_FPR`] or not below 1;
    /// [`Error::TooManyKeys`] for more than [`MAX_BITS`].
    pub fn for_keys(keys: u64, fpr: f64) -> Result<Self> {
        let mut bits = round_up(optimal_bits(keys, fpr)?);
        loop {
            let shape = Shape { bits, hashes: optimal_hashes(bits, keys) };
            if shape.capacity(fpr) >= keys {
                return Ok(shape);
            }
            if bits >= MAX_BITS {
                return Err(Error::TooManyKeys { keys, max: shape.capacity(fpr) });
            }
            bits = round_up(bits + 1); // The best number of positions is no whole number.
        }
    }

    /// The shape with `bits_per_key` bits for each of `keys` keys and the best number of positions.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no keys, or less than half a bit or more than 128 bits per key;
    /// [`Error::TooManyKeys`] for more than [`MAX_BITS`].
    pub fn with_bits_per_key(keys: u64, bits_per_key: f64) -> Result<Self> {
        if keys == 0 || !(0.5..=128.0).contains(&bits_per_key) {
            return Err(Error::InvalidArgument(format!(
                "{keys} keys at {bits_per_key:?} bits per key (allowed: at least 1 key, 0.5 to 128 bits)"
            )));
        }
        let bits = (keys as f64 * bits_per_key).ceil();
        if bits > MAX_BITS as f64 {
            let max = (MAX_BITS as f64 / bits_per_key) as u64;
            return Err(Error::TooManyKeys { keys, max });
        }
        let bits = round_up(bits as u64);
        Ok(Shape { bits, hashes: optimal_hashes(bits, keys) })
    }

    /// The shape with at least `bits` bits and with `hashes` positions per key.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no or more than [`MAX_BITS`] bits, or positions outside 1 to
    /// [`MAX_HASHES`].
    pub fn new(bits: u64, hashes: u32) -> Result<Self> {
        if !(1..=MAX_BITS).contains(&bits) || !(1..=MAX_HASHES).contains(&hashes) {
            return Err(Error::InvalidArgument(format!(
                "{bits} bits and {hashes} positions per key (allowed: 1 to {MAX_BITS} bits, 1 to {MAX_HASHES} positions)"
            )));
        }
        Ok(Shape { bits: round_up(bits), hashes })
    }

    /// The shape stored in a file; `None` if no filter has it.
    pub(crate) fn of_lines(lines: u64, hashes: u32) -> Option<Self> {
        let valid = (1..=MAX_LINES).contains(&lines) && (1..=MAX_HASHES).contains(&hashes);
        valid.then_some(Shape { bits: lines * LINE_BITS as u64, hashes })
    }

    /// The number of bits, m.
    pub fn bits(self) -> u64 {
        self.bits
    }

    /// The positions per key, k.
    pub fn hashes(self) -> u32 {
        self.hashes
    }

    /// The exact false-positive rate (0 to 1) with `keys` keys ([`exact_fpr`]).
    pub fn fpr(self, keys: u64) -> f64 {
        exact_fpr(keys, self.bits, self.hashes)
    }

    /// The most keys at a false-positive rate of `fpr`: −(m/k) ln(1 − p^(1/k)), rounded down; at least 1.
    pub fn capacity(self, fpr: f64) -> u64 {
        let k = f64::from(self.hashes);
        let keys = -(self.bits as f64) / k * (-fpr.powf(1.0 / k)).ln_1p();
        (keys as u64).max(1)
    }

    /// The shape with half the bits, if that is a whole number of lines.
    pub fn halved(self) -> Option<Shape> {
        let half = self.bits / 2;
        half.is_multiple_of(LINE_BITS as u64)
            .then_some(Shape { bits: half, ..self })
            .filter(|half| half.bits > 0)
    }

    pub(super) fn lines(self) -> usize {
        (self.bits / LINE_BITS as u64) as usize
    }
}

/// Rounds up to whole lines. A large number of lines becomes a power of two times 64 to 128. `bits` is at
/// most [`MAX_BITS`].
fn round_up(bits: u64) -> u64 {
    let lines = bits.div_ceil(LINE_BITS as u64).max(1);
    let unit = 1 << lines.ilog2().saturating_sub(6);
    lines.next_multiple_of(unit) * LINE_BITS as u64
}

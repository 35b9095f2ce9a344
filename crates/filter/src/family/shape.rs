//! Sizing: how the bits `m`, the positions per key `k`, the keys `n` and the false-positive rate `p` of a Bloom filter hang together.
//!
//! | wanted | formula | function |
//! |---|---|---|
//! | bits | m = −n ln p / (ln 2)² | [`optimal_bits`] |
//! | positions | k = (m/n) ln 2 = −log2 p, at 50 % of the bits set | [`optimal_hashes`] |
//! | rate, approximately | p ≈ (1 − e^(−kn/m))^k | [`approximate_fpr`] |
//! | rate, exactly | below | [`exact_fpr`] |
//! | capacity | n = −(m/k) ln(1 − p^(1/k)) | [`Shape::capacity`] |
//!
//! The approximation treats the bits as independent. Exactly (Bose et al., "On the false-positive rate of Bloom filters", 2008), the
//! k draws of an absent key hit `d` distinct bits, all of which must have been hit by the kn draws of the members. Both are Markov
//! chains that step upwards only: d distinct bits after i draws, and s of those d set after i draws.
//! [`exact_fpr`] raises the chain's matrix to the power kn by squaring: every term is positive, so nothing cancels.

use crate::LINE_BITS;
use crate::error::{Error, Result};
use crate::sizing::MAX_LINES;
use std::f64::consts::LN_2;

/// The most bits of a filter: the file format's limit of lines, 256 GiB.
pub const MAX_BITS: u64 = MAX_LINES * LINE_BITS as u64;

/// The most positions per key: the best for a rate of 2⁻⁶⁴.
pub const MAX_HASHES: u32 = 64;

/// The lowest false-positive rate that a filter can be asked for.
pub const MIN_FPR: f64 = 1e-15;

/// Checks a false-positive rate that a caller asks for.
///
/// # Errors
/// [`Error::InvalidArgument`] unless it is between [`MIN_FPR`] and 1, exclusively of 1.
pub fn check_fpr(fpr: f64) -> Result<()> {
    if (MIN_FPR..1.0).contains(&fpr) {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!(
        "a false-positive rate of {fpr} (it must be above 0 and below 1; at least {MIN_FPR:e})"
    )))
}

/// The least bits for `keys` keys at a false-positive rate of `fpr`, rounded up: −n ln p / (ln 2)².
///
/// # Errors
/// [`Error::InvalidArgument`] for no keys, a rate outside (0, 1), or more than [`MAX_BITS`].
pub fn optimal_bits(keys: u64, fpr: f64) -> Result<u64> {
    check_fpr(fpr)?;
    if keys == 0 {
        return Err(Error::InvalidArgument("a filter for 0 keys".to_owned()));
    }
    let bits = (-(keys as f64) * fpr.ln() / (LN_2 * LN_2)).ceil().max(1.0);
    if bits > MAX_BITS as f64 {
        let max = (MAX_BITS as f64 / (bits / keys as f64)) as u64;
        return Err(Error::TooManyKeys { keys, max });
    }
    Ok(bits as u64)
}

/// The `k` with the lowest rate for `keys` keys in `bits` bits, 1 to [`MAX_HASHES`]: the better neighbour of (m/n) ln 2.
pub fn optimal_hashes(bits: u64, keys: u64) -> u32 {
    let best = bits as f64 / keys.max(1) as f64 * LN_2;
    let below = (best as u32).clamp(1, MAX_HASHES);
    let above = (below + 1).min(MAX_HASHES);
    if approximate_fpr(keys, bits, below) <= approximate_fpr(keys, bits, above) { below } else { above }
}

/// The false-positive rate (0 to 1) of `bits` bits with `hashes` positions for each of `keys` keys, the usual formula: a few per cent
/// low below a thousand bits, right above.
pub fn approximate_fpr(keys: u64, bits: u64, hashes: u32) -> f64 {
    let k = f64::from(hashes);
    (-(-k * keys as f64 / bits as f64).exp_m1()).powf(k)
}

/// The false-positive rate (0 to 1), exactly; see the module. Some ten microseconds for usual `hashes`.
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
    // A number of distinct bits that hardly ever comes up adds nothing to the sum.
    distinct
        .iter()
        .enumerate()
        .filter(|(_, p)| **p > 1e-30)
        .map(|(d, p)| p * all_set(d))
        .sum::<f64>()
        .min(1.0)
}

/// The probability that `draws` draws from `m` bits hit all of `d` given ones: entry (0, d) of the chain's matrix to that power.
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
/// Bits come in whole cache lines of 512; and large filters are rounded up further, by less than 1/64, so that they can be halved
/// (folded) until 128 lines or fewer are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    bits: u64,
    hashes: u32,
}

impl Shape {
    /// The smallest shape for `keys` keys at a false-positive rate of `fpr`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no keys, a rate outside (0, 1), or more than [`MAX_BITS`].
    pub fn for_keys(keys: u64, fpr: f64) -> Result<Self> {
        let bits = round_up(optimal_bits(keys, fpr)?);
        Ok(Shape { bits, hashes: optimal_hashes(bits, keys) })
    }

    /// `bits_per_key` bits for each of `keys` keys, and the best number of positions.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no keys, less than half a bit or more than 128 bits per key, or more than [`MAX_BITS`].
    pub fn with_bits_per_key(keys: u64, bits_per_key: f64) -> Result<Self> {
        if keys == 0 || !(0.5..=128.0).contains(&bits_per_key) {
            return Err(Error::InvalidArgument(format!(
                "a filter of {keys} keys at {bits_per_key} bits per key (allowed: at least 1 key, 0.5 to 128 bits)"
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

    /// At least `bits` bits with `hashes` positions per key.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no or more than [`MAX_BITS`] bits, or positions outside 1 to [`MAX_HASHES`].
    pub fn new(bits: u64, hashes: u32) -> Result<Self> {
        if !(1..=MAX_BITS).contains(&bits) || !(1..=MAX_HASHES).contains(&hashes) {
            return Err(Error::InvalidArgument(format!(
                "a filter of {bits} bits and {hashes} positions per key (allowed: 1 to {MAX_BITS} bits, 1 to {MAX_HASHES} positions)"
            )));
        }
        Ok(Shape { bits: round_up(bits), hashes })
    }

    /// A shape as it stands in a file; `None` for one that cannot be.
    pub(crate) fn of_lines(lines: u64, hashes: u32) -> Option<Self> {
        let valid = (1..=MAX_LINES).contains(&lines) && (1..=MAX_HASHES).contains(&hashes);
        valid.then_some(Shape { bits: lines * LINE_BITS as u64, hashes })
    }

    /// Its bits, m.
    pub fn bits(self) -> u64 {
        self.bits
    }

    /// Its positions per key, k.
    pub fn hashes(self) -> u32 {
        self.hashes
    }

    /// The false-positive rate (0 to 1) with `keys` keys; exact ([`exact_fpr`]).
    pub fn fpr(self, keys: u64) -> f64 {
        exact_fpr(keys, self.bits, self.hashes)
    }

    /// The most keys at a false-positive rate of `fpr`: −(m/k) ln(1 − p^(1/k)), rounded down; at least 1.
    pub fn capacity(self, fpr: f64) -> u64 {
        let k = f64::from(self.hashes);
        let keys = -(self.bits as f64) / k * (-fpr.powf(1.0 / k)).ln_1p();
        (keys as u64).max(1)
    }

    /// The shape of half the bits, where those are whole lines.
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

/// To whole lines, of which a large number gets 64 to 128 as its odd factor at most. `bits` is at most [`MAX_BITS`].
fn round_up(bits: u64) -> u64 {
    let lines = bits.div_ceil(LINE_BITS as u64).max(1);
    let unit = 1 << lines.ilog2().saturating_sub(6);
    lines.next_multiple_of(unit) * LINE_BITS as u64
}

//! A code for the sorted values of a small filter: Golomb–Rice (Golomb, "Run-length encodings", 1966; Rice,
//! "Some practical universal noiseless coding techniques", 1979).
//!
//! `n` values, uniform in 0 to n·2^b, are coded as their gaps, the first from 0. A gap is its high part in
//! unary (that many zero bits and a one), then its r low bits, lowest first. Bits fill each byte from the
//! lowest. The last byte is padded with zeros.
//!
//! Values are points of a Poisson process of rate 2^−b, rounded down. With r = b − 1, which is used here, the
//! high part of a gap is 2^b (e^2^−b − 1) / (√e − 1) on average: the sum over k ≥ 1 of the probability that
//! the gap is k·2^r or more. A gap takes that plus b bits: b + 1.54 for large b, b + 1.6 for b = 4, and 3 for
//! b = 1. With r = b it would be b + 1.58; no code takes less than b + 1.44. The high parts add up to less
//! than 2n for any values.

use crate::codec::uint_at;
use std::ops::RangeInclusive;

fn low_bits(rate_bits: u32) -> u32 {
    rate_bits - 1
}

/// The average number of bits of a random value.
pub(super) fn bits_per_value(rate_bits: u32) -> f64 {
    let mean_gap = f64::from(rate_bits).exp2();
    f64::from(rate_bits) + mean_gap * (1.0 / mean_gap).exp_m1() / 0.5f64.exp_m1()
}

/// How many bytes the code of `keys` values can have.
pub(super) fn lengths(keys: u64, rate_bits: u32) -> RangeInclusive<u64> {
    let least = keys * (u64::from(low_bits(rate_bits)) + 1);
    least.div_ceil(8)..=(least + 2 * keys).div_ceil(8)
}

/// Codes values in ascending order.
pub(super) fn encode(values: &[u64], rate_bits: u32) -> Vec<u8> {
    let low_bits = low_bits(rate_bits);
    let mut bits = BitWriter::default();
    let mut previous = 0;
    for &value in values {
        let gap = value - previous;
        bits.zeros(gap >> low_bits);
        bits.put(1, 1);
        bits.put(gap & !(u64::MAX << low_bits), low_bits);
        previous = value;
    }
    bits.finish()
}

/// Decodes `keys` values below keys·2^`rate_bits`; `coded` must have the right length. `None` if it is not a
/// code of them. Does not check that the code is canonical, with nothing after the last value.
pub(super) fn decode(coded: &[u8], keys: u64, rate_bits: u32) -> Option<Vec<u64>> {
    if !lengths(keys, rate_bits).contains(&(coded.len() as u64)) {
        return None;
    }
    let low_bits = low_bits(rate_bits);
    let mut bits = BitReader { bytes: coded, at: 0 };
    let mut values = Vec::with_capacity(keys as usize);
    let mut value = 0;
    for _ in 0..keys {
        value += bits.unary()? << low_bits | bits.low(low_bits)?;
        values.push(value);
    }
    (value < keys << rate_bits || keys == 0).then_some(values)
}

#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    /// Bits of an incomplete byte, and their number.
    begun: u64,
    filled: u32,
}

impl BitWriter {
    /// Appends the low `width` bits, at most 32. All others are zero.
    fn put(&mut self, bits: u64, width: u32) {
        self.begun |= bits << self.filled;
        self.filled += width;
        while self.filled >= 8 {
            self.bytes.push(self.begun as u8);
            self.begun >>= 8;
            self.filled -= 8;
        }
    }

    fn zeros(&mut self, mut count: u64) {
        while count > 0 {
            let now = count.min(32);
            self.put(0, now as u32);
            count -= now;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.put(0, (8 - self.filled) % 8);
        self.bytes
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    /// The next bit.
    at: usize,
}

impl BitReader<'_> {
    /// At least 57 bits, zeros past the end.
    fn next(&self) -> u64 {
        uint_at(self.bytes, self.at / 8, 8) >> (self.at % 8)
    }

    /// The number of zeros before the next one, which it skips.
    fn unary(&mut self) -> Option<u64> {
        let mut zeros = 0;
        while self.at < 8 * self.bytes.len() {
            let next = self.next();
            if next != 0 {
                self.at += next.trailing_zeros() as usize + 1;
                return Some(zeros + u64::from(next.trailing_zeros()));
            }
            let seen = 64 - self.at % 8;
            zeros += seen as u64;
            self.at += seen;
        }
        None
    }

    /// The next `width` bits, at most 32.
    fn low(&mut self, width: u32) -> Option<u64> {
        let bits = self.next() & !(u64::MAX << width);
        self.at += width as usize;
        (self.at <= 8 * self.bytes.len()).then_some(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_coded_decodes_and_has_an_allowed_length(
            mut values in proptest::collection::vec(any::<u64>(), 0..300), rate_bits in 1u32..=32, cut: usize,
        ) {
            let keys = values.len() as u64;
            values.iter_mut().for_each(|value| *value %= keys << rate_bits);
            values.sort_unstable();
            let coded = encode(&values, rate_bits);
            prop_assert!(lengths(keys, rate_bits).contains(&(coded.len() as u64)));
            prop_assert_eq!(decode(&coded, keys, rate_bits), Some(values));
            if keys > 0 {
                prop_assert_eq!(decode(&coded[..cut % coded.len()], keys, rate_bits), None);
            }
        }

        #[test]
        fn noise_never_panics(coded: Vec<u8>, rate_bits in 1u32..=32, keys in 0u64..400) {
            for keys in [keys, 8 * coded.len() as u64 / u64::from(rate_bits + 1)] {
                let decoded = decode(&coded, keys, rate_bits);
                prop_assert!(decoded.is_none_or(|values| values.is_sorted() && values.len() as u64 == keys));
            }
        }
    }

    /// Random values take as many bits as computed, and little more than the minimum.
    #[test]
    fn random_values_take_the_computed_bits_and_little_more_than_the_least() {
        let mut rng = fastrand::Rng::with_seed(1);
        for rate_bits in [1, 2, 3, 4, 8, 16, 32] {
            let mut values: Vec<u64> = (0..50_000).map(|_| rng.u64(..50_000u64 << rate_bits)).collect();
            values.sort_unstable();
            let bits = encode(&values, rate_bits).len() as f64 * 8.0 / 50_000.0;
            let expected = bits_per_value(rate_bits);
            assert!((bits - expected).abs() < 0.02, "{bits} bits for b = {rate_bits}, computed: {expected}");
            assert!((1.44..=2.01).contains(&(expected - f64::from(rate_bits))));
        }
    }

    #[test]
    fn values_beyond_the_range_are_refused() {
        let coded = encode(&[0, 7, 8], 3);
        assert!(decode(&coded, 3, 3).is_some());
        for (last, fits) in [(23, true), (24, false)] {
            assert_eq!(decode(&encode(&[0, 7, last], 3), 3, 3).is_some(), fits);
        }
    }
}

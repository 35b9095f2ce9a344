//! The size of a filter: the width of its lines, and how many keys each line has.

use crate::block::TRAILER_BYTES;
use sidebloom_filter::{LINE_BITS, LINE_BYTES, Width};

/// What determines the size and the rate of a filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    pub width: Width,
    /// Keys per line on average, at most the width's own number.
    pub keys_per_line: f64,
}

/// The fewest and the most bits per key of filters of many keys.
pub fn bits_per_key_range() -> (f64, f64) {
    (Width::Seven.bits_per_key(), Width::Sixteen.bits_per_key())
}

/// A number of keys large enough that rounding does not show.
const MANY: u64 = 1 << 24;

impl Size {
    /// The natural size of a width.
    pub fn of_width(width: Width) -> Size {
        Size { width, keys_per_line: width.keys_per_line() }
    }

    /// The lowest-rate filter that takes at most `bits_per_key`; if there is none, the smallest one.
    pub fn of_bits(bits_per_key: f64) -> Size {
        let bytes = bits_per_key / 8.0 * MANY as f64;
        Size::fitting(MANY, bytes as usize).unwrap_or_else(|| Size::of_width(Width::Seven))
    }

    /// Of the filters of `keys` keys expected to take at most `bytes` in a filter block, the one with the
    /// lowest rate: the widest that fits, with as many lines as there is room for.
    pub fn fitting(keys: u64, bytes: usize) -> Option<Size> {
        let room = (bytes.checked_sub(TRAILER_BYTES)? / LINE_BYTES) as u64;
        let fits = |width: &&Width| width.expected_lines(keys, width.keys_per_line()) <= room;
        let &width = Width::ALL.iter().rfind(fits)?;
        // More lines on the first level mean fewer below. Twenty halvings are exact enough.
        let (mut least, mut most) = (1.0, width.keys_per_line());
        for _ in 0..20 {
            let middle = (least + most) / 2.0;
            if width.expected_lines(keys, middle) <= room { most = middle } else { least = middle }
        }
        // More than twice the necessary lines save nothing.
        Some(Size { width, keys_per_line: most.max(width.keys_per_line() / 2.0) })
    }

    /// The expected size of a filter block, in bytes.
    pub fn bytes(self, keys: u64) -> usize {
        self.width.expected_lines(keys, self.keys_per_line) as usize * LINE_BYTES + TRAILER_BYTES
    }

    /// How many keys are expected to fit a filter block of at most `bytes`; 0 if not even one does.
    pub fn keys(self, bytes: usize) -> u64 {
        let (mut enough, mut too_many) = (0, (bytes as u64).saturating_mul(8));
        while enough + 1 < too_many {
            let middle = enough + (too_many - enough) / 2;
            if self.bytes(middle) <= bytes { enough = middle } else { too_many = middle }
        }
        enough
    }

    /// Filter bits per key, for many keys.
    pub fn bits_per_key(self) -> f64 {
        self.width.expected_lines(MANY, self.keys_per_line) as f64 * LINE_BITS as f64 / MANY as f64
    }

    /// The expected false-positive rate, 0 to 1, for many keys: interpolated between this width's and the
    /// next one's by the bits.
    pub fn fpr(self) -> f64 {
        let bits = self.bits_per_key();
        let next = Width::ALL.into_iter().find(|&width| width > self.width);
        next.map_or(self.width.fpr(), |next| {
            let (from, to) = (self.width.bits_per_key(), next.bits_per_key());
            let share = ((bits - from) / (to - from)).clamp(0.0, 1.0);
            self.width.fpr() + share * (next.fpr() - self.width.fpr())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidebloom_filter::BuiltFilter;

    #[test]
    fn filters_fit_and_have_the_expected_rate() {
        let mut rng = fastrand::Rng::with_seed(1);
        for keys in [1, 100, 3_000, 40_000, 300_000] {
            let hashes: Vec<u64> = (0..keys).map(|_| rng.u64(..)).collect();
            for bits in [7.0, 7.7, 8.0, 8.9, 9.4, 10.3, 12.0, 15.0, 19.0, 25.0] {
                let bytes = (bits * keys as f64 / 8.0) as usize + TRAILER_BYTES;
                let Some(size) = Size::fitting(keys, bytes) else {
                    assert!(bits < 8.0 || keys <= 3_000, "{keys} keys, {bits} bits");
                    continue;
                };
                let filter = BuiltFilter::parity(size.width, size.keys_per_line, &hashes).unwrap();
                let real = filter.lines.len() * LINE_BYTES + TRAILER_BYTES;
                let slack = 4 * LINE_BYTES + bytes / 200;
                assert!(real <= bytes + slack, "{keys} keys, {bits} bits: {real} bytes, not {bytes}");
                assert!(size.bytes(keys).abs_diff(real) <= slack, "{keys} keys, {bits} bits");
                if keys >= 40_000 && bits < 15.0 {
                    let (expected, real) = (size.fpr(), filter.expected_fpr());
                    assert!(
                        (expected / real - 1.0).abs() < 0.12,
                        "{keys} keys, {bits} bits: {expected}, {real}"
                    );
                }
            }
        }
    }

    #[test]
    fn keys_and_bytes_are_each_other_s_inverse() {
        for size in Width::ALL.map(Size::of_width).into_iter().chain([Size::of_bits(9.5)]) {
            for keys in [1, 61, 62, 3_000, 100_000, 50_000_000] {
                let bytes = size.bytes(keys);
                assert!(size.keys(bytes) >= keys, "{keys}");
                assert!(size.bytes(size.keys(bytes)) <= bytes, "{keys}");
            }
            assert_eq!([0, 1, TRAILER_BYTES, TRAILER_BYTES + 63].map(|bytes| size.keys(bytes)), [0; 4]);
            assert!(size.keys(usize::MAX / 16) > 0);
        }
    }
}

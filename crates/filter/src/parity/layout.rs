//! How a line stores its lanes and its threshold: one layout per width (see the table in the module documentation).

use super::width::Width;
use crate::line::{LINE_BYTES, Line};

/// A line as eight little-endian words.
pub(super) type Words = [u64; LINE_BYTES / 8];

/// The most lanes of any width.
pub(super) const MAX_LANES: usize = 16;

/// What a hash requires of its line: for each lane `j`, the parity of `lane_j & coefficients` is bit `j` of the fingerprint.
#[derive(Clone, Copy, Default)]
pub(super) struct Equation {
    /// Coefficients of rows 0 to 63.
    pub low: u64,
    /// Coefficients of the rows from 64 on.
    pub high: u64,
    pub fingerprint: u32,
}

/// The lanes of a line before they are laid out: rows 0 to 63 of lane `j` in `low[j]`, the rest in `high[j]`.
#[derive(Default)]
pub(super) struct Lanes {
    pub low: [u64; MAX_LANES],
    pub high: [u64; MAX_LANES],
}

/// The parameters and the bit layout of one width. `threshold` and `fits` read what `assemble` wrote.
pub(super) trait Layout {
    const WIDTH: Width;
    /// Bits per row, and bits of a fingerprint.
    const LANES: usize;
    /// Rows: unknowns of the linear system, and bits of a coefficient vector.
    const ROWS: usize;
    /// The highest threshold; the highest rank is one less.
    const MAX_THRESHOLD: u32;

    fn threshold(words: &Words) -> u32;
    /// Whether the parity of each lane under the coefficients equals its bit of the fingerprint. More than eight lanes are read eight at
    /// a time: the first eight deny all but 0.4 % of the absent keys.
    fn fits(words: &Words, equation: &Equation) -> bool;
    fn assemble(lanes: &Lanes, threshold: u32) -> Words;
}

pub(super) const fn mask(bits: usize) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

#[inline(always)]
pub(super) fn words_of(line: &Line) -> Words {
    let mut words = Words::default();
    let (bytes, _) = line.as_chunks();
    words.iter_mut().zip(bytes).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
    words
}

pub(super) fn line_of_words(words: &Words) -> Line {
    let mut line = [0; LINE_BYTES];
    line.as_chunks_mut().0.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
    line
}

/// Bit 63 of each word, word 0 first.
#[inline(always)]
fn top_bits(words: &Words) -> u32 {
    words.iter().rev().fold(0, |bits, word| bits << 1 | (word >> 63) as u32)
}

/// Bit `j` is the parity of word `j`. Folds halves onto each other and combines words, until each byte stands for one word.
#[inline(always)]
fn parities_of(words: Words) -> u32 {
    let pairs: [u64; 4] = std::array::from_fn(|i| fold(words[i], words[i + 4], 32, 0xffff_ffff));
    let fours: [u64; 2] = std::array::from_fn(|i| fold(pairs[i], pairs[i + 2], 16, 0x0000_ffff_0000_ffff));
    let mut bytes = fold(fours[0], fours[1], 8, 0x00ff_00ff_00ff_00ff);
    bytes ^= bytes >> 4;
    bytes ^= bytes >> 2;
    bytes ^= bytes >> 1;
    gathered(bytes)
}

/// Folds each `2 × by` bits of both words to `by` bits: those of `a` where `low` is set, those of `b` above them.
#[inline(always)]
fn fold(a: u64, b: u64, by: u32, low: u64) -> u64 {
    (a ^ a >> by) & low | (b ^ b << by) & !low
}

/// The lowest bit of each byte, byte 0 first.
#[inline(always)]
fn gathered(bytes: u64) -> u32 {
    ((bytes & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

/// Bit `j` is the parity of the j-th 32-bit half word.
#[inline(always)]
fn parities_of_half_words(words: [u64; 4]) -> u32 {
    let pairs: [u64; 2] = std::array::from_fn(|i| fold(words[i], words[i + 2], 16, 0x0000_ffff_0000_ffff));
    let mut bytes = fold(pairs[0], pairs[1], 8, 0x00ff_00ff_00ff_00ff);
    bytes ^= bytes >> 4;
    bytes ^= bytes >> 2;
    bytes ^= bytes >> 1;
    // Bytes 0 to 3 are lanes 0, 2, 4, 6, and bytes 4 to 7 are lanes 1, 3, 5, 7. Byte b of lane j is shifted by 56 + j - 8b. All sums
    // of a position and a shift differ, so there are no carries.
    let to_lane = 1 << 56 | 1 << 50 | 1 << 44 | 1 << 38 | 1 << 25 | 1 << 19 | 1 << 13 | 1 << 7;
    ((bytes & 0x0101_0101_0101_0101).wrapping_mul(to_lane) >> 56) as u32
}

/// Bit `i` is the parity of word `i`. The lower 32 bits of every word are zero, so two words fit into one.
#[inline(always)]
fn parities_of_upper_halves(words: [u64; 4]) -> u32 {
    let pairs = [words[0] >> 32 | words[1], words[2] >> 32 | words[3]];
    // Sixteen bits each of words 0, 2, 1, 3.
    let mut sixteens = fold(pairs[0], pairs[1], 16, 0x0000_ffff_0000_ffff);
    for by in [8, 4, 2, 1] {
        sixteens ^= sixteens >> by;
    }
    // All sums of a bit position (0, 16, 32, 48) and a shift (48, 34, 17, 3) differ, so there are no carries, and bits 48 to 51 stand for
    // words 0 to 3.
    ((sixteens & 0x0001_0001_0001_0001).wrapping_mul(1 << 48 | 1 << 34 | 1 << 17 | 1 << 3) >> 48) as u32 & 15
}

/// One word per lane, and eight more rows of lane `j` in byte `j` of the last word.
pub(super) struct Seven;

impl Layout for Seven {
    const WIDTH: Width = Width::Seven;
    const LANES: usize = 7;
    const ROWS: usize = 72;
    const MAX_THRESHOLD: u32 = 255;

    #[inline(always)]
    fn threshold(words: &Words) -> u32 {
        (words[7] >> 56) as u32
    }
    #[inline(always)]
    fn fits(words: &Words, equation: &Equation) -> bool {
        let high = |j: usize| words[7] >> (8 * j) & equation.high;
        // The parity of a sum is the sum of the parities, so one count covers both parts.
        parities_of(std::array::from_fn(|j| words[j] & equation.low ^ high(j))) & 0x7f == equation.fingerprint
    }
    fn assemble(lanes: &Lanes, threshold: u32) -> Words {
        let mut words: Words = std::array::from_fn(|j| lanes.low[j]);
        words[7] = (0..7).fold(u64::from(threshold) << 56, |word, j| word | lanes.high[j] << (8 * j));
        words
    }
}

/// One word per lane, without its top bit.
pub(super) struct Eight;

impl Layout for Eight {
    const WIDTH: Width = Width::Eight;
    const LANES: usize = 8;
    const ROWS: usize = 63;
    const MAX_THRESHOLD: u32 = 255;

    #[inline(always)]
    fn threshold(words: &Words) -> u32 {
        top_bits(words)
    }
    #[inline(always)]
    fn fits(words: &Words, equation: &Equation) -> bool {
        parities_of(words.map(|word| word & equation.low)) == equation.fingerprint
    }
    fn assemble(lanes: &Lanes, threshold: u32) -> Words {
        std::array::from_fn(|j| lanes.low[j] | u64::from(threshold >> j & 1) << 63)
    }
}

/// Seven bytes of a word per lane, and the ninth lane across the top bytes.
pub(super) struct Nine;

impl Layout for Nine {
    const WIDTH: Width = Width::Nine;
    const LANES: usize = 9;
    const ROWS: usize = 56;
    const MAX_THRESHOLD: u32 = 255;

    #[inline(always)]
    fn threshold(words: &Words) -> u32 {
        (words[7] >> 56) as u32
    }
    #[inline(always)]
    fn fits(words: &Words, equation: &Equation) -> bool {
        let across = || words.iter().rev().fold(0, |lane, word| lane << 8 | word >> 56);
        parities_of(words.map(|word| word & equation.low)) == equation.fingerprint & 0xff
            && (across() & equation.low).count_ones() & 1 == equation.fingerprint >> 8
    }
    fn assemble(lanes: &Lanes, threshold: u32) -> Words {
        let across = lanes.low[8] | u64::from(threshold) << 56;
        std::array::from_fn(|j| lanes.low[j] | (across >> (8 * j)) << 56)
    }
}

/// Bits 0 to 41 of a word for each of eight lanes, and four lanes in the 21 bits above, half in word `i` and half in word `i + 4`.
pub(super) struct Twelve;

/// The rows of a lane in the upper part of one word.
pub(super) const HALF: usize = 21;

impl Layout for Twelve {
    const WIDTH: Width = Width::Twelve;
    const LANES: usize = 12;
    const ROWS: usize = 2 * HALF;
    const MAX_THRESHOLD: u32 = 255;

    #[inline(always)]
    fn threshold(words: &Words) -> u32 {
        top_bits(words)
    }
    #[inline(always)]
    fn fits(words: &Words, equation: &Equation) -> bool {
        // The halves of a lane are at the same bits of two words: 42 to 62, all in the upper 32.
        let upper = || {
            let halves = [(equation.low & mask(HALF)) << Self::ROWS, equation.low >> HALF << Self::ROWS];
            parities_of_upper_halves(std::array::from_fn(|i| words[i] & halves[0] ^ words[i + 4] & halves[1]))
        };
        parities_of(words.map(|word| word & equation.low)) == equation.fingerprint & 0xff
            && upper() == equation.fingerprint >> 8
    }
    fn assemble(lanes: &Lanes, threshold: u32) -> Words {
        std::array::from_fn(|j| {
            let half = lanes.low[8 + j % 4] >> (HALF * (j / 4)) & mask(HALF);
            lanes.low[j] | half << Self::ROWS | u64::from(threshold >> j & 1) << 63
        })
    }
}

/// Half a word per lane, without its top bit. The threshold has sixteen bits.
pub(super) struct Sixteen;

impl Layout for Sixteen {
    const WIDTH: Width = Width::Sixteen;
    const LANES: usize = 16;
    const ROWS: usize = 31;
    const MAX_THRESHOLD: u32 = 65_535;

    #[inline(always)]
    fn threshold(words: &Words) -> u32 {
        let pairs = |(i, word): (usize, &u64)| (word >> 31 & 0x0000_0001_0000_0001) << (2 * i);
        let bits = words.iter().enumerate().map(pairs).fold(0, |all, pair| all | pair);
        (bits | bits >> 31) as u32
    }
    #[inline(always)]
    fn fits(words: &Words, equation: &Equation) -> bool {
        let coefficients = equation.low | equation.low << 32;
        let eight = |from| parities_of_half_words(std::array::from_fn(|i| words[from + i] & coefficients));
        eight(0) == equation.fingerprint & 0xff && eight(4) == equation.fingerprint >> 8
    }
    fn assemble(lanes: &Lanes, threshold: u32) -> Words {
        let half = |j: usize| lanes.low[j] | u64::from(threshold >> j & 1) << 31;
        std::array::from_fn(|word| half(2 * word) | half(2 * word + 1) << 32)
    }
}

/// `for_width!(width, L => expression)` evaluates the expression with `L` as the layout of the width.
macro_rules! for_width {
    ($width:expr, $layout:ident => $body:expr) => {
        match $width {
            $crate::parity::width::Width::Seven => {
                use $crate::parity::layout::Seven as $layout;
                $body
            }
            $crate::parity::width::Width::Eight => {
                use $crate::parity::layout::Eight as $layout;
                $body
            }
            $crate::parity::width::Width::Nine => {
                use $crate::parity::layout::Nine as $layout;
                $body
            }
            $crate::parity::width::Width::Twelve => {
                use $crate::parity::layout::Twelve as $layout;
                $body
            }
            $crate::parity::width::Width::Sixteen => {
                use $crate::parity::layout::Sixteen as $layout;
                $body
            }
        }
    };
}
pub(super) use for_width;

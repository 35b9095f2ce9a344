//! How a line holds its lanes and its threshold: one layout per width (the pictures stand in the module's page).

use super::Width;
use super::equation::Equation;
use crate::{LINE_BYTES, Line};

/// A line as eight little-endian words.
pub(super) type Words = [u64; LINE_BYTES / 8];

/// The most lanes of any width.
pub(super) const MAX_LANES: usize = 16;

/// All lanes of a line before they are laid out: rows 0 to 63 of lane `j` in `low[j]`, the others in `high[j]`.
#[derive(Default)]
pub(super) struct Lanes {
    pub low: [u64; MAX_LANES],
    pub high: [u64; MAX_LANES],
}

/// The facts of one width. `threshold` and `fits` take apart what `assemble` puts together.
pub(super) trait Layout {
    const WIDTH: Width;
    /// Bits per row: the fingerprint's.
    const LANES: usize;
    /// Rows: unknowns of the linear system, and bits of a coefficient vector.
    const ROWS: usize;
    /// Thresholds go from 0 to this; ranks from 0 to one less.
    const MAX_THRESHOLD: u32;

    fn threshold(words: &Words) -> u32;
    /// Whether the parity of each lane under the coefficients is its bit of the fingerprint. More than eight lanes are read eight at a
    /// time: the first eight deny all but 0.4 % of the keys that are not there.
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

/// Bit `j`: the parity of word `j`. Halves are folded onto each other and words put together, until each byte is one word's.
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

/// Both words' parts of `2 × by` bits, folded to `by`: those of `a` where `low` is set, those of `b` above them.
#[inline(always)]
fn fold(a: u64, b: u64, by: u32, low: u64) -> u64 {
    (a ^ a >> by) & low | (b ^ b << by) & !low
}

/// The lowest bit of each byte, byte 0 first.
#[inline(always)]
fn gathered(bytes: u64) -> u32 {
    ((bytes & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

/// Bit `j`: the parity of the j-th 32-bit half word.
#[inline(always)]
fn parities_of_half_words(words: [u64; 4]) -> u32 {
    let pairs: [u64; 2] = std::array::from_fn(|i| fold(words[i], words[i + 2], 16, 0x0000_ffff_0000_ffff));
    let mut bytes = fold(pairs[0], pairs[1], 8, 0x00ff_00ff_00ff_00ff);
    bytes ^= bytes >> 4;
    bytes ^= bytes >> 2;
    bytes ^= bytes >> 1;
    // Bytes 0 to 3 are lanes 0, 2, 4, 6, and bytes 4 to 7 lanes 1, 3, 5, 7. Byte b, of lane j, is shifted by 56 + j - 8b: no two sums of
    // a place and a shift are equal, so nothing is carried.
    let to_lane = 1 << 56 | 1 << 50 | 1 << 44 | 1 << 38 | 1 << 25 | 1 << 19 | 1 << 13 | 1 << 7;
    ((bytes & 0x0101_0101_0101_0101).wrapping_mul(to_lane) >> 56) as u32
}

/// Bit `i`: the parity of word `i`, where the lower 32 bits of all are zero: two words fit one.
#[inline(always)]
fn parities_of_upper_halves(words: [u64; 4]) -> u32 {
    let pairs = [words[0] >> 32 | words[1], words[2] >> 32 | words[3]];
    // Sixteen bits each of words 0, 2, 1, 3.
    let mut sixteens = fold(pairs[0], pairs[1], 16, 0x0000_ffff_0000_ffff);
    for by in [8, 4, 2, 1] {
        sixteens ^= sixteens >> by;
    }
    // Sums of a bit's place and a shift, 0, 16, 32, 48 and 48, 34, 17, 3, are all different: nothing is carried, and the places
    // 48 to 51 are words 0 to 3.
    ((sixteens & 0x0001_0001_0001_0001).wrapping_mul(1 << 48 | 1 << 34 | 1 << 17 | 1 << 3) >> 48) as u32 & 15
}

/// A word each, with eight more rows of lane `j` in byte `j` of the last word.
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
        // The parity of a sum is the sum of the parities: one count serves both parts.
        parities_of(std::array::from_fn(|j| words[j] & equation.low ^ high(j))) & 0x7f == equation.fingerprint
    }
    fn assemble(lanes: &Lanes, threshold: u32) -> Words {
        let mut words: Words = std::array::from_fn(|j| lanes.low[j]);
        words[7] = (0..7).fold(u64::from(threshold) << 56, |word, j| word | lanes.high[j] << (8 * j));
        words
    }
}

/// A word each, but for its top bit.
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

/// Seven bytes of a word each, and the ninth lane across the top bytes.
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

/// Bits 0 to 41 of a word each, and four lanes in the 21 bits above, half in word `i` and half in word `i + 4`.
pub(super) struct Twelve;

/// Rows of a lane that one word holds in its upper part.
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
        // A lane's halves lie at the same bits of two words: 42 to 62, all in the upper 32.
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

/// Half a word each, but for its top bit; the threshold has sixteen bits.
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

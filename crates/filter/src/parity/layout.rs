//! How a line stores its lanes: one layout per number of lanes (see the table in the module documentation).

use crate::line::{LINE_BYTES, Line};

/// A line as eight little-endian words.
pub(super) type Words = [u64; WORDS];

pub(super) const WORDS: usize = LINE_BYTES / 8;

/// The bits of a word below its control bit.
pub(super) const WORD_BITS: usize = 63;

/// The most lanes of any layout.
pub(super) const MAX_LANES: usize = 16;

/// What a hash requires of its line: for each lane `j`, the parity of `lane_j & coefficients` is bit `j` of
/// the fingerprint.
#[derive(Clone, Copy, Default)]
pub(super) struct Equation {
    /// Coefficients of the rows in the words of the lanes.
    pub low: u64,
    /// Coefficients of the remaining rows: see [`Seven`].
    pub high: u64,
    pub fingerprint: u32,
}

/// The lanes of a line before they are laid out, as [`Equation`] splits them.
#[derive(Clone, Default)]
pub(super) struct Lanes {
    pub low: [u64; MAX_LANES],
    pub high: [u64; MAX_LANES],
    /// The spare bits, in their places in the words.
    pub spare: Words,
}

/// The parameters and the bit layout for one number of lanes. `fits_first` and `fits_rest` read what
/// `assemble` wrote.
pub(super) trait Layout {
    /// Bits per row, and bits of a fingerprint.
    const LANES: usize;
    /// Rows in the words of the lanes, then the remaining rows: unknowns of the linear system, and bits of a
    /// coefficient vector.
    const LOW_ROWS: usize;
    const HIGH_ROWS: usize;
    /// The lanes from the ninth on, in up to two pieces per word.
    const PIECES: &[Pieces];
    /// Bits that belong to no lane, each as its word and its place in the word.
    const SPARE: &[(usize, usize)];
    /// The words that cross checks read, from the first.
    const CROSSED_WORDS: usize;
    /// The number of ranks if each had the same share of the places.
    const RANKS: u32;
    /// The unit of the quota of a line that bumps keys, in sixteenths of a check.
    const QUOTA_STEP: u32;

    /// Whether the first lanes, eight at most, satisfy the equation. This denies all but 0.4 % of the absent
    /// keys (0.8 % with seven lanes).
    fn fits_first(words: &Words, equation: &Equation) -> bool;
    /// Whether the other lanes satisfy it, in words without control bits.
    fn fits_rest(words: &Words, equation: &Equation) -> bool;
    /// The parities of the other lanes, the ninth lowest, from the first and second pieces in the words.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for the vector code of x86-64"))]
    fn parities_of_rest(of_pieces: [u32; 2]) -> u32;
    /// The line. Bit `j` of `control` becomes bit 63 of word `j`.
    fn assemble(lanes: &Lanes, control: u32) -> Words;
    /// For each lane, the sum of what a vector in the lane puts into the words, each rotated to the right.
    fn sums(vector: u64, rotations: &[u64; WORDS]) -> [u64; MAX_LANES];
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

#[inline(always)]
fn control_bit(control: u32, word: usize) -> u64 {
    u64::from(control >> word & 1) << WORD_BITS
}

/// Bit `j` is the parity of word `j`. Folds halves onto each other and combines words, to a byte per word.
#[inline(always)]
pub(super) fn parities_of(words: Words) -> u32 {
    let pairs: [u64; 4] = std::array::from_fn(|i| fold(words[i], words[i + 4], 32, 0xffff_ffff));
    let fours: [u64; 2] = std::array::from_fn(|i| fold(pairs[i], pairs[i + 2], 16, 0x0000_ffff_0000_ffff));
    let mut bytes = fold(fours[0], fours[1], 8, 0x00ff_00ff_00ff_00ff);
    bytes ^= bytes >> 4;
    bytes ^= bytes >> 2;
    bytes ^= bytes >> 1;
    gathered(bytes)
}

/// Folds each `2 × by` bits of both words to `by` bits: `a`'s where `low` is set, `b`'s above them.
#[inline(always)]
fn fold(a: u64, b: u64, by: u32, low: u64) -> u64 {
    (a ^ a >> by) & low | (b ^ b << by) & !low
}

/// The lowest bit of each byte, byte 0 first.
#[inline(always)]
fn gathered(bytes: u64) -> u32 {
    ((bytes & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

/// Bits 0, 9, … 54.
const EVERY_NINTH: u64 = 0x0040_2010_0804_0201;

/// Bit `j` is the parity of bits 9j to 9j + 8.
#[inline(always)]
fn parities_of_nines(word: u64) -> u32 {
    let threes = word ^ word >> 1 ^ word >> 2;
    let nines = threes ^ threes >> 3 ^ threes >> 6;
    // Bit 9j, shifted by 56 - 8j, comes to bit 56 + j. All other sums of a position and a shift below 64
    // differ, so there are no carries.
    ((nines & EVERY_NINTH).wrapping_mul(0x0101_0101_0101_0100) >> 56) as u32
}

/// One word per lane, and nine more rows of each lane in the last word.
pub(super) struct Seven;

impl Layout for Seven {
    const LANES: usize = 7;
    const LOW_ROWS: usize = WORD_BITS;
    const HIGH_ROWS: usize = 9;
    const PIECES: &[Pieces] = &[];
    const SPARE: &[(usize, usize)] = &[];
    const CROSSED_WORDS: usize = 7;
    const RANKS: u32 = 128;
    const QUOTA_STEP: u32 = 2;

    #[inline(always)]
    fn fits_first(words: &Words, equation: &Equation) -> bool {
        let low = parities_of(words.map(|word| word & equation.low));
        (low ^ parities_of_nines(words[7] & equation.high.wrapping_mul(EVERY_NINTH))) & 0x7f
            == equation.fingerprint
    }
    #[inline(always)]
    fn fits_rest(_: &Words, _: &Equation) -> bool {
        true
    }
    #[inline(always)]
    fn parities_of_rest(_: [u32; 2]) -> u32 {
        0
    }
    #[inline(always)]
    fn assemble(lanes: &Lanes, control: u32) -> Words {
        let last = (0..7).fold(0, |word, j| word | lanes.high[j] << (Self::HIGH_ROWS * j));
        std::array::from_fn(|j| control_bit(control, j) | if j < 7 { lanes.low[j] } else { last })
    }
    #[inline(always)]
    fn sums(vector: u64, rotations: &[u64; WORDS]) -> [u64; MAX_LANES] {
        std::array::from_fn(|j| if j < 7 { vector.rotate_right(rotations[j] as u32) } else { 0 })
    }
}

/// Eight lanes in the low bits of the words, and the others above them, in pieces.
pub(super) struct Wide<const LANES: usize>;

/// Up to one piece of a lane in each word, above the low rows. (Arrays of each field, because the compiler
/// would gather fields one by one.)
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    /// The lane, counted from the ninth.
    pub lane: [usize; WORDS],
    /// The first row, and the mask of as many low bits as there are rows.
    pub row: [u64; WORDS],
    mask: [u64; WORDS],
    /// The place of the first row in the word.
    pub at: [u64; WORDS],
}

impl Pieces {
    /// The words with a piece of a lane, word 0 lowest.
    const fn words_of(&self, lane: usize) -> u32 {
        let (mut words, mut j) = (0, 0);
        while j < WORDS {
            words |= ((self.mask[j] != 0 && self.lane[j] == lane) as u32) << j;
            j += 1;
        }
        words
    }
}

impl<const LANES: usize> Wide<LANES> {
    const MORE: usize = LANES - WORDS;

    /// The first and the second piece of each word, and the number of bits of each word that are in use. A
    /// lane takes the next free bits, or if the lanes can share the words evenly, the next free words.
    const LAID_OUT: ([Pieces; 2], [usize; WORDS]) = {
        let none = Pieces { lane: [0; WORDS], row: [0; WORDS], mask: [0; WORDS], at: [0; WORDS] };
        let (mut pieces, mut used) = ([none; 2], [Self::LOW_ROWS; WORDS]);
        let (mut word, mut nth, mut lane) = (0, 0, 0);
        while lane < Self::MORE {
            let mut row = 0;
            while row < Self::LOW_ROWS {
                let (left, free) = (Self::LOW_ROWS - row, WORD_BITS - used[word]);
                let rows = if left < free { left } else { free };
                let to = &mut pieces[nth];
                (to.lane[word], to.row[word]) = (lane, row as u64);
                (to.mask[word], to.at[word]) = (mask(rows), used[word] as u64);
                row += rows;
                used[word] += rows;
                nth = 1;
                if used[word] == WORD_BITS || WORDS.is_multiple_of(Self::MORE) && row == Self::LOW_ROWS {
                    (word, nth) = (word + 1, 0);
                }
            }
            lane += 1;
        }
        (pieces, used)
    };

    /// The bits that are left, and their number.
    const LEFT: ([(usize, usize); 2 * WORDS], usize) = {
        let (mut left, mut count, mut word) = ([(0, 0); 2 * WORDS], 0, 0);
        while word < WORDS {
            let mut at = Self::LAID_OUT.1[word];
            while at < WORD_BITS {
                left[count] = (word, at);
                (at, count) = (at + 1, count + 1);
            }
            word += 1;
        }
        (left, count)
    };
}

impl<const LANES: usize> Layout for Wide<LANES> {
    const LANES: usize = LANES;
    const LOW_ROWS: usize = WORDS * WORD_BITS / LANES;
    const HIGH_ROWS: usize = 0;
    const PIECES: &[Pieces] = match LANES {
        WORDS => &[],
        11 => &Self::LAID_OUT.0,
        _ => Self::LAID_OUT.0.split_at(1).0,
    };
    const SPARE: &[(usize, usize)] = Self::LEFT.0.split_at(Self::LEFT.1).0;
    const CROSSED_WORDS: usize = WORDS;
    const RANKS: u32 = match LANES {
        ..12 => 128,
        12 => 96,
        _ => 80,
    };
    const QUOTA_STEP: u32 = match LANES {
        8 | 9 => 2,
        10 | 11 => 3,
        12 => 4,
        _ => 8,
    };

    #[inline(always)]
    fn fits_first(words: &Words, equation: &Equation) -> bool {
        parities_of(words.map(|word| word & equation.low)) == equation.fingerprint & 0xff
    }
    #[inline(always)]
    fn fits_rest(words: &Words, equation: &Equation) -> bool {
        let mut lanes = [0; WORDS];
        for pieces in Self::PIECES {
            for j in (0..WORDS).filter(|&j| pieces.mask[j] != 0) {
                // A piece ends where its word or its lane ends, so no mask is needed.
                lanes[pieces.lane[j]] ^= words[j] >> pieces.at[j] & equation.low >> pieces.row[j];
            }
        }
        let parities = lanes.iter().rev().fold(0, |all, lane| all << 1 | lane.count_ones() & 1);
        parities == equation.fingerprint >> WORDS
    }
    #[inline(always)]
    fn parities_of_rest(of_pieces: [u32; 2]) -> u32 {
        match LANES {
            // A lane has a word, or two neighbours.
            16 => return of_pieces[0],
            12 => {
                let pairs = of_pieces[0] ^ of_pieces[0] >> 1;
                return (0..4).fold(0, |all, lane| all | pairs >> lane & 1 << lane);
            }
            _ => {}
        }
        let of_lane = |lane| {
            let pieces = Self::PIECES.iter().zip(of_pieces);
            pieces.fold(0, |sum, (pieces, parities)| sum ^ (parities & pieces.words_of(lane)).count_ones())
        };
        (0..Self::MORE).fold(0, |all, lane| all | (of_lane(lane) & 1) << lane)
    }
    #[inline(always)]
    fn assemble(lanes: &Lanes, control: u32) -> Words {
        let mut words = std::array::from_fn(|j| control_bit(control, j) | lanes.low[j] | lanes.spare[j]);
        for pieces in Self::PIECES {
            for j in (0..WORDS).filter(|&j| pieces.mask[j] != 0) {
                words[j] |=
                    (lanes.low[WORDS + pieces.lane[j]] >> pieces.row[j] & pieces.mask[j]) << pieces.at[j];
            }
        }
        words
    }
    #[inline(always)]
    fn sums(vector: u64, rotations: &[u64; WORDS]) -> [u64; MAX_LANES] {
        let mut sums = [0; MAX_LANES];
        let low: Words = std::array::from_fn(|j| vector.rotate_right(rotations[j] as u32));
        sums[..WORDS].copy_from_slice(&low);
        for pieces in Self::PIECES {
            let bits: Words =
                std::array::from_fn(|j| (vector >> pieces.row[j] & pieces.mask[j]) << pieces.at[j]);
            let bits: Words = std::array::from_fn(|j| bits[j].rotate_right(rotations[j] as u32));
            (0..WORDS).for_each(|j| sums[WORDS + pieces.lane[j]] ^= bits[j]);
        }
        sums
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
                type $layout = $crate::parity::layout::Wide<8>;
                $body
            }
            $crate::parity::width::Width::Nine => {
                type $layout = $crate::parity::layout::Wide<9>;
                $body
            }
            $crate::parity::width::Width::Ten => {
                type $layout = $crate::parity::layout::Wide<10>;
                $body
            }
            $crate::parity::width::Width::Eleven => {
                type $layout = $crate::parity::layout::Wide<11>;
                $body
            }
            $crate::parity::width::Width::Twelve => {
                type $layout = $crate::parity::layout::Wide<12>;
                $body
            }
            $crate::parity::width::Width::Sixteen => {
                type $layout = $crate::parity::layout::Wide<16>;
                $body
            }
        }
    };
}
pub(super) use for_width;

//! Reading a line in AVX2: four lanes per vector, folded to nibbles whose parities come from a 16-bit table.

use super::algebra::Portable as Steps;
use super::entry::entry_points;
use super::equation::{
    FirstLanes, ProbeHash, Products, ROTATIONS, Vectors, read_by_rest, vectors_fit_wholly,
};
use super::layout::{Equation, Layout, Pieces, WORDS};
use crate::line::Line;
use std::arch::x86_64::*;

entry_points!("avx2,popcnt,bmi2");

#[inline]
#[target_feature(enable = "avx2")]
fn control(line: &Line) -> u32 {
    top_bits(line_of(line))
}

/// Bit 63 of each word.
#[inline]
#[target_feature(enable = "avx2")]
fn top_bits(line: [__m256i; 2]) -> u32 {
    let [low, high] = [_mm256_castsi256_pd(line[0]), _mm256_castsi256_pd(line[1])];
    (_mm256_movemask_pd(low) | _mm256_movemask_pd(high) << 4) as u32
}

#[inline]
#[target_feature(enable = "avx2,popcnt,bmi2")]
fn fits<L: Layout>(line: &Line, equation: &Equation) -> bool {
    let line = line_of(line);
    let low = _mm256_set1_epi64x(equation.low as i64);
    let mut hit = line.map(|half| _mm256_and_si256(half, low));
    if L::HIGH_ROWS > 0 {
        // As in `layout`: nine rows of each of seven lanes are in the last word.
        let last = _mm256_permute4x64_epi64::<0b11_11_11_11>(line[1]);
        let shifts = [_mm256_setr_epi64x(0, 9, 18, 27), _mm256_setr_epi64x(36, 45, 54, 63)];
        let coefficients = _mm256_set1_epi64x(equation.high as i64);
        let high = shifts.map(|by| _mm256_and_si256(_mm256_srlv_epi64(last, by), coefficients));
        hit = [_mm256_xor_si256(hit[0], high[0]), _mm256_xor_si256(hit[1], high[1])];
    }
    match L::LANES {
        7 => lanes_fit::<7>(hit, equation.fingerprint),
        _ => lanes_fit::<8>(hit, equation.fingerprint),
    }
}

/// A hash whose equation no layout has cut yet: the coefficients in each word, and the product with the
/// fingerprint, shifted by 0 to 3.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    coefficients: __m256i,
    fingerprints: __m256i,
}

#[inline]
#[target_feature(enable = "avx2")]
fn asked(hash: &ProbeHash) -> Asked {
    let fingerprint = _mm256_set1_epi64x(hash.products.fingerprint as i64);
    Asked {
        coefficients: _mm256_set1_epi64x(hash.products.coefficients as i64),
        fingerprints: _mm256_srlv_epi64(fingerprint, _mm256_setr_epi64x(0, 1, 2, 3)),
    }
}

/// As `denies`.
#[inline]
#[target_feature(enable = "avx2,popcnt,bmi2")]
fn lanes_deny(line: &Line, asked: &Asked, lanes: &FirstLanes, place: u64) -> bool {
    let [first, others] = line_of(line);
    let low = _mm256_and_si256(asked.coefficients, _mm256_set1_epi64x(lanes.low.get() as i64));
    let sums = sums_of_parities([_mm256_and_si256(first, low), _mm256_and_si256(others, low)]);
    let at = _mm_cvtsi64_si128(lanes.fingerprint_at as i64);
    let wrong = _mm256_xor_si256(sums, _mm256_srl_epi64(asked.fingerprints, at));
    _mm256_testz_si256(wrong, _mm256_set1_epi64x(0x11)) == 0
        && !lanes.is_bumped(top_bits([first, others]), place)
}

/// Whether the parities of the first `LANES` (7 or 8) of eight 64-bit lanes equal the fingerprint's low bits.
#[inline]
#[target_feature(enable = "avx2")]
fn lanes_fit<const LANES: usize>(lanes: [__m256i; 2], fingerprint: u32) -> bool {
    let wanted =
        _mm256_srlv_epi64(_mm256_set1_epi64x(i64::from(fingerprint)), _mm256_setr_epi64x(0, 1, 2, 3));
    let compared = _mm256_setr_epi64x(0x11, 0x11, 0x11, if LANES == 7 { 0x01 } else { 0x11 });
    _mm256_testz_si256(_mm256_xor_si256(sums_of_parities(lanes), wanted), compared) == 1
}

/// Each byte folded to four bits of the same parity.
#[inline]
#[target_feature(enable = "avx2")]
fn nibbles(words: __m256i) -> __m256i {
    let folded = _mm256_xor_si256(words, _mm256_srli_epi16::<4>(words));
    _mm256_and_si256(folded, _mm256_set1_epi8(15))
}

/// Bit 0 of sum j is the parity of word j, and bit 4 that of word j + 4.
#[inline]
#[target_feature(enable = "avx2")]
fn sums_of_parities(words: [__m256i; 2]) -> __m256i {
    /// The parities of 0 to 7, then those of 8 to 15, a byte each.
    const LOW: i64 = 0x0100_0001_0001_0100;
    const HIGH: i64 = 0x0001_0100_0100_0001;
    // Each byte's parity: 0 or 1 for the first four words, 0 or 16 for the others.
    let first = _mm256_shuffle_epi8(_mm256_setr_epi64x(LOW, HIGH, LOW, HIGH), nibbles(words[0]));
    let others = _mm256_setr_epi64x(LOW << 4, HIGH << 4, LOW << 4, HIGH << 4);
    let others = _mm256_shuffle_epi8(others, nibbles(words[1]));
    // A sum of eight parities is at most 8.
    _mm256_sad_epu8(_mm256_or_si256(first, others), _mm256_setzero_si256())
}

#[inline]
#[target_feature(enable = "avx2,popcnt,bmi2")]
fn rest<L: Layout>(line: &Line, products: Products, place: u64, control: u32) -> bool {
    let (line, masks) = (line_of(line), load(&read_by_rest::<L>()));
    let words = Words256([_mm256_and_si256(line[0], masks[0]), _mm256_and_si256(line[1], masks[1])]);
    vectors_fit_wholly::<L>(&words, products, place, control)
}

/// Eight words. Only [`rest`] makes them, so any value proves that this module's features exist.
struct Words256([__m256i; 2]);

impl Vectors for Words256 {
    #[inline(always)]
    fn checks(&self, coefficients: u64, needed: usize) -> u32 {
        // SAFETY: see `Words256`.
        let two = |first| unsafe { two_checks(self.0, coefficients, first) };
        // Few keys have more than two.
        if needed > 2 { two(0) | two(2) << 2 } else { two(0) }
    }

    #[inline(always)]
    fn parities(&self, rows: u64, pieces: &Pieces) -> u8 {
        // SAFETY: see `Words256`.
        unsafe { parities_of_pieces(self.0, rows, pieces) }
    }
}

#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn two_checks(words: [__m256i; 2], coefficients: u64, first: usize) -> u32 {
    let coefficients = _mm256_set1_epi64x(coefficients as i64);
    let fours: [_; 2] = std::array::from_fn(|i| {
        let by = load(&ROTATIONS[first + i]);
        let selected: [_; 2] = std::array::from_fn(|half| {
            let left = _mm256_sllv_epi64(coefficients, by[half]);
            let right = _mm256_srlv_epi64(coefficients, _mm256_sub_epi64(_mm256_set1_epi64x(64), by[half]));
            _mm256_and_si256(words[half], _mm256_or_si256(left, right))
        });
        _mm256_xor_si256(selected[0], selected[1])
    });
    let low = _mm256_unpacklo_epi64(fours[0], fours[1]);
    let twos = _mm256_xor_si256(low, _mm256_unpackhi_epi64(fours[0], fours[1]));
    let sums = _mm_xor_si128(_mm256_castsi256_si128(twos), _mm256_extracti128_si256::<1>(twos));
    let [a, b] = [_mm_cvtsi128_si64(sums), _mm_extract_epi64::<1>(sums)].map(i64::count_ones);
    a & 1 | (b & 1) << 1
}

#[inline]
#[target_feature(enable = "avx2")]
fn parities_of_pieces(words: [__m256i; 2], rows: u64, pieces: &Pieces) -> u8 {
    let (rows, row, at) = (_mm256_set1_epi64x(rows as i64), load(&pieces.row), load(&pieces.at));
    let selected = std::array::from_fn(|half| {
        let rows = _mm256_srlv_epi64(rows, row[half]);
        _mm256_and_si256(_mm256_srlv_epi64(words[half], at[half]), rows)
    });
    let sums = sums_of_parities(selected);
    top_bits([_mm256_slli_epi64::<63>(sums), _mm256_slli_epi64::<59>(sums)]) as u8
}

#[inline]
#[target_feature(enable = "avx2")]
fn line_of(line: &Line) -> [__m256i; 2] {
    let halves = line.as_ptr().cast::<__m256i>();
    // SAFETY: a line has 64 bytes, two unaligned loads of 32.
    unsafe { [_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1))] }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(words: &[u64; WORDS]) -> [__m256i; 2] {
    let halves = words.as_ptr().cast::<__m256i>();
    // SAFETY: 64 bytes, two unaligned loads of 32.
    unsafe { [_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1))] }
}

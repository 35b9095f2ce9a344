//! Reading a line in AVX-512: one AND, one population count and one test for eight lanes at once.

use super::avx512_algebra::{Avx512 as Steps, sums_of_halves};
use super::entry::entry_points;
use super::equation::{
    FirstLanes, ProbeHash, Products, ROTATIONS, Vectors, read_by_rest, vectors_fit_wholly,
};
use super::layout::{Equation, Layout, Pieces, WORDS};
use crate::line::Line;
use std::arch::x86_64::*;

entry_points!("avx512f,avx512dq,avx512vbmi,avx512vpopcntdq,gfni,popcnt,bmi2");

/// Bit 63 of each word.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn control(line: &Line) -> u32 {
    _mm512_movepi64_mask(words_of(line)).into()
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vpopcntdq")]
fn fits<L: Layout>(line: &Line, equation: &Equation) -> bool {
    let line = words_of(line);
    let mut hit = _mm512_and_si512(line, _mm512_set1_epi64(equation.low as i64));
    let mut lanes = 0xff;
    if L::HIGH_ROWS > 0 {
        // As in `layout`: nine rows of each of seven lanes are in the last word.
        let last = _mm512_permutexvar_epi64(_mm512_set1_epi64(7), line);
        let high = _mm512_srlv_epi64(last, _mm512_setr_epi64(0, 9, 18, 27, 36, 45, 54, 63));
        hit = _mm512_xor_si512(hit, _mm512_and_si512(high, _mm512_set1_epi64(equation.high as i64)));
        lanes = 0x7f;
    }
    (u32::from(parities(hit)) ^ equation.fingerprint) & lanes == 0
}

/// A hash whose equation no layout has cut yet: the coefficients in each word, and the product with the
/// fingerprint.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    coefficients: __m512i,
    fingerprint: u64,
}

#[inline]
#[target_feature(enable = "avx512f")]
fn asked(hash: &ProbeHash) -> Asked {
    let coefficients = _mm512_set1_epi64(hash.products.coefficients as i64);
    Asked { coefficients, fingerprint: hash.products.fingerprint }
}

/// As `denies`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vpopcntdq")]
fn lanes_deny(line: &Line, asked: &Asked, lanes: &FirstLanes, place: u64) -> bool {
    let low = _mm512_and_si512(asked.coefficients, _mm512_set1_epi64(lanes.low.get() as i64));
    let parities = parities(_mm512_and_si512(words_of(line), low));
    parities != (asked.fingerprint >> lanes.fingerprint_at) as u8 && !lanes.is_bumped(control(line), place)
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vpopcntdq,popcnt")]
fn rest<L: Layout>(line: &Line, products: Products, place: u64, control: u32) -> bool {
    let words = Words512(_mm512_and_si512(words_of(line), load(&read_by_rest::<L>())));
    vectors_fit_wholly::<L>(&words, products, place, control)
}

/// Eight words. Only [`rest`] makes them, so any value proves that this module's features exist.
struct Words512(__m512i);

impl Vectors for Words512 {
    #[inline(always)]
    fn checks(&self, coefficients: u64, _: usize) -> u32 {
        // SAFETY: see `Words512`.
        unsafe { four_checks(self.0, coefficients) }
    }

    #[inline(always)]
    fn parities(&self, rows: u64, pieces: &Pieces) -> u8 {
        // SAFETY: see `Words512`.
        unsafe {
            let rows = _mm512_srlv_epi64(_mm512_set1_epi64(rows as i64), load(&pieces.row));
            parities(_mm512_and_si512(_mm512_srlv_epi64(self.0, load(&pieces.at)), rows))
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn four_checks(words: __m512i, coefficients: u64) -> u32 {
    let coefficients = _mm512_set1_epi64(coefficients as i64);
    let selected = ROTATIONS.map(|by| _mm512_and_si512(words, _mm512_rolv_epi64(coefficients, load(&by))));
    let pairs: [_; 2] = std::array::from_fn(|i| {
        let (a, b) = (selected[2 * i], selected[2 * i + 1]);
        _mm512_xor_si512(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
    });
    let sums = sums_of_halves(pairs[0], pairs[1]);
    parities(sums_of_halves(sums, sums)).into()
}

/// The parity of each word.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn parities(words: __m512i) -> u8 {
    _mm512_test_epi64_mask(_mm512_popcnt_epi64(words), _mm512_set1_epi64(1))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn words_of(line: &Line) -> __m512i {
    // SAFETY: a line has 64 bytes, one unaligned load.
    unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(words: &[u64; WORDS]) -> __m512i {
    // SAFETY: 64 bytes.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

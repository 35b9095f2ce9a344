//! Reading a line in AVX-512: one AND, one population count and one test for eight lanes at once.

use super::avx512_algebra::Avx512 as Steps;
use super::control::Control;
use super::entry::entry_points;
use super::equation::{Products, ROTATIONS, passes};
use super::layout::{Equation, Layout, WORD_BITS, WORDS, mask, words_of};
use super::walk::Reading;
use crate::line::Line;
use std::arch::x86_64::*;

entry_points!("avx512f,avx512dq,avx512vbmi,avx512vpopcntdq,gfni,popcnt,bmi2");

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vpopcntdq")]
fn read<L: Layout>(line: &Line, equation: &Equation) -> Reading {
    // SAFETY: a line has 64 bytes, one unaligned load.
    let line = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
    let mut hit = _mm512_and_si512(line, _mm512_set1_epi64(equation.low as i64));
    let mut lanes = 0xff;
    if L::HIGH_ROWS > 0 {
        // As in `layout`: nine rows of each of seven lanes are in the last word.
        let last = _mm512_permutexvar_epi64(_mm512_set1_epi64(7), line);
        let high = _mm512_srlv_epi64(last, _mm512_setr_epi64(0, 9, 18, 27, 36, 45, 54, 63));
        hit = _mm512_xor_si512(hit, _mm512_and_si512(high, _mm512_set1_epi64(equation.high as i64)));
        lanes = 0x7f;
    }
    let fits = (u32::from(parities(hit)) ^ equation.fingerprint) & lanes == 0;
    Reading { fits, control: u32::from(_mm512_movepi64_mask(line)) }
}

/// [`fits_wholly`](super::walk::fits_wholly), one vector operation for eight words. Always computes two checks, because the number of checks
/// is hard to predict, and more than two are rare.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vpopcntdq,popcnt")]
fn rest<L: Layout>(line: &Line, products: Products, place: u64, control: u32) -> bool {
    // SAFETY: a line has 64 bytes.
    let words = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
    let words = _mm512_and_si512(words, _mm512_set1_epi64(mask(WORD_BITS) as i64));
    let crossed = _mm512_maskz_mov_epi64(mask(L::CROSSED_WORDS) as u8, words);
    let coefficients = _mm512_set1_epi64(products.coefficients as i64);
    let checks = Control::decode::<L>(control).checks(place);
    let failed = |check: usize| {
        let selected = _mm512_and_si512(crossed, _mm512_rolv_epi64(coefficients, rotations(check)));
        (parities(selected).count_ones() ^ products.wanted(check)) & 1 & u32::from(check < checks)
    };
    let mut failures = failed(0) | failed(1);
    let equation = products.equation::<L>();
    let rows = _mm512_set1_epi64(equation.low as i64);
    let mut of_pieces = [0; 2];
    for (parities_of, pieces) in of_pieces.iter_mut().zip(L::PIECES) {
        let rows = _mm512_srlv_epi64(rows, load(&pieces.row));
        *parities_of = parities(_mm512_and_si512(_mm512_srlv_epi64(words, load(&pieces.at)), rows));
    }
    for lane in WORDS..L::LANES {
        let pieces = of_pieces.iter().zip(L::PIECES);
        let bits = pieces.fold(0, |bits, (parities, pieces)| {
            bits ^ (parities & pieces.words_of(lane - WORDS)).count_ones()
        });
        failures |= (bits ^ equation.fingerprint >> lane) & 1;
    }
    failures == 0
        && (2..checks)
            .all(|check| passes::<L>(&words_of(line).map(|word| word & mask(WORD_BITS)), &products, check))
}

/// The parity of each word.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn parities(words: __m512i) -> u8 {
    _mm512_test_epi64_mask(_mm512_popcnt_epi64(words), _mm512_set1_epi64(1))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn rotations(check: usize) -> __m512i {
    load(&ROTATIONS[check])
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(words: &[u64; WORDS]) -> __m512i {
    // SAFETY: 64 bytes.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

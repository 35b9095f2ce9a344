//! Reading a line in AVX-512: one AND, one population count, one test for eight or sixteen lanes at once.

use super::entry::entry_points;
use super::layout::{Equation, HALF, Layout, Sixteen, Twelve, mask};
use super::walk::Reading;
use super::width::Width;
use crate::line::{LINE_BYTES, Line};
use std::arch::x86_64::*;

entry_points!("avx512f,avx512dq,avx512vpopcntdq,popcnt,bmi2");

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vpopcntdq,popcnt")]
fn read<L: Layout>(line: &Line, equation: &Equation) -> Reading {
    let last_byte = u32::from(line[LINE_BYTES - 1]);
    // SAFETY: a line has 64 bytes, one unaligned load.
    let line = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
    let (fits, threshold) = match L::WIDTH {
        Width::Seven => (seven(line, equation) == equation.fingerprint, last_byte),
        Width::Eight => (eight(line, equation) == equation.fingerprint, top_bits(line)),
        Width::Nine => {
            let fits = eight(line, equation) == equation.fingerprint & 0xff
                && ninth(line, equation) == equation.fingerprint >> 8;
            (fits, last_byte)
        }
        Width::Twelve => {
            let fits = eight(line, equation) == equation.fingerprint & 0xff
                && upper_four(line, equation) == equation.fingerprint >> 8;
            (fits, top_bits(line))
        }
        Width::Sixteen => {
            (sixteen(line, equation) == equation.fingerprint, u32::from(_mm512_movepi32_mask(line)))
        }
    };
    Reading { fits, threshold }
}

/// The parity of each 64-bit lane.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn parities(lanes: __m512i) -> u32 {
    u32::from(_mm512_test_epi64_mask(_mm512_popcnt_epi64(lanes), _mm512_set1_epi64(1)))
}

/// Bit 63 of each word.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn top_bits(line: __m512i) -> u32 {
    u32::from(_mm512_movepi64_mask(line))
}

#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn seven(line: __m512i, equation: &Equation) -> u32 {
    let last = _mm256_extracti128_si256::<1>(_mm512_extracti64x4_epi64::<1>(line));
    let last = _mm_unpackhi_epi64(last, last);
    let high = _mm512_and_si512(_mm512_cvtepu8_epi64(last), _mm512_set1_epi64(equation.high as i64));
    let low = _mm512_and_si512(line, _mm512_set1_epi64(equation.low as i64));
    parities(_mm512_xor_si512(low, high)) & 0x7f
}

/// The parities of the lanes that have a word each.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn eight(line: __m512i, equation: &Equation) -> u32 {
    parities(_mm512_and_si512(line, _mm512_set1_epi64(equation.low as i64)))
}

/// The parity of the lane across the top bytes.
#[inline]
#[target_feature(enable = "avx512f,popcnt")]
fn ninth(line: __m512i, equation: &Equation) -> u32 {
    let across = _mm_cvtsi128_si64(_mm512_cvtepi64_epi8(_mm512_srli_epi64::<56>(line))) as u64;
    (across & equation.low).count_ones() & 1
}

/// The parities of the four lanes above the first eight.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn upper_four(line: __m512i, equation: &Equation) -> u32 {
    const _: () = assert!(HALF == 21 && Twelve::ROWS == 42);
    // Rows 0 to 20 are in words 0 to 3, rows 21 to 41 in words 4 to 7, both at bits 42 to 62.
    let to_upper = _mm512_set_epi64(21, 21, 21, 21, 42, 42, 42, 42);
    let coefficients = _mm512_sllv_epi64(_mm512_set1_epi64(equation.low as i64), to_upper);
    let upper = _mm512_set1_epi64((mask(HALF) << Twelve::ROWS) as i64);
    let both = parities(_mm512_and_si512(_mm512_and_si512(line, upper), coefficients));
    (both ^ both >> 4) & 15
}

#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn sixteen(line: __m512i, equation: &Equation) -> u32 {
    const _: () = assert!(Sixteen::ROWS < 32);
    let hit = _mm512_and_si512(line, _mm512_set1_epi32(equation.low as i32));
    u32::from(_mm512_test_epi32_mask(_mm512_popcnt_epi32(hit), _mm512_set1_epi32(1)))
}

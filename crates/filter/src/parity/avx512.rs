//! Reading a line in AVX-512: one AND, one population count and one test for eight lanes at once.

use super::avx512_algebra::Avx512 as Steps;
use super::entry::entry_points;
use super::layout::{Equation, Layout};
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
    let parities = _mm512_test_epi64_mask(_mm512_popcnt_epi64(hit), _mm512_set1_epi64(1));
    let fits = (u32::from(parities) ^ equation.fingerprint) & lanes == 0;
    Reading { fits, control: u32::from(_mm512_movepi64_mask(line)) }
}

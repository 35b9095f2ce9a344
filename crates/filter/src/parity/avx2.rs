//! Reading a line in AVX2: four lanes per vector, folded to nibbles whose parities come from a table of sixteen bits.

use super::algebra::Portable as Steps;
use super::entry::entry_points;
use super::layout::{Equation, Layout};
use super::walk::{Reading, fits_wholly as rest};
use crate::line::Line;
use std::arch::x86_64::*;

entry_points!("avx2,popcnt,bmi2");

#[inline]
#[target_feature(enable = "avx2,popcnt,bmi2")]
fn read<L: Layout>(line: &Line, equation: &Equation) -> Reading {
    let halves = line.as_ptr().cast::<__m256i>();
    // SAFETY: a line has 64 bytes, two unaligned loads of 32.
    let line = unsafe { [_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1))] };
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
    let fits = match L::LANES {
        7 => lanes_fit::<7>(hit, equation.fingerprint),
        _ => lanes_fit::<8>(hit, equation.fingerprint),
    };
    Reading { fits, control: top_bits(line) }
}

/// Whether the parities of the first `LANES` (7 or 8) of eight 64-bit lanes are the low bits of the fingerprint.
#[inline]
#[target_feature(enable = "avx2")]
fn lanes_fit<const LANES: usize>(lanes: [__m256i; 2], fingerprint: u32) -> bool {
    /// The parities of 0 to 7, then those of 8 to 15, a byte each.
    const LOW: i64 = 0x0100_0001_0001_0100;
    const HIGH: i64 = 0x0001_0100_0100_0001;
    let nibbles = lanes.map(|half| {
        let folded = _mm256_xor_si256(half, _mm256_srli_epi16::<4>(half));
        _mm256_and_si256(folded, _mm256_set1_epi8(15))
    });
    // Each byte's parity: 0 or 1 for the first four lanes, 0 or 16 for the others.
    let first = _mm256_shuffle_epi8(_mm256_setr_epi64x(LOW, HIGH, LOW, HIGH), nibbles[0]);
    let others = _mm256_setr_epi64x(LOW << 4, HIGH << 4, LOW << 4, HIGH << 4);
    let others = _mm256_shuffle_epi8(others, nibbles[1]);
    // A sum of eight parities is at most 8, so bit 0 is the parity of lane j, and bit 4 that of lane j + 4.
    let sums = _mm256_sad_epu8(_mm256_or_si256(first, others), _mm256_setzero_si256());
    let wanted =
        _mm256_srlv_epi64(_mm256_set1_epi64x(i64::from(fingerprint)), _mm256_setr_epi64x(0, 1, 2, 3));
    let compared = _mm256_setr_epi64x(0x11, 0x11, 0x11, if LANES == 7 { 0x01 } else { 0x11 });
    _mm256_testz_si256(_mm256_xor_si256(sums, wanted), compared) == 1
}

/// Bit 63 of each word.
#[inline]
#[target_feature(enable = "avx2")]
fn top_bits(line: [__m256i; 2]) -> u32 {
    let [low, high] = line.map(|half| _mm256_movemask_pd(_mm256_castsi256_pd(half)) as u32);
    low | high << 4
}

//! Reading a line in AVX2: four lanes per vector, folded to nibbles whose parities come from a table of sixteen bits.

use super::entry::entry_points;
use super::layout::{Equation, HALF, Layout, Twelve, mask};
use super::walk::Reading;
use super::width::Width;
use crate::line::{LINE_BYTES, Line};
use std::arch::x86_64::*;

entry_points!("avx2,popcnt,bmi2");

#[inline]
#[target_feature(enable = "avx2,popcnt,bmi2")]
fn read<L: Layout>(line: &Line, equation: &Equation) -> Reading {
    let last_byte = u32::from(line[LINE_BYTES - 1]);
    let halves = line.as_ptr().cast::<__m256i>();
    // SAFETY: a line has 64 bytes, two unaligned loads of 32.
    let line = unsafe { [_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1))] };
    let low = _mm256_set1_epi64x(equation.low as i64);
    let hit = line.map(|half| _mm256_and_si256(half, low));
    let (fits, threshold) = match L::WIDTH {
        Width::Seven => {
            let last = _mm256_permute4x64_epi64::<0b11_11_11_11>(line[1]);
            let last = _mm256_castsi256_si128(last);
            let high = _mm256_set1_epi64x(equation.high as i64);
            let bytes = [_mm256_cvtepu8_epi64(last), _mm256_cvtepu8_epi64(_mm_srli_epi64::<32>(last))];
            let both = [0, 1].map(|i| _mm256_xor_si256(hit[i], _mm256_and_si256(bytes[i], high)));
            (lanes_fit::<7>(both, equation.fingerprint), last_byte)
        }
        Width::Eight => (lanes_fit::<8>(hit, equation.fingerprint), top_bits(line)),
        Width::Nine => {
            let ninth = || (top_bytes(line) & equation.low).count_ones() & 1;
            let fits = lanes_fit::<8>(hit, equation.fingerprint) && ninth() == equation.fingerprint >> 8;
            (fits, last_byte)
        }
        Width::Twelve => {
            let four = || {
                // As in `layout`: a lane's halves lie at bits 42 to 62 of two words.
                let upper = _mm256_set1_epi64x((mask(HALF) << Twelve::ROWS) as i64);
                let first = _mm256_and_si256(line[0], _mm256_slli_epi64::<{ Twelve::ROWS as i32 }>(low));
                let second = _mm256_and_si256(line[1], _mm256_slli_epi64::<{ HALF as i32 }>(low));
                let both = _mm256_and_si256(_mm256_xor_si256(first, second), upper);
                _mm256_movemask_pd(_mm256_castsi256_pd(to_top_bits(both))) as u32
            };
            let fits = lanes_fit::<8>(hit, equation.fingerprint) && four() == equation.fingerprint >> 8;
            (fits, top_bits(line))
        }
        Width::Sixteen => {
            let coefficients = _mm256_set1_epi32(equation.low as i32);
            let eight = |half: __m256i| parities_of_doublewords(_mm256_and_si256(half, coefficients));
            let tops = line.map(|half| _mm256_movemask_ps(_mm256_castsi256_ps(half)) as u32);
            let fits =
                eight(line[0]) == equation.fingerprint & 0xff && eight(line[1]) == equation.fingerprint >> 8;
            (fits, tops[0] | tops[1] << 8)
        }
    };
    Reading { fits, threshold }
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

/// The parity of each 32-bit lane.
#[inline]
#[target_feature(enable = "avx2")]
fn parities_of_doublewords(lanes: __m256i) -> u32 {
    _mm256_movemask_ps(_mm256_castsi256_ps(to_top_bits(lanes))) as u32
}

/// The parity of each 32-bit lane in its top bit; the other bits are undefined.
#[inline]
#[target_feature(enable = "avx2")]
fn to_top_bits(lanes: __m256i) -> __m256i {
    let lanes = _mm256_xor_si256(lanes, _mm256_srli_epi32::<16>(lanes));
    let lanes = _mm256_xor_si256(lanes, _mm256_srli_epi32::<8>(lanes));
    let lanes = _mm256_xor_si256(lanes, _mm256_srli_epi32::<4>(lanes));
    // Bit n of 0x6996 is the parity of n.
    let nibbles = _mm256_and_si256(lanes, _mm256_set1_epi32(15));
    let parity = _mm256_srlv_epi32(_mm256_set1_epi32(0x6996), nibbles);
    _mm256_slli_epi32::<31>(parity)
}

/// Bit 63 of each word.
#[inline]
#[target_feature(enable = "avx2")]
fn top_bits(line: [__m256i; 2]) -> u32 {
    let [low, high] = line.map(|half| _mm256_movemask_pd(_mm256_castsi256_pd(half)) as u32);
    low | high << 4
}

/// The top byte of each word, word 0 lowest.
#[inline]
#[target_feature(enable = "avx2")]
fn top_bytes(line: [__m256i; 2]) -> u64 {
    let alternating = _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(line[0]), line[1]);
    let ordered = _mm256_permutevar8x32_epi32(alternating, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
    // The top byte of each of four doublewords, in both halves.
    let pick = _mm256_setr_epi8(
        3, 7, 11, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, //
        -1, -1, -1, -1, 3, 7, 11, 15, -1, -1, -1, -1, -1, -1, -1, -1,
    );
    let picked = _mm256_shuffle_epi8(ordered, pick);
    let both = _mm_or_si128(_mm256_castsi256_si128(picked), _mm256_extracti128_si256::<1>(picked));
    _mm_cvtsi128_si64(both) as u64
}

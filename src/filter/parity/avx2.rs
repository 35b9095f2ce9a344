//! Reading a line in AVX2: four lanes a vector, folded until a table of sixteen parities can be asked.

use super::equation::Equation;
use super::layout::{HALF, Lanes, Layout, Twelve, mask};
use super::solve::System;
use super::{FilterKind, Reading, Width, walk, walk_many};
use crate::filter::{Line, Verdict};
use std::arch::x86_64::*;

/// As [`super::scalar::contains`].
///
/// # Safety
/// The machine has AVX2, POPCNT and BMI2.
#[target_feature(enable = "avx2,popcnt,bmi2")]
pub(super) unsafe fn contains<L: Layout>(lines: &[Line], hash: u64, kind: &FilterKind) -> bool {
    walk::<L>(lines, hash, kind, |line, equation| read::<L>(line, equation))
}

/// As [`super::scalar::contain`].
///
/// # Safety
/// As [`contains`].
#[target_feature(enable = "avx2,popcnt,bmi2")]
pub(super) unsafe fn contain<L: Layout>(
    lines: &[Line],
    hashes: &[u64],
    kind: &FilterKind,
    verdicts: &mut [Verdict],
) {
    // SAFETY: the same instruction set.
    let contains = |lines: &[Line], hash, kind: &FilterKind| unsafe { contains::<L>(lines, hash, kind) };
    walk_many::<L>(lines, hashes, kind, verdicts, |line, equation| read::<L>(line, equation), contains);
}

/// As [`System::solve`], compiled for wider vectors.
///
/// # Safety
/// As [`contains`].
#[target_feature(enable = "avx2,popcnt,bmi2")]
pub(super) unsafe fn solve<L: Layout>(system: &mut System) -> (Lanes, usize) {
    system.solve::<L>()
}

#[inline]
#[target_feature(enable = "avx2,popcnt,bmi2")]
fn read<L: Layout>(line: &Line, equation: &Equation) -> Reading {
    let halves = line.as_ptr().cast::<__m256i>();
    // SAFETY: a line has 64 bytes, two unaligned loads of 32.
    let line = unsafe { [_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1))] };
    let low = _mm256_set1_epi64x(equation.low as i64);
    let hit = line.map(|half| _mm256_and_si256(half, low));
    match L::WIDTH {
        Width::Seven => {
            let last = _mm256_permute4x64_epi64::<0b11_11_11_11>(line[1]);
            let last = _mm256_castsi256_si128(last);
            let high = _mm256_set1_epi64x(equation.high as i64);
            let bytes = [_mm256_cvtepu8_epi64(last), _mm256_cvtepu8_epi64(_mm_srli_epi64::<32>(last))];
            let both = [0, 1].map(|i| _mm256_xor_si256(hit[i], _mm256_and_si256(bytes[i], high)));
            let threshold = (_mm_cvtsi128_si64(last) as u64 >> 56) as u32;
            Reading { parities: parities(both) & 0x7f, threshold }
        }
        Width::Eight => Reading { parities: parities(hit), threshold: top_bits(line) },
        Width::Nine => {
            let across = top_bytes(line);
            let ninth = (across & equation.low).count_ones() & 1;
            Reading { parities: parities(hit) | ninth << 8, threshold: (across >> 56) as u32 }
        }
        Width::Twelve => {
            // As in `layout`: a lane's halves lie at bits 42 to 62 of two words.
            let upper = _mm256_set1_epi64x((mask(HALF) << Twelve::ROWS) as i64);
            let first = _mm256_slli_epi64::<{ Twelve::ROWS as i32 }>(low);
            let second = _mm256_slli_epi64::<{ HALF as i32 }>(low);
            let both = _mm256_xor_si256(_mm256_and_si256(line[0], first), _mm256_and_si256(line[1], second));
            let parities = twelve_parities(folded(hit[0], hit[1]), _mm256_and_si256(both, upper));
            Reading { parities, threshold: top_bits(line) }
        }
        Width::Sixteen => {
            let coefficients = _mm256_set1_epi32(equation.low as i32);
            let hit = line.map(|half| parities_of_doublewords(_mm256_and_si256(half, coefficients)));
            let tops = line.map(|half| _mm256_movemask_ps(_mm256_castsi256_ps(half)) as u32);
            Reading { parities: hit[0] | hit[1] << 8, threshold: tops[0] | tops[1] << 8 }
        }
    }
}

/// The parity of each of eight 64-bit lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn parities(lanes: [__m256i; 2]) -> u32 {
    parities_of_doublewords(folded(lanes[0], lanes[1]))
}

/// Each 64-bit lane as a doubleword of the same parity, in order: those of `a`, then those of `b`.
#[inline]
#[target_feature(enable = "avx2")]
fn folded(a: __m256i, b: __m256i) -> __m256i {
    let a = _mm256_xor_si256(a, _mm256_srli_epi64::<32>(a));
    let b = _mm256_xor_si256(b, _mm256_slli_epi64::<32>(b));
    let alternating = _mm256_blend_epi32::<0b1010_1010>(a, b);
    _mm256_permutevar8x32_epi32(alternating, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7))
}

/// The parity of each 32-bit lane.
#[inline]
#[target_feature(enable = "avx2")]
fn parities_of_doublewords(lanes: __m256i) -> u32 {
    let lanes = _mm256_xor_si256(lanes, _mm256_srli_epi32::<16>(lanes));
    let lanes = _mm256_xor_si256(lanes, _mm256_srli_epi32::<8>(lanes));
    let lanes = _mm256_xor_si256(lanes, _mm256_srli_epi32::<4>(lanes));
    // Bit n of 0x6996 is the parity of n.
    let nibbles = _mm256_and_si256(lanes, _mm256_set1_epi32(15));
    let parity = _mm256_srlv_epi32(_mm256_set1_epi32(0x6996), nibbles);
    _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32::<31>(parity))) as u32
}

/// The parity of each doubleword of `eight`, then of each upper doubleword of `four`.
#[inline]
#[target_feature(enable = "avx2")]
fn twelve_parities(eight: __m256i, four: __m256i) -> u32 {
    let eight = _mm256_xor_si256(eight, _mm256_srli_epi32::<16>(eight));
    let four = _mm256_xor_si256(four, _mm256_slli_epi32::<16>(four));
    // The lower sixteen bits of a doubleword have the parity of one of eight, the upper ones that of one of four.
    let both = _mm256_blend_epi16::<0b1010_1010>(eight, four);
    let both = _mm256_xor_si256(both, _mm256_srli_epi16::<8>(both));
    let both = _mm256_xor_si256(both, _mm256_srli_epi16::<4>(both));
    let nibbles = _mm256_and_si256(both, _mm256_set1_epi8(15));
    let of_nibble = _mm256_setr_epi8(
        0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, //
        0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0,
    );
    let parity = _mm256_shuffle_epi8(of_nibble, nibbles);
    let eight = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32::<31>(parity))) as u32;
    let four = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_slli_epi32::<15>(parity))) as u32;
    eight | four << 8
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

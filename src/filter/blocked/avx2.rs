//! The probe in AVX2: eight bits at a time.

use super::{FilterKind, Line, Padded, line_of, no_lines};
use std::arch::x86_64::*;

/// Whether all `K` bits of the hash are set in its line.
///
/// # Safety
/// The machine has AVX2 and BMI2.
#[target_feature(enable = "avx2,bmi2")]
pub(super) unsafe fn contains<const K: usize>(lines: &[Line], hash: u64, _: &FilterKind) -> bool {
    let Some(line) = lines.get(line_of(hash, lines.len())) else { return no_lines() };
    let halves = line.as_ptr().cast::<__m256i>();
    let multipliers: &'static [u32; 16] = &Padded::<K>::MULTIPLIERS;
    let multipliers = multipliers.as_ptr().cast::<__m256i>();
    // SAFETY: a line and the multipliers have 64 bytes each, two unaligned loads of 32.
    let (line, multipliers) = unsafe {
        (
            [_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1))],
            [_mm256_loadu_si256(multipliers), _mm256_loadu_si256(multipliers.add(1))],
        )
    };
    match K {
        0 => true,
        1..=8 => eight(line, hash, multipliers[0]),
        _ => eight(line, hash, multipliers[0]) && eight(line, hash, multipliers[1]),
    }
}

/// Whether the bits of eight multipliers are all set.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn eight(line: [__m256i; 2], hash: u64, multipliers: __m256i) -> bool {
    let positions = _mm256_mullo_epi32(_mm256_set1_epi32(hash as i32), multipliers);
    let word = _mm256_srli_epi32::<28>(positions);
    // Permutations index within a half; the top bit of the product says which half.
    let words = _mm256_blendv_ps(
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(line[0], word)),
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(line[1], word)),
        _mm256_castsi256_ps(positions),
    );
    let bit = _mm256_and_si256(_mm256_srli_epi32::<23>(positions), _mm256_set1_epi32(31));
    let found = _mm256_srlv_epi32(_mm256_castps_si256(words), bit);
    _mm256_testc_si256(found, _mm256_set1_epi32(1)) == 1
}

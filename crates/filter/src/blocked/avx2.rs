//! The probe in AVX2: eight bits at a time.

use super::{FilterKind, Line, Padded, Verdict, line_of, many, no_lines};
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

/// As [`contains`], of many hashes.
///
/// # Safety
/// As [`contains`].
#[target_feature(enable = "avx2,bmi2")]
pub(super) unsafe fn contain<const K: usize>(
    lines: &[Line],
    hashes: &[u64],
    kind: &FilterKind,
    verdicts: &mut [Verdict],
) {
    // SAFETY: the same instruction set.
    many(lines, hashes, verdicts, |hash| unsafe { contains::<K>(lines, hash, kind) });
}

/// Whether the bits of eight multipliers are all set.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn eight(line: [__m256i; 2], hash: u64, multipliers: __m256i) -> bool {
    let products = _mm256_mulhi_epu16(_mm256_set1_epi32(hash as i32), multipliers);
    let word = _mm256_srli_epi32::<16>(products);
    // Permutations index within a half; bit 3 of the word's number, moved to the top, says which half.
    let words = _mm256_blendv_ps(
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(line[0], word)),
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(line[1], word)),
        _mm256_castsi256_ps(_mm256_slli_epi32::<12>(products)),
    );
    let bit = _mm256_and_si256(products, _mm256_set1_epi32(31));
    let found = _mm256_srlv_epi32(_mm256_castps_si256(words), bit);
    _mm256_testc_si256(found, _mm256_set1_epi32(1)) == 1
}

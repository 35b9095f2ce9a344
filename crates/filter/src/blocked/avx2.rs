//! The probe in AVX2: eight bits at a time.

use super::eights::all_set_by_eights;
use super::entry::entry_points;
use std::arch::x86_64::*;

entry_points!("avx2,bmi2");
all_set_by_eights!("avx2,bmi2");

/// Whether the bits of eight multipliers are all set.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn eight(line: [__m256i; 2], hash: u64, multipliers: __m256i) -> bool {
    let products = _mm256_mulhi_epu16(_mm256_set1_epi32(hash as i32), multipliers);
    let word = _mm256_srli_epi32::<16>(products);
    // Permutations index within a half. Bit 3 of the word number, moved to the top, selects the half.
    let words = _mm256_blendv_ps(
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(line[0], word)),
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(line[1], word)),
        _mm256_castsi256_ps(_mm256_slli_epi32::<12>(products)),
    );
    let bit = _mm256_and_si256(products, _mm256_set1_epi32(31));
    let found = _mm256_srlv_epi32(_mm256_castps_si256(words), bit);
    _mm256_testc_si256(found, _mm256_set1_epi32(1)) == 1
}

//! The probe in AVX-512VL: eight bits at a time, because nearly all absent keys fail in the first eight.

use super::eights::all_set_by_eights;
use super::entry::entry_points;
use std::arch::x86_64::*;

entry_points!("avx512f,avx512vl,avx512dq,bmi2");
all_set_by_eights!("avx512f,avx512vl,avx512dq,bmi2");

/// Whether the bits of eight multipliers are all set.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,bmi2")]
fn eight(line: [__m256i; 2], hash: u64, multipliers: __m256i) -> bool {
    let products = _mm256_mulhi_epu16(_mm256_set1_epi32(hash as i32), multipliers);
    // The permutation takes word numbers modulo 16, rotation counts modulo 32, so neither needs a mask.
    let words = _mm256_permutex2var_epi32(line[0], _mm256_srli_epi32::<16>(products), line[1]);
    let found = _mm256_rorv_epi32(words, products);
    let missing = _mm256_testn_epi32_mask(found, _mm256_set1_epi32(1));
    _kortestz_mask8_u8(missing, missing) == 1
}

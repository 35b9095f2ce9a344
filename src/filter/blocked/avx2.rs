//! The probe in AVX2: eight bits at a time.

use super::{Line, MULTIPLIERS, line_of};
use std::arch::x86_64::*;

/// Whether all `k` bits of the hash are set in its line.
///
/// # Safety
/// The machine has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn contains(lines: &[Line], hash: u64, k: u32) -> bool {
    let Some(line) = lines.get(line_of(hash, lines.len())) else { return true };
    let halves = line.as_ptr().cast::<__m256i>();
    // SAFETY: a line has 64 bytes, two unaligned loads of 32.
    let (low, high) = unsafe { (_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1))) };
    eight(low, high, hash, k, 0) && (k <= 8 || eight(low, high, hash, k, 8))
}

/// The bits `first` to `first + 7`, of which only those below `k` count.
#[inline]
#[target_feature(enable = "avx2")]
fn eight(low: __m256i, high: __m256i, hash: u64, k: u32, first: usize) -> bool {
    let m = MULTIPLIERS.map(|m| m as i32);
    let multipliers = _mm256_setr_epi32(
        m[first],
        m[first + 1],
        m[first + 2],
        m[first + 3],
        m[first + 4],
        m[first + 5],
        m[first + 6],
        m[first + 7],
    );
    let positions = _mm256_mullo_epi32(_mm256_set1_epi32(hash as i32), multipliers);
    let word = _mm256_srli_epi32::<28>(positions);
    // Permutations index within a half; the top bit of the product says which half.
    let words = _mm256_blendv_ps(
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, word)),
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, word)),
        _mm256_castsi256_ps(positions),
    );
    let bit = _mm256_and_si256(_mm256_srli_epi32::<23>(positions), _mm256_set1_epi32(31));
    let found = _mm256_srlv_epi32(_mm256_castps_si256(words), bit);
    let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let counts = _mm256_cmpgt_epi32(_mm256_set1_epi32(k as i32 - first as i32), lane);
    _mm256_testc_si256(found, _mm256_srli_epi32::<31>(counts)) == 1
}

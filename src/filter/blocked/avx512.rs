//! The probe in AVX-512F: all bits at once.

use super::{Line, MULTIPLIERS, line_of};
use std::arch::x86_64::*;

/// Whether all `k` bits of the hash are set in its line.
///
/// # Safety
/// The machine has AVX-512F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn contains(lines: &[Line], hash: u64, k: u32) -> bool {
    let Some(line) = lines.get(line_of(hash, lines.len())) else { return true };
    // SAFETY: a line and the multipliers have 64 bytes each, one unaligned load.
    let (line, multipliers) = unsafe {
        (_mm512_loadu_si512(line.as_ptr().cast()), _mm512_loadu_si512(MULTIPLIERS.as_ptr().cast()))
    };
    let positions = _mm512_mullo_epi32(_mm512_set1_epi32(hash as i32), multipliers);
    let words = _mm512_permutexvar_epi32(_mm512_srli_epi32::<28>(positions), line);
    // A rotation counts modulo 32: it needs no mask of the five bits.
    let found = _mm512_rorv_epi32(words, _mm512_srli_epi32::<23>(positions));
    let missing = _mm512_testn_epi32_mask(found, _mm512_set1_epi32(1));
    u32::from(missing) & ((1 << k) - 1) == 0
}

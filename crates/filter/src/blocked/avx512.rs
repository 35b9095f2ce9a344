//! The probe in AVX-512VL: eight bits at a time, since nearly all absent keys fail in the first eight.

use super::{FilterKind, Line, Padded, Verdict, line_of, many, no_lines};
use std::arch::x86_64::*;

/// Whether all `K` bits of the hash are set in its line.
///
/// # Safety
/// The machine has AVX-512F, VL, DQ and BMI2.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,bmi2")]
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
#[target_feature(enable = "avx512f,avx512vl,avx512dq,bmi2")]
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
#[target_feature(enable = "avx512f,avx512vl,avx512dq,bmi2")]
fn eight(line: [__m256i; 2], hash: u64, multipliers: __m256i) -> bool {
    let products = _mm256_mulhi_epu16(_mm256_set1_epi32(hash as i32), multipliers);
    // Numbers of words count modulo 16 here, and rotations modulo 32: neither needs a mask.
    let words = _mm256_permutex2var_epi32(line[0], _mm256_srli_epi32::<16>(products), line[1]);
    let found = _mm256_rorv_epi32(words, products);
    let missing = _mm256_testn_epi32_mask(found, _mm256_set1_epi32(1));
    _kortestz_mask8_u8(missing, missing) == 1
}

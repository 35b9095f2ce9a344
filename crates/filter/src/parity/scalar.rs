//! Reading a line in scalar code, the reference for testing the vector code.

use super::algebra::Portable as Steps;
use super::entry::entry_points;
use super::equation::{FirstLanes, ProbeHash, fits_wholly as rest};
use super::layout::{Equation, Layout, parities_of, words_of};
use crate::line::Line;

entry_points!();

#[inline(always)]
fn fits<L: Layout>(line: &Line, equation: &Equation) -> bool {
    L::fits_first(&words_of(line), equation)
}

/// A hash whose equation no layout has cut yet.
pub(super) type Asked = ProbeHash;

#[inline(always)]
fn asked(hash: &ProbeHash) -> Asked {
    *hash
}

/// As `denies`.
#[inline(always)]
fn lanes_deny(line: &Line, hash: &Asked, lanes: &FirstLanes, place: u64) -> bool {
    let coefficients = hash.products.coefficients & lanes.low.get();
    let parities = parities_of(words_of(line).map(|word| word & coefficients));
    let fingerprint = (hash.products.fingerprint >> lanes.fingerprint_at) as u32;
    (parities ^ fingerprint) & 0xff != 0 && !lanes.is_bumped(control(line), place)
}

/// The control byte of a line: bit 63 of each word, word 0 first.
#[inline(always)]
pub(super) fn control(line: &Line) -> u32 {
    let words = words_of(line);
    #[cfg(target_arch = "x86_64")]
    {
        // SSE2 is part of x86-64, and its units are idle here.
        use std::arch::x86_64::{_mm_castsi128_pd, _mm_movemask_pd, _mm_set_epi64x};
        let (pairs, _) = words.as_chunks::<2>();
        let two = |[low, high]: &[u64; 2]| {
            // SAFETY: as above.
            unsafe { _mm_movemask_pd(_mm_castsi128_pd(_mm_set_epi64x(*high as i64, *low as i64))) as u32 }
        };
        pairs.iter().rev().fold(0, |bits, pair| bits << 2 | two(pair))
    }
    #[cfg(not(target_arch = "x86_64"))]
    words.iter().rev().fold(0, |bits, word| bits << 1 | (word >> super::layout::WORD_BITS) as u32)
}

//! Tests eight bits at a time; shared by the vector modules.

use super::bits::{MAX_K, MULTIPLIERS};

/// The multipliers of `K` bits, padded with copies of the first: vector code tests a bit twice rather than
/// count which of its lanes matter. `K` is at least 1.
pub(super) struct Padded<const K: usize>;

impl<const K: usize> Padded<K> {
    pub const MULTIPLIERS: [u32; MAX_K as usize] = {
        let mut padded = [MULTIPLIERS[0]; MAX_K as usize];
        let mut j = 1;
        while j < K {
            padded[j] = MULTIPLIERS[j];
            j += 1;
        }
        padded
    };
}

/// Defines `all_set`, compiled with `$features`, around the module's `eight`, which tests eight bits.
macro_rules! all_set_by_eights {
    ($features:literal) => {
        #[inline]
        #[target_feature(enable = $features)]
        fn all_set<const K: usize>(line: &$crate::line::Line, hash: u64) -> bool {
            let halves = line.as_ptr().cast::<__m256i>();
            let multipliers: &'static [u32; 16] = &super::eights::Padded::<K>::MULTIPLIERS;
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
    };
}
pub(super) use all_set_by_eights;

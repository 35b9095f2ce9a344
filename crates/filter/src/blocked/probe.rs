//! Choosing the probe functions for an instruction set and a number of bits.

use super::bits::MAX_K;
use crate::isa::{Isa, on_isa};
use crate::probe_fns::ProbeFns;

/// The functions of a module for `k` bits. There are [`MAX_K`] multipliers; a larger `k` sets no more bits.
macro_rules! for_k {
    ($module:ident, $k:expr, $($each:literal)*) => {
        match $k {
            $($each => ProbeFns {
                denies: $module::denies::<$each>,
                one: $module::contains::<$each>,
                many: $module::contains_many::<$each>,
            },)*
            _ => ProbeFns {
                denies: $module::denies::<{ MAX_K as usize }>,
                one: $module::contains::<{ MAX_K as usize }>,
                many: $module::contains_many::<{ MAX_K as usize }>,
            },
        }
    };
}

/// The functions that tell whether all `k` bits of a hash are set in its line. Without any lines or bits,
/// nothing is denied.
pub(crate) fn probe_fns(isa: Isa, k: u32) -> ProbeFns {
    on_isa!(isa, module => for_k!(module, k, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15))
}

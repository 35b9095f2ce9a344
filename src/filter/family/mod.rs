//! The Bloom family: filters that stand alone, asked by key. Bytes of keys in, verdicts out, no files.
//!
//! | type | when to choose it |
//! |---|---|
//! | [`LineFilter`] | the keys are known now: the smallest (parity), or one that can still grow a little (blocked Bloom); one cache line a probe |
//! | [`Bloom`] | filters that are to be united, compared, folded or sent |
//! | [`CountingBloom`] | keys come and go |
//! | [`ScalableBloom`] | nobody knows how many keys will come |
//! | [`NoisyBloom`] | the parts are held by different parties, and each part alone must tell little |
//!
//! [`AnyFilter`] is any of those that have a file form (all but the noisy one, whose parts are [`Bloom`]s).
//! None ever denies a key that it holds, and none lets its false-positive rate collapse in silence: past its capacity a filter
//! refuses new keys with [`Error::FilterFull`](crate::Error::FilterFull).
//!
//! # The common shape
//! A filter of `m` bits sets `k` of them for each of `n` keys (Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors",
//! 1970). [`shape`] has the formulas that connect `m`, `k`, `n` and the false-positive rate `p`. The `k` positions come from one
//! 128-bit hash of the key, [`HashFunction`]; see there.

mod algebra;
mod any;
mod bloom;
mod counting;
mod fold;
mod hashing;
mod line_filter;
mod murmur3;
mod noisy;
mod scalable;
pub mod shape;

pub use algebra::Overlap;
pub use any::AnyFilter;
pub use bloom::{Bloom, Plan};
pub use counting::CountingBloom;
pub use hashing::HashFunction;
pub use line_filter::LineFilter;
pub use noisy::NoisyBloom;
pub use scalable::{ScalableBloom, Series};
pub use shape::Shape;

#[cfg(test)]
mod tests;

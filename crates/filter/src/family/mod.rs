//! The Bloom family: stand-alone filters queried by key. The crate documentation says which to choose.
//!
//! A filter of `m` bits sets `k` of them for each of `n` keys (Bloom, "Space/Time Trade-offs in Hash Coding
//! with Allowable Errors", 1970). [`shape`] has the formulas that relate `m`, `k`, `n` and the false-positive
//! rate `p`. The `k` positions come from one 128-bit hash of the key ([`HashFunction`]).

mod algebra;
mod any;
mod bloom;
mod by_rate;
mod counting;
mod fold;
mod hashing;
mod line_filter;
mod murmur3;
mod noisy;
mod rice;
mod rotating;
mod scalable;
pub mod shape;
mod small;

pub use algebra::Overlap;
pub use any::AnyFilter;
pub(crate) use any::POSITIONS_OF_AN_ABSENT_KEY;
pub(crate) use bloom::is_set;
pub use bloom::{Bloom, Plan};
pub use counting::CountingBloom;
pub use hashing::HashFunction;
pub use line_filter::LineFilter;
pub(crate) use line_filter::PREFETCH_BATCH;
pub use noisy::NoisyBloom;
pub use rotating::{RotatingBloom, Rotation};
pub use scalable::{ScalableBloom, Series};
pub use shape::Shape;
pub use small::SmallFilter;

#[cfg(test)]
mod tests;

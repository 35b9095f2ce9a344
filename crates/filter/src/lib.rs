//! Filters for approximate membership: has this key been added? The answer is [`Verdict::Absent`], which is
//! certain, or [`Verdict::Maybe`], which is wrong for a small share of absent keys. No added key is absent.
//!
//! Choose this crate for filters in memory, in messages or in files of your own. The crate
//! [`sidebloom`](https://docs.rs/sidebloom) has a key-value store with these filters, and files of them that
//! are queried without reading them.
//!
//! ```
//! use sidebloom_filter::{AnyFilter, FilterSpec, LineFilter, Verdict, Width};
//!
//! let spec = FilterSpec::Parity { width: Width::Eight }; // 8.8 bits per key, 0.28 % false positives
//! let names = LineFilter::build(spec, ["ada", "grace", "barbara"], 42)?;
//! assert_eq!(names.contains("grace"), Verdict::Maybe);
//!
//! let mut wire = Vec::new();
//! sidebloom_filter::send_filter(&AnyFilter::Lines(names), &mut wire)?;
//! let received = sidebloom_filter::receive_filter(&mut &wire[..], 1 << 20)?;
//! assert_eq!(received.contains("ada"), Verdict::Maybe);
//! # Ok::<(), sidebloom_filter::Error>(())
//! ```
//!
//! # Which filter
//! | type | choose it when |
//! |---|---|
//! | [`LineFilter`] | all keys are known (parity, 4 to 12 % above the least size), or few more will come (blocked Bloom); one cache line per probe |
//! | [`SmallFilter`] | all keys are known, at most some hundred, and every byte counts, as in a message: 33 bytes for 10 keys |
//! | [`Bloom`] | filters are to be combined, compared, folded or sent |
//! | [`CountingBloom`] | keys are added and removed |
//! | [`ScalableBloom`] | the number of keys is unknown |
//! | [`RotatingBloom`] | keys are forgotten after a window of time |
//! | [`NoisyBloom`] | several parties hold parts, and each part alone must reveal little |
//!
//! [`AnyFilter`] is any of these except the noisy one (whose parts are [`Bloom`] filters) and the rotating
//! one, which lives in memory only: it has a wire form ([`send_filter`]) and a file form
//! ([`format`](mod@format)). Inserting never degrades the false-positive rate silently: a full filter refuses
//! new keys with [`Error::Full`].
//!
//! # Lower-level parts
//! The filters of a store's segments share one 64-bit hash per lookup ([`KeyHasher`]). Such a filter is an
//! array of 64-byte lines and a [`FilterKind`] that says how to read them. A [`FilterSpec`] says what to
//! build, [`BuiltFilter`] is the result, and a [`Prober`] probes any array of lines, wherever it is stored.
//! [`AtomicBloom`] takes inserts and probes from many threads.
//!
//! This crate opens no files.

pub mod blocked;
mod built;
pub mod codec;
mod error;
mod family;
pub mod format;
pub mod hash;
mod huge_pages;
mod isa;
mod kind;
mod line;
mod lines;
pub mod parity;
mod prefetch;
mod prefix;
mod probe_fns;
mod prober;
mod verdict;

/// Runs the code in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
extern crate self as sidebloom_filter;
#[cfg(test)]
#[path = "../../../fixtures/all_kinds.rs"]
mod all_kinds;
#[cfg(test)]
#[path = "../../../fixtures/golden.rs"]
mod golden;
#[cfg(test)]
#[path = "../../../tests/support/test_length.rs"]
mod test_length;

pub use blocked::{AtomicBloom, sizing};
pub use built::BuiltFilter;
pub use error::{Error, Result, show_versions};
pub use family::shape;
pub use family::{
    AnyFilter, Bloom, CountingBloom, HashFunction, LineFilter, NoisyBloom, Overlap, Plan, RotatingBloom,
    Rotation, ScalableBloom, Series, Shape, SmallFilter,
};
pub use format::{receive_filter, send_filter};
pub use hash::{KeyHash, KeyHasher};
pub use isa::Isa;
pub use kind::{FilterKind, FilterSpec};
pub use line::{LINE_BITS, LINE_BYTES, Line, MAX_LINES};
pub use lines::Lines;
pub use parity::{EachPiece, Levels, ProbeHash, ProbeLoop, Probes, SortHashes, Width};
pub use prefetch::prefetch;
pub use prefix::{DistinctPrefixes, PrefixExtractor, PrefixQuery, PrefixSet};
pub use prober::{FirstProbe, Prober};
pub use verdict::Verdict;

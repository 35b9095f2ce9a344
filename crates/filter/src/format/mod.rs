//! The file and wire formats of filters: byte maps, and the code that encodes and decodes them. The caller
//! does the file I/O.
//!
//! - [`header`], [`kind`] and [`groups`]: the file, of a stand-alone filter or of a segment (its *sidecar*)
//! - [`wire`]: the compressed stream
//! - [`small`]: the file and the stream of a small filter
//! - [`parts`]: between a filter in memory and its header and lines
//! - [`StoredProber`]: queries of lines that stay where they are

pub mod groups;
pub mod header;
mod input;
pub mod kind;
pub mod parts;
mod rans;
pub mod small;
mod stored_prober;
pub mod wire;

pub use header::{Binding, HEADER_BYTES, Header, StoredPrefixes};
pub use kind::StoredKind;
pub use stored_prober::StoredProber;
pub use wire::{receive_filter, send_filter};

#[cfg(test)]
mod earlier_tests;
#[cfg(test)]
mod small_tests;
#[cfg(test)]
mod wire_golden_tests;
#[cfg(test)]
mod wire_tests;

//! sidebloom for users of [SlateDB](slatedb), the LSM tree on object storage:
//!
//! - [`ParityFilterPolicy`]: **parity filters inside the SST files**, in place of SlateDB's Bloom filters.
//!   Reads and writes stay SlateDB's.
//! - [`export`] and [`import`]: **copies of a store to a SlateDB, and back.**

mod bloom_reader;
mod copy;
mod filter;
mod policy;

pub use bloom_reader::BloomReader;
pub use copy::{Copied, Error, export, import};
pub use policy::{BitsPerKeyError, ParityFilterPolicy};

/// Runs the code in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

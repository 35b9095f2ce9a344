//! An embedded key-value store whose lookups for missing keys cost a cache line instead of a disk read.

pub mod error;
pub mod filter;
pub mod fs;
pub mod id;
pub mod manifest;
pub mod sidecar;
pub mod wal;

mod codec;
#[cfg(test)]
mod golden;
mod hash;
mod key;

pub use error::{Error, Result};
pub use key::{MAX_KEY_BYTES, MAX_VALUE_BYTES, Value};

#[cfg(test)]
extern crate self as sidebloom;
/// The simulated file system of the integration tests; it names this crate from outside.
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

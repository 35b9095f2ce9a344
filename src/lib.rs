//! An embedded key-value store whose lookups for missing keys cost a cache line instead of a disk read.

pub mod error;
pub mod fs;
pub mod id;
pub mod segment;

mod codec;
mod hash;
mod key;

pub use error::{Error, Result};
pub use key::{MAX_KEY_BYTES, MAX_VALUE_BYTES, Value};

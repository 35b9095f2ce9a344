//! The file and wire formats of filters: byte maps, and the code that writes and reads them. No files: the caller reads and writes those.

pub mod groups;
pub mod header;
pub mod kind;
pub mod parts;
mod rans;
pub mod wire;

pub use header::{Binding, HEADER_BYTES, Header};
pub use kind::Kind;
pub use wire::{receive_filter, send_filter};

#[cfg(test)]
mod wire_golden_tests;
#[cfg(test)]
mod wire_tests;

//! The write-ahead log: every batch is appended here before it is visible, and read back after a crash (invariant I4).

mod batch;
#[cfg(test)]
mod crash_tests;
mod format;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use batch::{Batch, ops};

pub use reader::{End, identify, replay};
pub use writer::{Record, Writer};

//! Shared by the tests of this crate.

pub mod counting;
pub mod forged;
pub mod hostile;

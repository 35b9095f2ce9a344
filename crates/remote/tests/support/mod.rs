//! What the tests of this crate share.

pub mod counting;
pub mod forged;
pub mod hostile;

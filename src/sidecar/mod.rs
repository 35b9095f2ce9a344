//! Sidecar files: a filter beside its segment (or alone), written once, mapped, verified, asked.
//!
//! `create` (or `write`) → `Sidecar::open` → `verify` → `probe`*. A sidecar is derived data (I2): whatever is wrong with one is an
//! [`Unusable`], a reason to warn, to go on without it and to build it again; never a failure of the store.

mod format;
mod reader;
mod unusable;
mod writer;

pub use format::Binding;
pub use reader::{Expect, Residency, Sidecar};
pub use unusable::Unusable;
pub use writer::create;

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod tests;

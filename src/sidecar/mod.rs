//! Sidecar files: a filter beside its segment (or alone), written once, mapped, verified, asked.
//!
//! `create` (or `write`) → `Sidecar::open` → (`ask` | `verify`)*. A sidecar is derived data (I2): whatever is wrong with one is an
//! [`Unusable`], a reason to warn, to go on without it and to build it again; never a failure of the store.

mod maps;
mod reader;
mod standalone;
mod unusable;
mod verified;
mod verify;
mod writer;

pub use crate::filter::format::Binding;
pub use maps::Maps;
pub use reader::{Expect, Residency, Sidecar};
pub use standalone::{read_filter, write_filter};
pub use unusable::Unusable;
pub use writer::create;

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod maps_tests;
#[cfg(test)]
mod standalone_tests;
#[cfg(test)]
mod tests;

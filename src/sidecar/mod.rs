//! Sidecar files: a filter beside its segment (or alone), written once, mapped, verified, asked.
//!
//! `create` (or `write`) → `Sidecar::open` → (`ask` | `verify`)*. A sidecar is derived data (I2): whatever is wrong with one is an
//! [`Unusable`], a reason to warn, to go on without it and to build it again; never a failure of the store.

mod alone;
mod format;
mod groups;
mod kind;
mod maps;
mod rans;
mod reader;
mod unusable;
mod verify;
mod wire;
mod writer;

pub use alone::{read_filter, write_filter};
pub use format::Binding;
pub use maps::Maps;
pub use reader::{Expect, Residency, Sidecar};
pub use unusable::Unusable;
pub use wire::{receive_filter, send_filter};
pub use writer::create;

#[cfg(test)]
mod alone_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod maps_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wire_golden_tests;

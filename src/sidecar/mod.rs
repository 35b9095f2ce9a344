//! Sidecar files: segment filters and stand-alone ones. Written once, then mapped, verified and probed.
//!
//! Call order: `create → (Sidecar::open | Sidecar::expected) → (ask | verify | facts)*`. A sidecar is derived
//! data (I2): any defect is an [`Unusable`]. The store then logs a warning, works without the sidecar and
//! rebuilds it; it never fails because of one.

mod facts;
mod mapped;
mod maps;
mod members;
mod owners;
mod read_ahead;
mod reader;
mod standalone;
mod state;
mod unusable;
mod verify;
mod writer;

pub use crate::filter::format::Binding;
pub use facts::{Expect, Facts};
pub use mapped::MappedFilter;
pub use maps::Maps;
pub use members::Members;
pub use reader::LiveSidecar;
pub use standalone::{read_filter, write_filter};
pub use state::{Residency, Sidecar};
pub use unusable::Unusable;
pub use writer::create;

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod mapped_tests;
#[cfg(test)]
mod maps_tests;
#[cfg(test)]
mod standalone_tests;
#[cfg(test)]
mod tests;

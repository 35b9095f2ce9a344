//! Settings of stores, guards and keyspaces, from Python's arguments.

use crate::error::invalid;
use pyo3::prelude::*;
use sidebloom::{Compression, Durability, FilterPolicy};

/// "os": once the operating system has it. "sync": once the disk has it.
pub fn durability(name: &str) -> PyResult<Durability> {
    match name {
        "os" => Ok(Durability::Os),
        "sync" => Ok(Durability::Sync),
        _ => Err(invalid(format!("durability is {name:?}: \"os\" or \"sync\" expected"))),
    }
}

pub fn compression(name: &str) -> PyResult<Compression> {
    let found = Compression::ALL.iter().find(|compression| compression.name() == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = Compression::ALL.iter().map(|compression| compression.name()).collect();
        invalid(format!("compression is {name:?}: one of {names:?} expected"))
    })
}

/// Filters of so many bits per key; none for 0.
pub fn filter_policy(bits_per_key: f64) -> FilterPolicy {
    if bits_per_key == 0.0 { FilterPolicy::OFF } else { FilterPolicy::bits_per_key(bits_per_key) }
}

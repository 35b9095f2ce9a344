//! Reads and writes filter files.

use super::info;
use crate::context::{Context, Failure};
use sidebloom::filter::{AnyFilter, Bloom};
use std::path::Path;

/// Reads a filter that supports set algebra: a Bloom filter, or the plain form of a counting filter.
pub fn read_bloom(path: &Path) -> Result<Bloom, Failure> {
    match sidebloom::read_filter(path)? {
        AnyFilter::Bloom(filter) => Ok(filter),
        AnyFilter::Counting(filter) => Ok(filter.to_bloom()?),
        other => Err(Failure::message(format!(
            "{} is a {} filter: only bloom and counting filters can be combined and folded",
            path.display(),
            other.name()
        ))),
    }
}

/// Writes a filter and reports it.
pub fn write(cx: &Context, path: &Path, filter: &AnyFilter) -> Result<(), Failure> {
    let bytes = sidebloom::write_filter(path, filter)?;
    info::Report::new(path, filter, bytes).print(cx)
}

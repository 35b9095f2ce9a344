//! Filters that stand alone: any kind, read into memory as a whole, written as a whole.

use super::format::{BadHeader, HEADER_BYTES, Header, VERSION};
use super::groups::{CHECKSUM_BYTES, Seal};
use super::kind::Kind;
use super::unusable::Unusable;
use super::writer::write_parts;
use crate::error::{Error, Result};
use crate::filter::{AnyFilter, Bloom, BuiltFilter, CountingBloom, Line, LineFilter, Lines, ScalableBloom};
use crate::fs::{Fs, RealFs, parent_of};
use std::path::Path;

/// What to do about a damaged file.
const REMEDY: &str = "; build the filter again from its keys";

/// Writes a filter to a file of its own, replacing what is there by a rename. Returns the file's bytes, which are then durable.
///
/// # Errors
/// [`Error::Io`]; what was at `path` before is then still there.
pub fn write_filter(path: impl AsRef<Path>, filter: &AnyFilter) -> Result<u64> {
    let path = path.as_ref();
    let (header, parts) = parts_of(filter);
    let bytes = write_parts(&RealFs, path, &header, &parts)?;
    RealFs.sync_dir(parent_of(path))?;
    Ok(bytes)
}

/// Reads a filter from a file that [`write_filter`] wrote, into memory, and checks every byte of it.
///
/// # Errors
/// [`Error::Corruption`] for a damaged, cut or foreign file; [`Error::UnsupportedVersion`] for one of another version;
/// [`Error::InvalidArgument`] for the filter of a store's segment, which may be wrong the moment that the store goes on.
pub fn read_filter(path: impl AsRef<Path>) -> Result<AnyFilter> {
    let path = path.as_ref();
    let file = RealFs.open(path)?;
    let len = file.len()?;
    let mut page = vec![0; HEADER_BYTES.min(usize::try_from(len).unwrap_or(HEADER_BYTES))];
    file.read_exact_at(&mut page, 0)?;
    let header = Header::decode(&page).map_err(|bad| named(bad, path, REMEDY))?;
    let damaged = |unusable| match unusable {
        Unusable::Invalid { offset, what } => Error::corruption(path, offset, what + REMEDY),
        other => Error::corruption(path, 0, format!("{other}{REMEDY}")),
    };
    header.check_length(len).map_err(damaged)?;
    if let Some(binding) = header.binding {
        return Err(Error::InvalidArgument(format!(
            "{} belongs to segment {} of a store: ask the store instead",
            path.display(),
            binding.segment
        )));
    }
    // The file is as long as the header says, so this allocates no more than the file has.
    let mut lines = Lines::zeroed(usize::try_from(header.lines).unwrap_or(usize::MAX))?;
    file.read_exact_at(lines.as_flattened_mut(), HEADER_BYTES as u64)?;
    let mut checksums = vec![0; header.groups() * CHECKSUM_BYTES];
    file.read_exact_at(&mut checksums, header.checksums_at())?;
    if let Some(group) = Seal::of(&page).first_bad_group(lines.as_flattened(), &checksums) {
        return Err(damaged(Unusable::bad_group(group)));
    }
    filter_of(&header, lines).map_err(|bad| named(bad, path, REMEDY))
}

/// What is wrong with a header and what to do, as an error of the crate.
pub(super) fn named(bad: BadHeader, file: &Path, remedy: &str) -> Error {
    match bad {
        BadHeader::Invalid { offset, what } => {
            Error::corruption(file, offset as u64, format!("{what}{remedy}"))
        }
        BadHeader::OtherVersion(found) => {
            Error::UnsupportedVersion { file: file.to_path_buf(), found, supported: VERSION }
        }
    }
}

/// The header of a filter, and its lines in order.
pub(super) fn parts_of(filter: &AnyFilter) -> (Header, Vec<&[Line]>) {
    let (kind, parts) = match filter {
        AnyFilter::Lines(filter) => {
            (Kind::Lines(filter.built().kind, filter.hasher()), vec![&filter.built().lines[..]])
        }
        AnyFilter::Bloom(filter) => (Kind::Bloom(*filter.plan()), vec![filter.lines()]),
        AnyFilter::Counting(filter) => (Kind::Counting(*filter.plan()), vec![filter.lines()]),
        AnyFilter::Scalable(filter) => {
            let kind = Kind::Scalable { series: *filter.series(), layers: filter.layers().len() };
            (kind, filter.layers().iter().map(Bloom::lines).collect())
        }
    };
    let lines = parts.iter().map(|part| part.len() as u64).sum();
    (Header { kind, keys: filter.keys(), lines, binding: None }, parts)
}

/// The filter of a valid header and as many lines as it says.
pub(super) fn filter_of(header: &Header, lines: Lines) -> Result<AnyFilter, BadHeader> {
    let keys = header.keys;
    Ok(match header.kind {
        Kind::Lines(kind, hasher) => {
            AnyFilter::Lines(LineFilter::from_built(BuiltFilter { kind, keys, lines }, hasher))
        }
        Kind::Bloom(plan) => AnyFilter::Bloom(Bloom::from_parts(plan, keys, lines)),
        Kind::Counting(plan) => AnyFilter::Counting(CountingBloom::from_parts(plan, keys, lines)),
        Kind::Scalable { series, layers } => {
            let filter = ScalableBloom::from_parts(series, layers, keys, &lines);
            let too_few = || BadHeader::invalid(24, format!("{keys} keys do not fill {layers} filters"));
            AnyFilter::Scalable(filter.ok_or_else(too_few)?)
        }
    })
}

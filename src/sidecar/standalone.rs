//! Filters that stand alone: any kind, read into memory as a whole, written as a whole.

use super::unusable::Unusable;
use super::writer::write_parts;
use crate::error::{Error, Result};
use crate::filter::format::groups::{CHECKSUM_BYTES, Seal};
use crate::filter::format::parts::{filter_of, parts_of};
use crate::filter::format::{HEADER_BYTES, Header};
use crate::filter::{AnyFilter, Lines};
use crate::fs::{Fs, RealFs, parent_of};
use crate::id::FileId;
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
    let damaged = |unusable| match unusable {
        Unusable::Invalid { offset, what } => Error::corruption(path, offset, what + REMEDY),
        Unusable::OtherVersion { found, supported } => {
            Error::UnsupportedVersion { file: path.to_path_buf(), found, supported }
        }
        other => Error::corruption(path, 0, format!("{other}{REMEDY}")),
    };
    let header = Header::decode(&page).map_err(|bad| damaged(bad.into()))?;
    header.check_length(len).map_err(|bad| damaged(bad.into()))?;
    if let Some(binding) = header.binding {
        return Err(Error::InvalidArgument(format!(
            "{} belongs to segment {} of a store: ask the store instead",
            path.display(),
            FileId(binding.segment)
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
    filter_of(&header, lines).map_err(|bad| damaged(bad.into()))
}

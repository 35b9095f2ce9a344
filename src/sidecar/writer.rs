//! Writes a sidecar under a temporary name, syncs it and renames it. A published sidecar is never modified,
//! because readers map it.

use crate::error::{Error, Result};
use crate::filter::format::groups::{GroupChecksums, Seal};
use crate::filter::format::{Binding, Header, StoredKind, StoredPrefixes};
use crate::filter::{BuiltFilter, FilterSpec, LINE_BYTES, Line};
use crate::fs::{AppendFile, Fs};
use crate::hash::KeyHasher;
use crate::id::TEMPORARY;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Lines per write: enough for huge pages in the page cache, and few enough to fail early on a full disk.
const WRITE_LINES: usize = (4 << 20) / LINE_BYTES;

/// Builds a filter of all `hashes`, including those of `prefixes`, checks that it denies none of them, and
/// writes it to `path`. Returns the size of the file in bytes.
///
/// # Errors
/// [`Error::InvalidArgument`], [`Error::TooManyKeys`] or [`Error::OutOfMemory`] if no such filter can be
/// built; [`Error::Corruption`] if the filter denies one of its own keys (the machine's memory is faulty;
/// nothing is written); the errors of [`write()`].
pub fn create(
    fs: &dyn Fs,
    path: &Path,
    hashes: &[u64],
    spec: FilterSpec,
    hasher: KeyHasher,
    binding: Option<Binding>,
    prefixes: StoredPrefixes,
) -> Result<u64> {
    let filter = BuiltFilter::build(spec, hashes)?;
    filter.check_members(hashes).map_err(|denied| Error::corruption(path, 0, denied.to_string()))?;
    write(fs, path, &filter, hasher, binding, prefixes)
}

/// Writes a filter to `path`. Replaces an existing file by a rename, never in place. Returns its size in
/// bytes.
///
/// The contents are durable on return, the name once the caller has synced the directory.
///
/// # Errors
/// [`Error::Io`]. An existing file is then unchanged.
pub fn write(
    fs: &dyn Fs,
    path: &Path,
    filter: &BuiltFilter,
    hasher: KeyHasher,
    binding: Option<Binding>,
    prefixes: StoredPrefixes,
) -> Result<u64> {
    let header = Header {
        kind: StoredKind::Lines(filter.kind, hasher),
        keys: filter.keys,
        lines: filter.lines.len() as u64,
        expected_fpr: filter.expected_fpr(),
        binding,
        prefixes,
    };
    write_parts(fs, path, &header, &[&filter.lines])
}

/// [`write()`] for lines in several slices, which together have as many as the header says.
fn write_parts(fs: &dyn Fs, path: &Path, header: &Header, parts: &[&[Line]]) -> Result<u64> {
    replace(fs, path, |file| fill(file, header, parts))?;
    Ok(header.file_bytes())
}

/// Writes a file under a temporary name, then renames it. `fill` writes and syncs it. The store's lock
/// protects the temporary name, so an existing file of that name was left by a crash.
fn replace(fs: &dyn Fs, path: &Path, fill: impl FnOnce(Box<dyn AppendFile>) -> Result<()>) -> Result<()> {
    let temporary = temporary_name(path);
    if fs.file_len(&temporary)?.is_some() {
        fs.remove(&temporary)?;
    }
    let file = fs.create(&temporary)?;
    finish(fs, path, &temporary, file, fill)
}

/// Fills a newly created temporary file, then renames it.
pub(super) fn finish(
    fs: &dyn Fs,
    path: &Path,
    temporary: &Path,
    file: Box<dyn AppendFile>,
    fill: impl FnOnce(Box<dyn AppendFile>) -> Result<()>,
) -> Result<()> {
    let written = fill(file).and_then(|()| fs.rename(temporary, path));
    if written.is_err() {
        let _ = fs.remove(temporary); // The disk may be full, so leave no file if possible.
    }
    written
}

/// Writes header, lines and checksums, and syncs the file.
pub(super) fn fill(mut file: Box<dyn AppendFile>, header: &Header, parts: &[&[Line]]) -> Result<()> {
    let page = header.encode()?;
    let mut checksums = GroupChecksums::new(Seal::of(&page));
    file.append(&page)?;
    for piece in parts.iter().flat_map(|part| part.chunks(WRITE_LINES)) {
        checksums.add(piece);
        file.append(piece.as_flattened())?;
    }
    file.append(&checksums.finish())?;
    file.sync()
}

/// The name of an unfinished sidecar.
fn temporary_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(TEMPORARY);
    name.into()
}

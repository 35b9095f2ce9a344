//! Writing: under a temporary name, synced, then renamed. A published sidecar is never touched again: readers have it mapped.

use crate::error::{Error, Result};
use crate::filter::format::groups::{Checksums, Seal};
use crate::filter::format::{Binding, Header, Kind};
use crate::filter::{BuiltFilter, FilterSpec, LINE_BYTES, Line};
use crate::fs::{AppendFile, Fs};
use crate::hash::KeyHasher;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Large enough that the page cache can take it as huge pages, small enough to fail early on a full disk.
const WRITE_LINES: usize = (4 << 20) / LINE_BYTES;

/// Builds a filter of all `hashes`, checks that it denies none of them, and writes it to `path`. Returns the file's bytes.
///
/// # Errors
/// [`Error::InvalidArgument`] from the sizing; [`Error::Corruption`] when the filter denies one of its own keys (the machine's
/// memory is at fault: nothing is written); everything that [`write()`] can fail with.
pub fn create(
    fs: &dyn Fs,
    path: &Path,
    hashes: &[u64],
    spec: FilterSpec,
    hasher: KeyHasher,
    binding: Option<Binding>,
) -> Result<u64> {
    let filter = BuiltFilter::build(spec, hashes)?;
    filter.check_members(hashes).map_err(|denied| Error::corruption(path, 0, denied.to_string()))?;
    write(fs, path, &filter, hasher, binding)
}

/// Writes a filter to `path`, replacing what is there by a rename, never in place. Returns the file's bytes.
///
/// The file's bytes are durable on return; its name is when the caller has synced the directory.
///
/// # Errors
/// [`Error::Io`]; what was at `path` before is then still there.
pub fn write(
    fs: &dyn Fs,
    path: &Path,
    filter: &BuiltFilter,
    hasher: KeyHasher,
    binding: Option<Binding>,
) -> Result<u64> {
    let header = Header {
        kind: Kind::Lines(filter.kind, hasher),
        keys: filter.keys,
        lines: filter.lines.len() as u64,
        binding,
    };
    write_parts(fs, path, &header, &[&filter.lines])
}

/// [`write`] for lines that lie in several pieces, as many in all as the header says.
pub(super) fn write_parts(fs: &dyn Fs, path: &Path, header: &Header, parts: &[&[Line]]) -> Result<u64> {
    let temporary = temporary_name(path);
    if fs.file_len(&temporary)?.is_some() {
        fs.remove(&temporary)?;
    }
    let file = fs.create(&temporary)?;
    let written = fill(file, header, parts).and_then(|()| fs.rename(&temporary, path));
    if written.is_err() {
        let _ = fs.remove(&temporary); // The disk may be full: nothing of the attempt stays, so far as it can be removed.
    }
    written.map(|()| header.file_bytes())
}

fn fill(mut file: Box<dyn AppendFile>, header: &Header, parts: &[&[Line]]) -> Result<()> {
    let page = header.encode();
    let mut checksums = Checksums::new(Seal::of(&page));
    file.append(&page)?;
    for piece in parts.iter().flat_map(|part| part.chunks(WRITE_LINES)) {
        checksums.add(piece);
        file.append(piece.as_flattened())?;
    }
    file.append(&checksums.finish())?;
    file.sync()
}

/// The name that a sidecar has until it is complete: its own and ".tmp".
fn temporary_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".tmp");
    name.into()
}

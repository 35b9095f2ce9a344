//! Files of stand-alone filters: any kind, read and written as a whole.

use super::unusable::Unusable;
use super::writer::{fill, finish};
use crate::error::{Error, Result};
use crate::filter::format::groups::{CHECKSUM_BYTES, GROUP_BYTES, Seal};
use crate::filter::format::parts::{Parts, filter_of, parts_of};
use crate::filter::format::{HEADER_BYTES, Header, small};
use crate::filter::{AnyFilter, Lines, SmallFilter};
use crate::fs::{AppendFile, Fs, READ_BYTES, ReadFile, RealFs, parent_of};
use crate::id::{FileId, TEMPORARY};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to do about a damaged file.
const REMEDY: &str = "; build the filter again from its keys";
/// How many temporary names to try.
const TEMPORARIES_MAX: usize = 1000;

/// Durably writes a filter to its own file. Replaces an existing file by a rename. Returns the size in bytes.
///
/// # Errors
/// [`Error::Io`]. An existing file is then unchanged.
pub fn write_filter(path: impl AsRef<Path>, filter: &AnyFilter) -> Result<u64> {
    let path = path.as_ref();
    let (temporary, file) = create_temporary(path)?;
    let bytes = match parts_of(filter) {
        Parts::Lines(header, parts) => {
            finish(&RealFs, path, &temporary, file, |file| fill(file, &header, &parts))?;
            header.file_bytes()
        }
        Parts::Small(bytes) => {
            finish(&RealFs, path, &temporary, file, |mut file| {
                file.append(&bytes).and_then(|()| file.sync())
            })?;
            bytes.len() as u64
        }
    };
    RealFs.sync_dir(parent_of(path))?;
    Ok(bytes)
}

/// Creates a file next to `path`. No lock protects its name, so a taken name is somebody else's.
fn create_temporary(path: &Path) -> Result<(PathBuf, Box<dyn AppendFile>)> {
    let mut number = 1;
    loop {
        let mut name = OsString::from(path);
        match number {
            1 => name.push(TEMPORARY),
            _ => name.push(format!(".{number}{TEMPORARY}")),
        }
        match RealFs.create(name.as_ref()) {
            Err(Error::Io { source, .. })
                if source.kind() == ErrorKind::AlreadyExists && number < TEMPORARIES_MAX =>
            {
                number += 1;
            }
            created => return Ok((name.into(), created?)),
        }
    }
}

/// A filter's file, opened.
pub(super) enum Opened {
    /// Read completely.
    Small(SmallFilter),
    /// Read up to its lines.
    Lines(LinesFile),
}

/// A file of a filter whose header page and length are valid.
pub(super) struct LinesFile {
    file: Arc<dyn ReadFile>,
    pub header: Header,
    pub seal: Seal,
}

/// Reads a filter that [`write_filter`] wrote into memory, and verifies every byte.
///
/// # Errors
/// [`Error::Corruption`] for a file that is damaged, truncated or not a filter; [`Error::UnsupportedVersion`]
/// or [`Error::UnknownCode`] for one of another version; [`Error::InvalidArgument`] for the filter of a
/// store's segment, which the store's next change can make wrong.
pub fn read_filter(path: impl AsRef<Path>) -> Result<AnyFilter> {
    let path = path.as_ref();
    match open(path)? {
        Opened::Small(filter) => Ok(AnyFilter::Small(filter)),
        Opened::Lines(file) => file.read(path),
    }
}

/// Opens the file of a filter and reads its header.
///
/// # Errors
/// The errors of [`read_filter`].
pub(super) fn open(path: &Path) -> Result<Opened> {
    let file = RealFs.open(path)?;
    let len = file.len()?;
    let mut page = vec![0; HEADER_BYTES.min(usize::try_from(len).unwrap_or(HEADER_BYTES))];
    file.read_exact_at(&mut page, 0)?;
    if small::is_small(&page) {
        let mut bytes = vec![0; small::MAX_BYTES.min(usize::try_from(len).unwrap_or(usize::MAX))];
        file.read_exact_at(&mut bytes, 0)?;
        return small::decode(&bytes).map(Opened::Small).map_err(|bad| damaged(path, bad.into()));
    }
    let header = Header::decode(&page).map_err(|bad| damaged(path, bad.into()))?;
    header.check_length(len).map_err(|bad| damaged(path, bad.into()))?;
    if let Some(binding) = header.binding {
        return Err(Error::InvalidArgument(format!(
            "{} belongs to segment {} of a store; query the store instead",
            path.display(),
            FileId(binding.segment)
        )));
    }
    Ok(Opened::Lines(LinesFile { file, header, seal: Seal::of(&page) }))
}

impl LinesFile {
    /// Reads the lines into memory, and verifies them.
    pub(super) fn read(&self, path: &Path) -> Result<AnyFilter> {
        let LinesFile { file, header, seal } = self;
        // Zeroed memory is taken when written: piece by piece, each once the last has matched its checksums.
        let mut lines = Lines::zeroed(usize::try_from(header.lines).unwrap_or(usize::MAX))?;
        let mut checksums = Vec::new();
        for (number, piece) in lines.as_flattened_mut().chunks_mut(READ_BYTES).enumerate() {
            file.read_exact_at(piece, (HEADER_BYTES + number * READ_BYTES) as u64)?;
            let first = number * (READ_BYTES / GROUP_BYTES);
            checksums.resize(piece.len().div_ceil(GROUP_BYTES) * CHECKSUM_BYTES, 0);
            file.read_exact_at(&mut checksums, header.checksums_at() + (first * CHECKSUM_BYTES) as u64)?;
            if let Some(group) = seal.first_bad_group(first, piece, &checksums) {
                return Err(damaged(path, Unusable::bad_group(group)));
            }
        }
        filter_of(header, lines).map_err(|bad| damaged(path, bad.into()))
    }
}

/// The error for the file of a stand-alone filter.
pub(super) fn damaged(path: &Path, unusable: Unusable) -> Error {
    match unusable {
        Unusable::Invalid { offset, what } => Error::corruption(path, offset, what + REMEDY),
        Unusable::OtherVersion { found, supported } => {
            Error::UnsupportedVersion { file: path.to_path_buf(), found, supported }
        }
        Unusable::UnknownCode { offset, what } => Error::unknown_code(path, offset, what),
        other => Error::corruption(path, 0, format!("{other}{REMEDY}")),
    }
}

//! How errors are made.

use super::{Error, IoOp};
use std::path::Path;
use std::sync::Arc;

impl Error {
    /// Wraps an operating-system error with the operation and its path.
    pub fn io(op: IoOp, path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Error::Io { path: path.as_ref().to_path_buf(), op, source: Arc::new(source) }
    }

    /// Whether the process or the system ran out of file descriptors (EMFILE, ENFILE). The shortage is
    /// temporary, and the failed operation changed nothing.
    pub fn is_out_of_descriptors(&self) -> bool {
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        matches!(self, Error::Io { source, .. } if matches!(source.raw_os_error(), Some(ENFILE | EMFILE)))
    }

    /// `key` is not greater than `previous`.
    pub(crate) fn key_out_of_order(key: &[u8], previous: &[u8]) -> Self {
        Error::KeyOutOfOrder { key: escaped(key), previous: escaped(previous) }
    }

    /// The range from `from` to `to`, which is smaller.
    pub(crate) fn invalid_range(from: &[u8], to: &[u8]) -> Self {
        Error::InvalidRange { from: escaped(from), to: escaped(to) }
    }

    /// The key does not have the expected value.
    pub(crate) fn conflict(key: &[u8]) -> Self {
        Error::Conflict { key: escaped(key) }
    }

    /// Different values are expected of the key.
    pub(crate) fn contradiction(key: &[u8]) -> Self {
        Error::Contradiction { key: escaped(key) }
    }

    /// A checksum or structural check of `file` that failed at `offset`.
    pub fn corruption(file: impl AsRef<Path>, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption { file: file.as_ref().to_path_buf(), offset, what: what.into() }
    }

    /// A code in `file`, at `offset`, that only a newer version knows. The caller has checked the checksum.
    pub(crate) fn unknown_code(file: impl AsRef<Path>, offset: u64, what: impl Into<String>) -> Self {
        Error::UnknownCode { file: file.as_ref().to_path_buf(), offset, what: what.into() }
    }
}

impl From<sidebloom_filter::Error> for Error {
    /// Errors of a stream use this name in place of a file; the engine's callers name the file themselves.
    fn from(error: sidebloom_filter::Error) -> Self {
        use sidebloom_filter::Error as Filter;
        const STREAM: &str = "the filter stream";
        match error {
            Filter::Full { capacity, fpr } => Error::FilterFull { capacity, fpr },
            Filter::Mismatch { what } => Error::FilterMismatch { what },
            Filter::OutOfMemory { bytes } => Error::OutOfMemory { bytes },
            Filter::TooManyKeys { keys, max } => Error::TooManyKeys { keys, max },
            Filter::TooLarge { bytes, max } => Error::FilterTooLarge { bytes, max },
            Filter::Damaged { offset, what } => Error::corruption(STREAM, offset, what),
            Filter::Unencodable { why } => Error::Unencodable { what: "a filter", why },
            Filter::UnsupportedVersion { found, supported } => {
                Error::UnsupportedVersion { file: STREAM.into(), found, supported }
            }
            Filter::UnknownCode { offset, what } => Error::unknown_code(STREAM, offset, what),
            Filter::Io { op, stream, source } => {
                let op = match op {
                    "read" => IoOp::Read,
                    "write" => IoOp::Write,
                    other => IoOp::Other(other),
                };
                Error::Io { path: stream.into(), op, source }
            }
            denied @ Filter::SelfCheck { .. } => Error::corruption("a new filter", 0, denied.to_string()),
            Filter::InvalidArgument(what) => Error::InvalidArgument(what),
            other => Error::Internal(other.to_string()),
        }
    }
}

fn escaped(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

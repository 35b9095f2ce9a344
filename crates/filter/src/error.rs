//! The error type of the crate.

use std::ops::RangeInclusive;
use std::sync::Arc;

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong with a filter.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The filter holds as many keys as its false-positive rate allows, so the new key was not added.
    #[error(
        "the filter is full: it holds the {capacity} keys that keep it at a false-positive rate of {fpr:?}; build a larger or a scalable one"
    )]
    Full {
        /// The number of keys that the filter was made for.
        capacity: u64,
        /// The false-positive rate that the filter was made for, 0 to 1.
        fpr: f64,
    },
    /// Filters of different shapes or hashes (including seed and secret key) cannot be combined.
    #[error("these filters cannot be combined: {what}; build both with the same size and hash")]
    Mismatch {
        /// The difference.
        what: String,
    },
    /// The memory for a filter could not be allocated.
    #[error("not enough memory for a filter of {bytes} bytes; use fewer bits per key or free memory")]
    OutOfMemory {
        /// The size of the filter in bytes.
        bytes: u64,
    },
    /// More keys than one filter can hold.
    #[error("{keys} keys are too many for one filter (at most {max}); split them among several filters")]
    TooManyKeys {
        /// The number of keys.
        keys: u64,
        /// The limit.
        max: u64,
    },
    /// A received filter is larger than the caller allows. Nothing was allocated for it.
    #[error("a filter of {bytes} bytes is too large (the limit is {max} bytes)")]
    TooLarge {
        /// The size of the filter in bytes.
        bytes: u64,
        /// The caller's limit in bytes.
        max: u64,
    },
    /// A new filter denies one of its own keys, which only faulty memory can cause. The filter was discarded.
    #[error(
        "the new filter denies its own key hash {hash:016x} and was discarded; check the machine's memory"
    )]
    SelfCheck {
        /// The hash that the filter denies.
        hash: u64,
    },
    /// A checksum or a structural check of a stored or sent filter failed.
    #[error("the filter is damaged at offset {offset}: {what}")]
    Damaged {
        /// The offset in bytes from the start of the file or stream.
        offset: u64,
        /// What was found.
        what: String,
    },
    /// The filter has a value that no reader of its format accepts, so it was not written.
    #[error("the filter cannot be written, because no reader would accept it: {why}")]
    Unencodable {
        /// What a reader would report.
        why: String,
    },
    /// The filter was written in another version of the format.
    #[error(
        "the filter has format version {found}, but this build reads {}; {}",
        show_versions(supported),
        if found > supported.end() {
            "it was written by a newer version; use a newer build"
        } else {
            "build the filter again from its keys"
        }
    )]
    UnsupportedVersion {
        /// The version in the header.
        found: u32,
        /// The versions that this build reads. It writes the last one.
        supported: RangeInclusive<u32>,
    },
    /// The filter has a code that this build does not know, and its checksum matches. A newer version wrote
    /// it; it is not damaged.
    #[error(
        "the filter has {what} at offset {offset}, which this version does not know: it was written by a newer version; use a newer build"
    )]
    UnknownCode {
        /// The offset of the code in bytes from the start of the file or stream.
        offset: u64,
        /// What the code stands for, and the code: "filter kind 9".
        what: String,
    },
    /// Reading or writing a stream failed.
    #[error("cannot {op} {stream}: {source}")]
    Io {
        /// A verb: "read" or "write".
        op: &'static str,
        /// The stream.
        stream: &'static str,
        /// The error of the stream.
        source: Arc<std::io::Error>,
    },
    /// An argument is out of range; the text gives the allowed values.
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
}

/// The versions of a format in words: "version 4", "versions 4 to 5".
pub fn show_versions(versions: &RangeInclusive<u32>) -> String {
    let (first, last) = (versions.start(), versions.end());
    if first == last { format!("version {last}") } else { format!("versions {first} to {last}") }
}

impl Error {
    /// Wraps an I/O error with the operation and the stream.
    pub(crate) fn io(op: &'static str, stream: &'static str, source: std::io::Error) -> Self {
        Error::Io { op, stream, source: Arc::new(source) }
    }

    /// A failed check at `offset`.
    pub fn damaged(offset: u64, what: impl Into<String>) -> Self {
        Error::Damaged { offset, what: what.into() }
    }

    /// A code at `offset` that only a newer version knows, under a checksum that matches.
    pub(crate) fn unknown_code(offset: u64, what: String) -> Self {
        Error::UnknownCode { offset, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i14_another_version_is_named_with_those_that_are_read() {
        let said = |found, supported| Error::UnsupportedVersion { found, supported }.to_string();
        let newer = "version 6, but this build reads versions 4 to 5; it was written by a newer version; use a newer build";
        let older = "version 3, but this build reads version 4; build the filter again from its keys";
        assert!(said(6, 4..=5).ends_with(newer) && said(3, 4..=4).ends_with(older));
    }
}

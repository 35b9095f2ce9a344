//! Why a sidecar cannot be trusted.

use crate::error::Error;
use crate::filter::format::HEADER_BYTES;
use crate::filter::format::groups::{GROUP_BYTES, GROUP_LINES};
use crate::filter::show_versions;
use std::io::ErrorKind;
use std::ops::RangeInclusive;

/// Why a sidecar is unusable, worded for a warning. Until it is rebuilt, the store gives the same answers,
/// only more slowly.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// The file does not exist.
    #[error("the file is missing")]
    Missing,
    /// The file cannot be opened or mapped.
    #[error("{0}")]
    Io(Error),
    /// The file is damaged or is not a sidecar.
    #[error("it is damaged at offset {offset}: {what}")]
    Invalid {
        /// Where, in bytes from the start of the file.
        offset: u64,
        /// What was found.
        what: String,
    },
    /// Pages of the mapped file could not be read; see [`catch_sigbus`](crate::fs::catch_sigbus).
    #[error(
        "its pages could not be read while it was mapped (SIGBUS): the file was truncated, or the disk failed"
    )]
    Faulted,
    /// A newer or an older build wrote it.
    #[error("it has format version {found}, but this build reads {}", show_versions(supported))]
    OtherVersion {
        /// The version in its header.
        found: u32,
        /// The versions that this build reads.
        supported: RangeInclusive<u32>,
    },
    /// It has a code that this build does not know.
    #[error(
        "it has {what} at offset {offset}, which this version does not know: it was written by a newer version of sidebloom"
    )]
    UnknownCode {
        /// Where, in bytes from the start of the file.
        offset: u64,
        /// What the code stands for, and the code.
        what: String,
    },
    /// It is a valid filter of another segment, or of none.
    #[error("it belongs to {found}, not to {expected}")]
    NotOfThisSegment {
        /// What its header says.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// Its key hash is not the store's, or has another seed or key.
    #[error("it was built with another key hash")]
    OtherHash,
}

impl Unusable {
    /// Whether a shortage of memory or file descriptors is the cause, which says nothing about the file.
    pub fn is_passing(&self) -> bool {
        match self {
            Unusable::Io(Error::Io { source, .. }) if source.kind() == ErrorKind::OutOfMemory => true,
            Unusable::Io(error) => error.is_out_of_descriptors(),
            _ => false,
        }
    }
}

impl From<crate::filter::Error> for Unusable {
    fn from(error: crate::filter::Error) -> Self {
        match error {
            crate::filter::Error::Damaged { offset, what } => Unusable::Invalid { offset, what },
            crate::filter::Error::UnsupportedVersion { found, supported } => {
                Unusable::OtherVersion { found, supported }
            }
            crate::filter::Error::UnknownCode { offset, what } => Unusable::UnknownCode { offset, what },
            other => Unusable::Io(other.into()),
        }
    }
}

impl From<Error> for Unusable {
    fn from(error: Error) -> Self {
        match error {
            Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => Unusable::Missing,
            other => Unusable::Io(other),
        }
    }
}

impl Unusable {
    /// A checksum mismatch in a group of lines.
    pub(super) fn bad_group(group: usize) -> Self {
        let (offset, first) = (HEADER_BYTES + group * GROUP_BYTES, group * GROUP_LINES);
        let what = format!("checksum mismatch in the group of lines that starts at line {first}");
        Unusable::Invalid { offset: offset as u64, what }
    }
}

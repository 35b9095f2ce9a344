//! Errors of stores and buckets.

use sidebloom::filter::show_versions;
use sidebloom::show::{self, escaped};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The local store failed.
    #[error(transparent)]
    Store(#[from] sidebloom::Error),
    /// The URL names no object store that this build knows.
    #[error("{} is not the URL of an object store: {}", escaped(url), escaped(what))]
    InvalidUrl {
        /// The URL.
        url: String,
        /// Why.
        what: String,
    },
    /// The bucket refuses the credentials, or they do not cover this object.
    #[error(
        "{}: the bucket refuses access; check the credentials in the environment: {}",
        escaped(object),
        escaped(what)
    )]
    AccessDenied {
        /// The object.
        object: String,
        /// The bucket's message.
        what: String,
    },
    /// The bucket cannot be reached, or failed after all retries.
    #[error("{}: cannot {op}: {}", escaped(object), escaped(what))]
    Bucket {
        /// A verb: "read", "write", "list", …
        op: &'static str,
        /// The object.
        object: String,
        /// The bucket's message.
        what: String,
    },
    /// There is no published store, or guard, at the URL.
    #[error("{} holds no published {}", escaped(url), escaped(what))]
    NotPublished {
        /// The URL.
        url: String,
        /// What was expected.
        what: String,
    },
    /// An object is not what its writer wrote.
    #[error("{} is damaged at offset {offset}: {}", escaped(object), escaped(what))]
    Damaged {
        /// The object.
        object: String,
        /// The offset in bytes.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// An object or a local file has the format of an older or newer version.
    #[error(
        "{} was written by {} sidebloom: it has format version {found}, but this build reads {}",
        escaped(object),
        if found > supported.end() { "a newer" } else { "an older" },
        show_versions(supported)
    )]
    UnsupportedVersion {
        /// The object.
        object: String,
        /// The version found.
        found: u32,
        /// The versions that this build reads. It writes the last one.
        supported: RangeInclusive<u32>,
    },
    /// Another writer has published the generation that this one was about to publish. This one can publish
    /// no more, and its store becomes read-only.
    #[error(
        "superseded: generation {generation} of {} was published by writer {}, not by this one, which publishes no more; a store takes no more \
         writes. Clone the published one, or open this one again and take over",
        escaped(url),
        escaped(writer)
    )]
    Superseded {
        /// The URL.
        url: String,
        /// The generation.
        generation: u64,
        /// The other writer.
        writer: String,
    },
    /// The URL holds another store or guard, or generations that this one does not descend from.
    #[error("{} holds {}", escaped(url), escaped(what))]
    Foreign {
        /// The URL.
        url: String,
        /// What it holds, and what to do.
        what: String,
    },
    /// The bucket shows an older state than before: somebody restored it, or removed newer objects.
    #[error(
        "{} went back from generation {seen} to {found}; what was opened before stays in use. If this was intended, remove the cache directory {}",
        escaped(url),
        show::path(cache)
    )]
    WentBack {
        /// The URL.
        url: String,
        /// The newest generation seen before.
        seen: u64,
        /// The newest one now.
        found: u64,
        /// The directory that remembers it.
        cache: PathBuf,
    },
    /// Generations follow each other endlessly.
    #[error("{} has endless generations from {from} on: not a published store", escaped(url))]
    Endless {
        /// The URL.
        url: String,
        /// The number at which the search began.
        from: u64,
    },
    /// The object belonged to a generation that was collected. Open or refresh the reader.
    #[error("{} was removed with its generation: refresh the reader", escaped(object))]
    Expired {
        /// The object.
        object: String,
    },
    /// The clocks of this machine and the bucket differ by more than the tolerance.
    #[error(
        "the clocks of this machine and of {} differ by {skew:?}, more than {tolerance:?}: set the clock",
        escaped(url)
    )]
    ClockSkew {
        /// The bucket.
        url: String,
        /// The difference.
        skew: Duration,
        /// The tolerance.
        tolerance: Duration,
    },
    /// A local file of this crate cannot be used.
    #[error("cannot {op} {}: {source}", show::path(path))]
    File {
        /// A verb.
        op: &'static str,
        /// The file.
        path: PathBuf,
        /// The error from the operating system.
        source: std::io::Error,
    },
}

impl Error {
    /// This crate's error behind a failed read of a store, if any.
    ///
    /// A store read through a [`Reader`](crate::Reader) returns `sidebloom::Error`. This tells, for example,
    /// whether the cause is [`Error::Expired`].
    pub fn behind(error: &sidebloom::Error) -> Option<&Error> {
        match error {
            sidebloom::Error::Io { source, .. } => source.get_ref()?.downcast_ref(),
            _ => None,
        }
    }

    pub(crate) fn file(op: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { op, path, source }
    }

    pub(crate) fn damaged(object: impl Into<String>, offset: u64, what: impl Into<String>) -> Error {
        Error::Damaged { object: object.into(), offset, what: what.into() }
    }
}

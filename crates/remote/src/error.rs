//! What can go wrong between a store and its bucket.

use sidebloom::show::{self, escaped};
use std::path::PathBuf;
use std::time::Duration;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store on this machine failed.
    #[error(transparent)]
    Store(#[from] sidebloom::Error),
    /// The URL is not that of an object store that this build knows.
    #[error("{} is not the URL of an object store: {}", escaped(url), escaped(what))]
    InvalidUrl {
        /// The URL.
        url: String,
        /// Why.
        what: String,
    },
    /// The bucket refuses the credentials, or they do not suffice for this object.
    #[error(
        "{}: the bucket refuses access; check the credentials in the environment: {}",
        escaped(object),
        escaped(what)
    )]
    AccessDenied {
        /// The object.
        object: String,
        /// What the bucket said.
        what: String,
    },
    /// The bucket cannot be reached, or failed after all retries.
    #[error("{}: cannot {op}: {}", escaped(object), escaped(what))]
    Bucket {
        /// A verb: "read", "write", "list", …
        op: &'static str,
        /// The object.
        object: String,
        /// What the bucket said.
        what: String,
    },
    /// There is no published store, or guard, at the URL.
    #[error("{} holds no published {}", escaped(url), escaped(what))]
    NotPublished {
        /// The URL.
        url: String,
        /// What was looked for.
        what: String,
    },
    /// An object is not what its writer has written.
    #[error("{} is damaged at offset {offset}: {}", escaped(object), escaped(what))]
    Damaged {
        /// The object.
        object: String,
        /// The offset in bytes.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// An object or a local file has the format of an older or a newer version.
    #[error(
        "{} was written by {} sidebloom: it has format version {found}, but this build reads version {supported}",
        escaped(object),
        if found > supported { "a newer" } else { "an older" }
    )]
    UnsupportedVersion {
        /// The object.
        object: String,
        /// The version found.
        found: u32,
        /// The version that this build reads.
        supported: u32,
    },
    /// Another writer has published a generation that this one meant to publish. It publishes no more, and
    /// its store takes no more writes.
    #[error(
        "superseded: generation {generation} of {} was published by writer {}, not by this one, which publishes no more; a store takes no more \
         writes. Clone the published one, or open this one again and take over",
        escaped(url),
        escaped(writer)
    )]
    Superseded {
        /// Where.
        url: String,
        /// The generation.
        generation: u64,
        /// The other writer.
        writer: String,
    },
    /// The URL holds another store or guard, or generations that this one does not descend from.
    #[error("{} holds {}", escaped(url), escaped(what))]
    Foreign {
        /// Where.
        url: String,
        /// What it holds, and what to do.
        what: String,
    },
    /// The bucket shows an older state than it did before: somebody has restored it, or removed what was
    /// newer.
    #[error(
        "{} went back from generation {seen} to {found}; what was opened before stays in use. If it was meant to, remove the cache directory {}",
        escaped(url),
        show::path(cache)
    )]
    WentBack {
        /// Where.
        url: String,
        /// The newest generation that was seen before.
        seen: u64,
        /// The newest one now.
        found: u64,
        /// The directory that remembers it.
        cache: PathBuf,
    },
    /// One generation follows the other without an end.
    #[error(
        "{} has one generation after the other from {from} on, without an end: it is no published store",
        escaped(url)
    )]
    Endless {
        /// Where.
        url: String,
        /// The number that the search began with.
        from: u64,
    },
    /// The object belonged to a generation that was collected. Open or refresh the reader.
    #[error("{} was removed with its generation: refresh the reader", escaped(object))]
    Expired {
        /// The object.
        object: String,
    },
    /// The clocks of this machine and of the bucket differ by more than the tolerance.
    #[error(
        "the clocks of this machine and of {} differ by {skew:?}, more than {tolerance:?}: set the clock",
        escaped(url)
    )]
    ClockSkew {
        /// The bucket.
        url: String,
        /// The difference.
        skew: Duration,
        /// What is tolerated.
        tolerance: Duration,
    },
    /// A local file of this crate cannot be used.
    #[error("cannot {op} {}: {source}", show::path(path))]
    File {
        /// A verb.
        op: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
}

impl Error {
    /// The error of this crate that made a read of a store fail, if it was one.
    ///
    /// A store that is read through a [`Reader`](crate::Reader) returns `sidebloom::Error`; whether that
    /// means [`Error::Expired`], say, is told by this.
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

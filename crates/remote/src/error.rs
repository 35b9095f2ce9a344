//! What can go wrong between a store and its bucket.

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
    #[error("{url} is not the URL of an object store: {what}")]
    InvalidUrl {
        /// The URL.
        url: String,
        /// Why.
        what: String,
    },
    /// The bucket refuses the credentials, or they do not suffice for this object.
    #[error("{object}: the bucket refuses access; check the credentials in the environment: {what}")]
    AccessDenied {
        /// The object.
        object: String,
        /// What the bucket said.
        what: String,
    },
    /// The bucket cannot be reached, or failed after all retries.
    #[error("{object}: cannot {op}: {what}")]
    Bucket {
        /// A verb: "read", "write", "list", …
        op: &'static str,
        /// The object.
        object: String,
        /// What the bucket said.
        what: String,
    },
    /// There is no published store at the URL.
    #[error("{url} holds no published store: {what}")]
    NotPublished {
        /// The URL.
        url: String,
        /// Why.
        what: String,
    },
    /// An object is not what its writer has written.
    #[error("{object} is damaged at offset {offset}: {what}")]
    Damaged {
        /// The object.
        object: String,
        /// The offset in bytes.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The generation has a later format.
    #[error("{object} has format version {found}, but this build reads version {supported}")]
    UnsupportedVersion {
        /// The object.
        object: String,
        /// The version found.
        found: u32,
        /// The version that this build reads.
        supported: u32,
    },
    /// Another writer has published a generation that this one meant to publish. Its store takes no more writes.
    #[error(
        "fenced: generation {generation} of {url} was published by writer {writer}, not by this one; this store takes no more writes. Clone \
         the published one, or open this store again and take over"
    )]
    Fenced {
        /// Where.
        url: String,
        /// The generation.
        generation: u64,
        /// The other writer.
        writer: String,
    },
    /// The URL holds another store, or generations that this store does not descend from.
    #[error("{url} holds {what}")]
    Foreign {
        /// Where.
        url: String,
        /// What it holds, and what to do.
        what: String,
    },
    /// The object belonged to a generation that was collected. Open or refresh the reader.
    #[error("{object} was removed with its generation: refresh the reader")]
    Expired {
        /// The object.
        object: String,
    },
    /// The clocks of this machine and of the bucket differ by more than the tolerance.
    #[error(
        "the clocks of this machine and of {url} differ by {skew:?}, more than {tolerance:?}: set the clock"
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
    #[error("cannot {op} {}: {source}", path.display())]
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
    /// A store that is read through a [`Reader`](crate::Reader) returns `sidebloom::Error`; whether that means [`Error::Expired`], say, is told
    /// by this.
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

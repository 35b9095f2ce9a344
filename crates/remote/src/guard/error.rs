//! Why publishing or reading failed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The errors of this module.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL names no object store that this build knows.
    #[error("{url} cannot be used as an object store: {what}")]
    InvalidUrl {
        /// The URL that was given.
        url: String,
        /// What is wrong with it.
        what: String,
    },
    /// The object store could not be reached, or refused a request.
    #[error("object store, {object}: {source}")]
    Store {
        /// The object.
        object: String,
        /// What the store said, after retries.
        source: Arc<object_store::Error>,
    },
    /// An object is not what was published.
    #[error("{object} is damaged at offset {offset}: {what}")]
    Damaged {
        /// The object.
        object: String,
        /// Where, in bytes.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// An object was written by a later version of this crate.
    #[error("{object} has format version {found}, and this build reads version {supported}")]
    UnsupportedVersion {
        /// The object.
        object: String,
        /// Its version.
        found: u32,
        /// The version that this build reads.
        supported: u32,
    },
    /// There is no state in the store.
    #[error("no guard has been published at {place}")]
    NothingPublished {
        /// The store.
        place: String,
    },
    /// The store has the states of another guard.
    #[error("{object} is of another guard: publish each guard under a URL of its own")]
    Foreign {
        /// The object.
        object: String,
    },
    /// Another publisher has published the next state.
    #[error(
        "another publisher ({writer:016x}) has published state {number}: only one at a time can; this one has stopped"
    )]
    Fenced {
        /// The state.
        number: u64,
        /// The random number of the other publisher.
        writer: u64,
    },
    /// The newest state was not published from this directory: another machine has published, or this is a restored backup.
    #[error(
        "state {number} was not published from this directory: if this guard is right, because it has been refreshed, take over"
    )]
    Diverged {
        /// The state.
        number: u64,
    },
    /// An object that a state names is gone: the state is too old.
    #[error("{object} is gone: the state that names it has expired")]
    Expired {
        /// The object.
        object: String,
    },
    /// The clocks of this machine and of the store differ.
    #[error(
        "the clock of this machine and that of the object store differ by {seconds:.0} s: set them right"
    )]
    ClockSkew {
        /// By how much, in seconds. Positive: this machine is ahead.
        seconds: f64,
    },
    /// A local file.
    #[error("cannot {op} {}: {source}", path.display())]
    File {
        /// A verb: "read", "create", …
        op: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: Arc<std::io::Error>,
    },
    /// The guard.
    #[error(transparent)]
    Guard(#[from] sidebloom::Error),
    /// A task or a thread of this crate ended early.
    #[error("a background task has ended early")]
    Interrupted,
}

/// The result of this module's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(super) fn damaged(object: &str, offset: usize, what: impl Into<String>) -> Self {
        Error::Damaged { object: object.to_owned(), offset: offset as u64, what: what.into() }
    }

    pub(super) fn file(op: &'static str, path: &Path, source: std::io::Error) -> Self {
        Error::File { op, path: path.to_path_buf(), source: Arc::new(source) }
    }
}

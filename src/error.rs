//! The one error type of the crate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What every fallible operation of this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong, by name. Cheap to clone, so that one failed group commit can tell every waiting writer.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused `op` on `path`.
    #[error("cannot {op} {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// A verb: "open", "read", "write", "sync", …
        op: &'static str,
        /// What the operating system said.
        source: Arc<std::io::Error>,
    },
    /// Another process has the store open.
    #[error("{} is locked by another process: close it there first, or open read-only beside read-only", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// A checksum or a structural check failed; the value was not returned.
    #[error("{} is damaged at offset {offset}: {what}", file.display())]
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// Where, in bytes from the start of the file.
        offset: u64,
        /// What was found and, where it helps, what to do.
        what: String,
    },
    /// The file was written by another version of this crate.
    #[error(
        "{} has format version {found}, this build reads version {supported}: {}",
        file.display(), if found > supported { "use a newer sidebloom" } else { "use the older sidebloom that wrote it, or build it anew" }
    )]
    UnsupportedVersion {
        /// The file.
        file: PathBuf,
        /// The version in its header.
        found: u32,
        /// The version that this build understands.
        supported: u32,
    },
    /// The path exists but is not a store, or no store is there and creating one was not allowed.
    #[error("{} is not a sidebloom store: {what}", path.display())]
    NotAStore {
        /// The path that was given.
        path: PathBuf,
        /// What was found instead.
        what: String,
    },
    /// The path is not a guard, or not one that fits what was asked for.
    #[error("{} cannot be used as a guard: {what}", path.display())]
    NotAGuard {
        /// The path that was given.
        path: PathBuf,
        /// What was found instead, and what to do.
        what: String,
    },
    /// The database behind a guard refused something or went away. The guard is as it was.
    #[error("the database {name}: {what}")]
    Database {
        /// Which database: a path or an address.
        name: String,
        /// What it said, or what is wrong with what it sent.
        what: String,
    },
    /// A write to a store that was opened read-only.
    #[error("the store is open read-only")]
    ReadOnly,
    /// An earlier write or sync failed, or a thread of the store panicked. Nothing is retried (a failed fsync may have dropped the dirty
    /// pages, so a second one that succeeds would prove nothing): the store serves reads only, until it is opened again and recovers
    /// what reached the disk. A full disk is no such failure: writes give its [`Error::Io`] and go on by themselves when there is space.
    #[error("the store is read-only after a failed write: {cause}; fix the cause and reopen")]
    Poisoned {
        /// The first failure, in words.
        cause: Arc<str>,
    },
    /// The last handle of the store was dropped while this was waiting for the background.
    #[error("the store is being closed")]
    Closing,
    /// A key over [`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES).
    #[error("a key of {len} bytes is too large (at most {max} bytes)")]
    KeyTooLarge {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// A value over [`MAX_VALUE_BYTES`](crate::MAX_VALUE_BYTES).
    #[error("a value of {len} bytes is too large (at most {max} bytes)")]
    ValueTooLarge {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// A filter holds as many keys as its false-positive rate allows, and one more was to be added.
    #[error(
        "the filter is full: it holds the {capacity} keys that keep it at a false-positive rate of {fpr}; build a larger or a scalable one"
    )]
    FilterFull {
        /// How many keys it was made for.
        capacity: u64,
        /// The false-positive rate that it was made for, 0 to 1.
        fpr: f64,
    },
    /// Filters of unequal shape or hash (its seed or secret key included) cannot be combined.
    #[error("these filters cannot be combined: {what}; build both with the same size and hash")]
    FilterMismatch {
        /// What differs.
        what: String,
    },
    /// An argument or option that makes no sense; the text says which and what is allowed.
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
}

impl Error {
    /// Wraps an operating-system error with what was attempted and on which path.
    pub fn io(op: &'static str, path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Error::Io { path: path.as_ref().to_path_buf(), op, source: Arc::new(source) }
    }

    /// Whether the process or the system had no file descriptor left (EMFILE, ENFILE). It passes, and what failed has changed nothing.
    pub fn is_out_of_descriptors(&self) -> bool {
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        matches!(self, Error::Io { source, .. } if matches!(source.raw_os_error(), Some(ENFILE | EMFILE)))
    }

    /// A failed check of `file` at `offset`.
    pub fn corruption(file: impl AsRef<Path>, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption { file: file.as_ref().to_path_buf(), offset, what: what.into() }
    }
}

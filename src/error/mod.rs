//! The error type of the crate.

mod io_op;
mod lock_names;
mod make;

pub use io_op::IoOp;
pub(crate) use lock_names::{REPOSITORY_LOCK, REPOSITORY_READERS};

use crate::filter::show_versions;
use crate::show;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong, by name. Cheap to clone: one failed group commit is reported to every
/// waiting writer.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused `op` on `path`.
    #[error("cannot {op} {}: {source}", show::path(path))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was refused.
        op: IoOp,
        /// The operating system's error.
        source: Arc<std::io::Error>,
    },
    /// The store is already open, in this or another process; or a backup repository is in use in a way that
    /// excludes this one.
    #[error("{} is locked: {}", show::path(path), lock_names::who_locks(path))]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The lock file of an open store or guard was removed or replaced, or the whole directory was emptied or
    /// removed. Another process may have the store by now, so nothing more is written or removed, and the
    /// store is [`Poisoned`](Self::Poisoned).
    #[error(
        "{} was removed or replaced while the store was open, so another process may be writing the store; nothing more is written here: find out what removed it, let one process open the store, and never remove that file", path.display()
    )]
    LockLost {
        /// The lock file.
        path: PathBuf,
    },
    /// A checksum or a structural check failed; the value was not returned.
    #[error("{} is damaged at offset {offset}: {what}", show::path(file))]
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// Offset of the damage, in bytes from the start of the file.
        offset: u64,
        /// What was found and, where it helps, what to do.
        what: String,
    },
    /// The file was written by another version of this crate, in a format that this one does not read.
    /// Nothing is damaged; the file is neither used nor changed.
    #[error(
        "{} has format version {found}, but this build reads {}; {}",
        show::path(file),
        show_versions(supported),
        if found > supported.end() {
            "it was written by a newer version of sidebloom; use that version"
        } else {
            "an older sidebloom that reads it rewrites it (docs/upgrading.md), or rebuild it"
        }
    )]
    UnsupportedVersion {
        /// The file.
        file: PathBuf,
        /// The version in its header.
        found: u32,
        /// The versions that this build reads. It writes the last one.
        supported: RangeInclusive<u32>,
    },
    /// A store of an earlier format version has keys that start with 0xff, which this version would take for
    /// keys of other keyspaces. Nothing was changed.
    #[error(
        "{} has format version {found}, and the store has keys that start with 0xff, which are stored in another way since then; write its rows out with the sidebloom that wrote them (`sidebloom scan`), and load them into a new store",
        show::path(file)
    )]
    AmbiguousKeys {
        /// The manifest.
        file: PathBuf,
        /// The version in its header.
        found: u32,
    },
    /// The file has a code that this build does not know, and its checksum matches. A newer version of this
    /// crate wrote it; nothing is damaged.
    #[error(
        "{} has {what} at offset {offset}, which this version does not know: it was written by a newer version of sidebloom; use that version",
        show::path(file)
    )]
    UnknownCode {
        /// The file.
        file: PathBuf,
        /// Offset of the code, or of the block or record that has it, in bytes from the start of the file.
        offset: u64,
        /// What the code stands for, and the code: "codec 9".
        what: String,
    },
    /// The path exists but is not a store, or no store exists and creating one was not allowed.
    #[error("{} is not a sidebloom store: {what}", show::path(path))]
    NotAStore {
        /// The path given.
        path: PathBuf,
        /// What was found instead.
        what: String,
    },
    /// The path is not a guard, or the guard does not match the request.
    #[error("{} cannot be used as a guard: {what}", show::path(path))]
    NotAGuard {
        /// The path given.
        path: PathBuf,
        /// What was found instead, and what to do.
        what: String,
    },
    /// The database behind a guard reported an error or became unreachable. The guard is unchanged.
    #[error("database {}: {}", show::escaped(name), show::message(what))]
    Database {
        /// The database: a path or an address.
        name: String,
        /// Its error message, or what is wrong with the data it sent.
        what: String,
    },
    /// The place is no backup repository, or cannot become or be the one of this store or guard.
    #[error("{} cannot be used as a backup repository: {what}", show::path(path))]
    NotARepository {
        /// The directory, or the URL.
        path: PathBuf,
        /// What was found instead, and what to do.
        what: String,
    },
    /// A repository has no backup with this number.
    #[error("{} has no backup {number}; list its backups", show::path(path))]
    NoSuchBackup {
        /// The repository.
        path: PathBuf,
        /// The number.
        number: u64,
    },
    /// The target of a copy already exists.
    #[error("{} already exists; choose a path that does not", show::path(path))]
    AlreadyExists {
        /// The target.
        path: PathBuf,
    },
    /// A write to a store that was opened read-only.
    #[error("the store is open read-only")]
    ReadOnly,
    /// An earlier write or sync failed, or a thread of the store panicked. The store only serves reads until
    /// it is reopened and recovers what reached the disk. Nothing is retried: a failed fsync may have dropped
    /// the dirty pages, so the success of a second one would prove nothing. A full disk does not poison the
    /// store: writes return [`Error::Io`] until there is space again.
    #[error("the store is read-only after a failed write: {cause}; fix the cause and reopen")]
    Poisoned {
        /// The text of the first failure.
        cause: Arc<str>,
    },
    /// The store, or the guard, was opened by a process that this one was forked from, and still belongs to
    /// it. Reads may be served here as of the fork; nothing is written, waited for or removed. Open it again
    /// in this process once the other has closed it and this copy is dropped; or read-only, or as a follower.
    #[error(
        "the store was opened before this process was forked, and belongs to the parent process; drop it here, and reopen it once the parent has closed it"
    )]
    Forked,
    /// The last handle of the store was dropped, before a transaction's commit or while this call waited for
    /// background work.
    #[error("the store is closing; reopen it to continue")]
    Closing,
    /// A key larger than [`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES).
    #[error("a key of {len} bytes is too large (at most {max} bytes)")]
    KeyTooLarge {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// A value larger than [`MAX_VALUE_BYTES`](crate::MAX_VALUE_BYTES).
    #[error("a value of {len} bytes is too large (at most {max} bytes)")]
    ValueTooLarge {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The next operation would have a sequence number that no file may hold. Nothing was written.
    #[error(
        "sequence number {seq} is above the largest one, {max}: close the store and run `sidebloom repair`, which renumbers its rows"
    )]
    NumbersExhausted {
        /// The number.
        seq: u64,
        /// The largest one.
        max: u64,
    },
    /// A value that no reader of the file would accept, so it was not written.
    #[error("{what} cannot be written, because no reader would accept it: {why}")]
    Unencodable {
        /// The part of a file.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A range whose lower bound is greater than its upper bound.
    #[error("the range from {from} to {to} runs backwards; swap its bounds")]
    InvalidRange {
        /// The lower bound, escaped.
        from: String,
        /// The upper bound, escaped.
        to: String,
    },
    /// An empty prefix to delete. Every key starts with it; `delete_range(..)` deletes every key.
    #[error("an empty prefix would delete every key; use delete_range(..) if that is meant")]
    EmptyPrefix,
    /// A key does not have the value that a batch expects, or has changed since a transaction read it.
    /// Nothing was written.
    #[error(
        "nothing was written, because key \"{key}\" has changed or differs from what was expected; read it again and retry"
    )]
    Conflict {
        /// The key, escaped. In a range that was read, the first one that differs.
        key: String,
    },
    /// A transaction takes more memory than
    /// [`Options::transaction_bytes`](crate::Options::transaction_bytes).
    #[error(
        "a transaction of {bytes} bytes is too large (at most {max} bytes); split it, or raise transaction_bytes"
    )]
    TransactionTooLarge {
        /// The memory that it would take, in bytes.
        bytes: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// The savepoint belongs to another transaction, or was set after one that was rolled back to.
    #[error("this transaction does not have that savepoint: it is of another one, or was rolled back")]
    UnknownSavepoint,
    /// A batch expects different values of one key, so it can never be written.
    #[error("the batch expects two different values of key \"{key}\"; expect one")]
    Contradiction {
        /// The key, escaped.
        key: String,
    },
    /// No keyspace has this name.
    #[error("the store has no keyspace \"{}\"; create it, or check its name", show::escaped(name))]
    UnknownKeyspace {
        /// The name.
        name: String,
    },
    /// A keyspace of this name exists.
    #[error("the store already has a keyspace \"{}\"; open it, or choose another name", show::escaped(name))]
    KeyspaceExists {
        /// The name.
        name: String,
    },
    /// No keyspace can have this name.
    #[error("\"{}\" cannot be the name of a keyspace: {why}", show::escaped(name))]
    InvalidKeyspaceName {
        /// The name, or the start of it.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The keyspace of this handle was dropped. One that was created later with its name has other handles.
    #[error(
        "keyspace \"{}\" was dropped, and its handle does nothing any more; open or create another one",
        show::escaped(name)
    )]
    KeyspaceDropped {
        /// Its name.
        name: String,
    },
    /// The keyspace belongs to another store, or to an earlier opening of this one.
    #[error("keyspace \"{}\" belongs to another open store; use a handle from this one", show::escaped(name))]
    ForeignKeyspace {
        /// Its name.
        name: String,
    },
    /// A batch larger than 1 GiB as encoded, or with more than 32 MiB of keys in range deletions.
    #[error("a batch of {len} bytes is too large (at most {max} bytes); split it into smaller batches")]
    BatchTooLarge {
        /// Its encoded length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// A segment has more data blocks than its index can list, or more range tombstones than a block holds.
    #[error(
        "a top index or range tombstones of {bytes} bytes are too large (at most {max} bytes); lower segment_bytes or raise block_bytes"
    )]
    SegmentTooLarge {
        /// The size of its top index in bytes.
        bytes: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// The store has more segments than its manifest can list.
    #[error(
        "a manifest edit of {bytes} bytes is too large (at most {max} bytes); raise segment_bytes so that the store has fewer segments"
    )]
    ManifestTooLarge {
        /// The size of the edit in bytes.
        bytes: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// A sorted input has a key that is not greater than the one before.
    #[error(
        "key \"{key}\" follows key \"{previous}\", but keys must increase; sort the rows and drop duplicates"
    )]
    KeyOutOfOrder {
        /// The key, escaped.
        key: String,
        /// The key before it, escaped.
        previous: String,
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
    /// A filter is larger than the caller's limit or than any filter may be.
    #[error("a filter of {bytes} bytes is too large (the limit is {max} bytes)")]
    FilterTooLarge {
        /// The size of the filter in bytes.
        bytes: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// A filter already holds as many keys as its false-positive rate allows.
    #[error(
        "the filter is full: it holds the {capacity} keys that keep its false-positive rate at {fpr}; build a larger or a scalable one"
    )]
    FilterFull {
        /// The number of keys it was built for.
        capacity: u64,
        /// The false-positive rate it was built for, 0 to 1.
        fpr: f64,
    },
    /// Filters of different shape or hash (including its seed or secret key) cannot be combined.
    #[error("these filters cannot be combined: {what}; build both with the same size and hash")]
    FilterMismatch {
        /// What differs.
        what: String,
    },
    /// The operation needs an optional feature that this build of the crate lacks.
    #[error("{what} needs the feature `{feature}`; rebuild sidebloom with it")]
    FeatureMissing {
        /// What was asked for, or the file that needs the feature.
        what: String,
        /// The cargo feature.
        feature: &'static str,
    },
    /// An argument or option out of range; the text says which one and what is allowed.
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
    /// An internal check failed: a bug in this crate.
    #[error("internal error: {0}; please report it")]
    Internal(String),
}

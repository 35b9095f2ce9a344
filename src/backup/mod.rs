//! Backups of stores and guards, in a directory or an object store.
//!
//! A [`Repository`] holds any number of backups of one store, or of one guard. Each backup is whole by
//! itself, and files that several have are kept once. So the next backup of a store of 10 GB that got 1 % of
//! new rows reads and writes about 1 %, until a compaction merges them into older segments: what it has
//! rewritten is copied again.
//!
//! - [`Db::backup`](crate::Db::backup) works in the process that writes the store, which then flushes, and
//!   beside it, in a store that [follows](crate::Options::follow) it: then what is only in the logs goes into
//!   a log of the backup. It has everything that was written before the call, and perhaps more: a prefix of
//!   the writes, batches as a whole. Keyspaces, rows that expire and range tombstones are part of it.
//! - [`Guard::backup`](crate::guard::Guard::backup) works in the process that has the guard open, and
//!   [`Repository::back_up_guard`] beside it.
//! - Segments are compared with their digests while they are copied. A damaged one fails the backup, with an
//!   error that names file and offset. So does a segment in quarantine: whoever relies on backups has to know
//!   that the store needs a repair, before older backups are removed.
//! - [`Repository::restore`] makes a store or a guard in a new directory, [`Repository::verify`] reads
//!   everything, [`Repository::keep`] removes old backups.
//!
//! `format.rs` has the files of a repository, and `create.rs` the steps of a backup. **The backups of a guard
//! contain the secret key of its hashes.**

mod contents;
mod create;
mod directory;
mod format;
#[cfg(test)]
mod format_tests;
mod inside;
mod keep;
mod names;
mod owner;
mod progress;
mod repository;
mod restore;
mod sources;
mod storage;
mod verify;

pub use format::Sha256;
pub use keep::Removed;
pub use owner::Kind;
pub use repository::{Listing, Repository};
pub use storage::{Contents, FILES, Hold, Listed, Purpose, Storage};
pub use verify::Verified;

use format::Head;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A backup in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// Its number, from 1. A later backup has a greater one.
    pub number: u64,
    /// When it began, by the clock of the machine that made it.
    pub time: SystemTime,
    /// What was backed up.
    pub kind: Kind,
    /// The length of all of its files, in bytes.
    pub bytes: u64,
    /// The bytes of those files that it added to the repository.
    pub new_bytes: u64,
    /// The number of its files.
    pub files: u64,
    /// Entries in segments and in the log. Rows that were overwritten or deleted count too, until a
    /// compaction drops them.
    pub entries: u64,
}

impl Backup {
    fn of(head: &Head) -> Self {
        Backup {
            number: head.number,
            time: UNIX_EPOCH.checked_add(Duration::from_millis(head.time_ms)).unwrap_or(UNIX_EPOCH),
            kind: head.owner.kind,
            bytes: head.bytes,
            new_bytes: head.new_bytes,
            files: head.files,
            entries: head.entries,
        }
    }
}

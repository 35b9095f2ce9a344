//! Removing old backups:
//!
//! 1. Read the backups that stay. If one cannot be read, nobody knows what it needs, and nothing is removed.
//! 2. Remove the older ones, oldest first, and make that durable.
//! 3. Read again which backups there are: in an object store, one may be new. Remove the files that none of
//!    them lists.
//!
//! A crash leaves files that no backup lists; the next removal removes them.

use super::format::Record;
use super::names::{FILES, backup_name, hex, is_file_name};
use super::repository::Repository;
use super::storage::Purpose;
use crate::error::{Error, Result};
use std::collections::HashSet;
use std::time::Duration;

/// Files that no backup lists stay for this long in an object store: a backup may be about to list them.
const UNLISTED_AGE_MIN: Duration = Duration::from_secs(24 * 3600);

/// What [`Repository::keep`] removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// Backups.
    pub backups: u64,
    /// Files that no other backup needs.
    pub files: u64,
    /// The bytes of these files.
    pub bytes: u64,
}

impl Repository {
    /// Removes all but the newest `count` backups, and the files that no backup needs. In an object store,
    /// such files stay until they are a day old, because a backup that is being made may need them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for 0; [`Error::NotARepository`]; [`Error::Locked`] while a backup is made,
    /// restored or verified; [`Error::Corruption`] if a backup that would stay is damaged, before anything is
    /// removed; [`Error::Io`].
    pub fn keep(&self, count: u64) -> Result<Removed> {
        if count == 0 {
            return Err(Error::InvalidArgument("at least one backup must be kept".into()));
        }
        self.check_exists()?;
        let hold = self.storage().lock(Purpose::Remove)?;
        let numbers = self.numbers()?;
        let old = numbers.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        let (old, kept) = numbers.split_at(old);
        for number in kept {
            self.record(*number).map_err(|error| match error {
                Error::Corruption { file, offset, what } => {
                    let what = format!(
                        "{what}; nothing was removed: if you can do without this backup, remove the file"
                    );
                    Error::Corruption { file, offset, what }
                }
                error => error,
            })?;
        }
        for number in old {
            // One of another store must have come here by mistake.
            if let Err(error @ Error::NotARepository { .. }) = self.head(*number) {
                return Err(error);
            }
        }
        let mut removed = Removed::default();
        for number in old {
            hold.confirm()?;
            self.storage().remove(&backup_name(*number))?;
            removed.backups += 1;
        }
        self.storage().sync()?;
        let mut needed = HashSet::new();
        for number in self.numbers()? {
            match self.record(number) {
                Ok(Record { files, .. }) => needed.extend(files.iter().map(|file| hex(&file.sha256))),
                Err(Error::NoSuchBackup { .. }) => {} // It was withdrawn.
                Err(error) => return Err(error),
            }
        }
        for file in self.storage().list(FILES)? {
            if is_file_name(&file.name) && !needed.contains(&file.name) && file.age >= UNLISTED_AGE_MIN {
                hold.confirm()?;
                self.storage().remove(&format!("{FILES}/{}", file.name))?;
                removed.files += 1;
                removed.bytes += file.bytes;
            }
        }
        self.storage().sync()?;
        Ok(removed)
    }
}

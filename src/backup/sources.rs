//! What can be backed up: open stores, open guards, and guards that another process has open.

use super::Backup;
use super::create::Source;
use super::owner::{Kind, Owner};
use super::repository::Repository;
use crate::Db;
use crate::engine::copies::file_set::FileSet;
use crate::error::Result;
use crate::guard::{Guard, GuardFiles, GuardFollower, GuardOptions};
use crate::progress::Progress;
use std::path::Path;

/// How often a guard's backup starts over because a refresh has replaced its generation.
const ATTEMPTS: usize = 5;

impl Db {
    /// Adds a backup of the store to a repository, which the first one creates. The store stays writable. In
    /// a store that [follows](crate::Options::follow) another process, nothing is asked of that process.
    ///
    /// # Errors
    /// [`Error::NotARepository`](crate::Error::NotARepository) for a place with other files, for backups of
    /// another store, and for one inside of the store; [`Error::Locked`](crate::Error::Locked) while another
    /// backup is made or removed; [`Error::Corruption`](crate::Error::Corruption) for damage and for a
    /// segment in quarantine; [`Error::Io`](crate::Error::Io); the errors of
    /// [`flush`](crate::Keyspace::flush). Earlier backups stay as they are.
    pub fn backup(&self, repository: &Repository) -> Result<Backup> {
        self.backup_with(repository, |_| ())
    }

    /// The same. `progress` is told how far it is.
    ///
    /// # Errors
    /// The errors of [`backup`](Self::backup).
    pub fn backup_with(
        &self,
        repository: &Repository,
        mut progress: impl FnMut(&Progress),
    ) -> Result<Backup> {
        let storage = &self.engine().shared.storage;
        storage.process.check()?;
        let owner = Owner { kind: Kind::Store, id: storage.header.store_id };
        let source = || {
            let files: FileSet = self.files_to_copy()?;
            Ok(Source { guard: None, files })
        };
        repository.add(&storage.dir, owner, source, &mut progress)
    }
}

impl Guard {
    /// Adds a backup of everything inserted and removed so far to a repository, which the first one creates.
    /// The guard stays usable. Flushes.
    ///
    /// # Errors
    /// The errors of [`Db::backup`]; [`Error::NotAGuard`](crate::Error::NotAGuard) for an image, which has no
    /// keys.
    pub fn backup(&self, repository: &Repository) -> Result<Backup> {
        self.backup_with(repository, |_| ())
    }

    /// The same. `progress` is told how far it is.
    ///
    /// # Errors
    /// The errors of [`backup`](Self::backup).
    pub fn backup_with(
        &self,
        repository: &Repository,
        mut progress: impl FnMut(&Progress),
    ) -> Result<Backup> {
        repository.add_guard(self.path(), &|| self.files_to_copy(), &mut progress)
    }
}

impl Repository {
    /// Backs up the guard in the directory `guard`, beside the process that has it open, if there is one.
    /// `options` open its store; only file system, cache and limits matter.
    ///
    /// # Errors
    /// The errors of [`Guard::backup`] and of [`GuardOptions::open`].
    pub fn back_up_guard(
        &self,
        guard: impl AsRef<Path>,
        options: GuardOptions,
        mut progress: impl FnMut(&Progress),
    ) -> Result<Backup> {
        let follower = GuardFollower::new(guard.as_ref(), options)?;
        self.add_guard(follower.path(), &|| follower.files_to_copy(), &mut progress)
    }

    fn add_guard(
        &self,
        dir: &Path,
        take: &dyn Fn() -> Result<GuardFiles>,
        progress: &mut super::progress::OnProgress<'_>,
    ) -> Result<Backup> {
        let mut attempt = 1;
        loop {
            let GuardFiles { id, generation, settings, files } = take()?;
            let owner = Owner { kind: Kind::Guard, id };
            let source = || Ok(Source { guard: Some((generation, settings)), files });
            match self.add(dir, owner, source, progress) {
                // A refresh removes the files of the generation before.
                Err(_) if attempt < ATTEMPTS && take()?.generation != generation => attempt += 1,
                outcome => return outcome,
            }
        }
    }
}

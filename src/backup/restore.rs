//! Restoring a backup into a new directory.
//!
//! A store's manifest is its first file, under a temporary name; renaming it is the last step. A guard's
//! settings come last. So whatever interrupts a restore, what it leaves is neither a store nor a guard.

use super::Backup;
use super::format::{File, Record, What};
use super::inside::is_in;
use super::names::{BACKUPS, REPOSITORY};
use super::owner::Kind;
use super::progress::Counter;
use super::repository::Repository;
use super::storage::Purpose;
use crate::engine::copies::new_copy::make_copy;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::guard::make_guard;
use crate::progress::Progress;
use std::path::Path;
use std::sync::Arc;

impl Repository {
    /// Restores a backup, by default the newest, into the new directory `target`: a store, or a guard. Every
    /// file is compared with its SHA-256. A filter that is missing or damaged is left out with a warning, and
    /// built anew by the store.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if there is anything at `target`, even an empty directory;
    /// [`Error::InvalidArgument`] if it is inside of the repository;
    /// [`Error::NotARepository`]; [`Error::NoSuchBackup`]; [`Error::Corruption`] for a damaged or missing
    /// file; [`Error::Locked`] while backups are removed; [`Error::Io`]. Then what was created is removed.
    pub fn restore(&self, number: Option<u64>, target: impl AsRef<Path>) -> Result<Backup> {
        self.restore_with(number, target, |_| ())
    }

    /// The same. `progress` is told how far it is.
    ///
    /// # Errors
    /// The errors of [`restore`](Self::restore).
    pub fn restore_with(
        &self,
        number: Option<u64>,
        target: impl AsRef<Path>,
        mut progress: impl FnMut(&Progress),
    ) -> Result<Backup> {
        self.check_exists()?;
        let _hold = self.storage().lock(Purpose::Read)?;
        let record = self.find(number)?;
        let target = &*self.fs.absolute(target.as_ref())?;
        let is_inside = self.storage().directory().is_some_and(|dir| target.starts_with(dir))
            || is_in(&*self.fs, target, &[REPOSITORY, BACKUPS])?;
        if is_inside {
            let what = "a backup cannot be restored into a repository: choose another directory";
            return Err(Error::InvalidArgument(what.into()));
        }
        let progress = Counter::new(record.head.bytes, &mut progress);
        match record.head.owner.kind {
            Kind::Store => self.fill(&self.fs, target, &record, &progress)?,
            Kind::Guard => {
                let settings = self.small(&record, What::Settings, &progress)?;
                make_guard(&self.fs, target, &settings, record.head.generation, |fs, store| {
                    self.fill(fs, store, &record, &progress)
                })?;
            }
        }
        Ok(Backup::of(&record.head))
    }

    /// Makes the store of a backup.
    fn fill(&self, fs: &Arc<dyn Fs>, target: &Path, record: &Record, progress: &Counter<'_>) -> Result<()> {
        let manifest = self.small(record, What::Manifest, progress)?;
        make_copy(fs, target, &manifest, |copy| {
            for file in &record.files {
                let is_in_copy = !matches!(file.what, What::Manifest | What::Settings);
                let Some(name) = file.what.name().filter(|_| is_in_copy) else { continue };
                progress.rewind();
                let written = copy.write(&name, &|each| {
                    self.read_file(file, &mut |piece| {
                        progress.advance(piece.len());
                        each(piece)
                    })
                });
                progress.end_file();
                match written {
                    Err(error @ Error::Corruption { .. }) if matches!(file.what, What::Sidecar(_)) => {
                        tracing::warn!(%error, "a filter is not restored; the store builds it anew");
                        copy.remove(&name)?;
                    }
                    written => written?,
                }
            }
            Ok(())
        })
    }

    /// The contents of a file that is kept in memory.
    fn small(&self, record: &Record, what: What, progress: &Counter<'_>) -> Result<Vec<u8>> {
        let missing = || Error::Internal("a backup lacks what its reader has checked".into());
        let file: &File = record.files.iter().find(|file| file.what == what).ok_or_else(missing)?;
        let mut bytes = Vec::new();
        progress.rewind();
        self.read_file(file, &mut |piece| {
            progress.advance(piece.len());
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        progress.end_file();
        Ok(bytes)
    }
}

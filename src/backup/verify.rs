//! Whether backups are what was backed up.

use super::format::{File, Record};
use super::names::{REPOSITORY, path_of};
use super::progress::{Counter, OnProgress};
use super::repository::Repository;
use super::storage::Purpose;
use crate::error::{Error, Result};
use crate::progress::Progress;
use std::collections::BTreeMap;

/// What [`Repository::verify`] read and found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Verified {
    /// Backups that were looked at.
    pub backups: u64,
    /// Files that were read, each once.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Missing and damaged files, and damaged backups. A damaged filter is in it too, although a restore does
    /// without it.
    pub problems: Vec<Error>,
}

impl Verified {
    /// Whether all of them can be restored.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Repository {
    /// Reads all files of a backup, or of all backups, and compares them with their SHA-256.
    ///
    /// # Errors
    /// [`Error::NotARepository`], [`Error::NoSuchBackup`], [`Error::Locked`] while backups are removed; only
    /// if the check itself fails. Its findings are in the report.
    pub fn verify(&self, number: Option<u64>) -> Result<Verified> {
        self.verify_with(number, |_| ())
    }

    /// The same. `progress` is told how far it is.
    ///
    /// # Errors
    /// The errors of [`verify`](Self::verify).
    pub fn verify_with(&self, number: Option<u64>, mut progress: impl FnMut(&Progress)) -> Result<Verified> {
        self.check_exists()?;
        let _hold = self.storage().lock(Purpose::Read)?;
        let mut report = Verified::default();
        match self.named_owner() {
            Ok(Some(_)) => {}
            Ok(None) => {
                let what = "the file is missing: the next backup writes it anew";
                report.problems.push(Error::corruption(path_of(self.place(), REPOSITORY), 0, what));
            }
            Err(error) => report.problems.push(error),
        }
        let mut files: BTreeMap<_, File> = BTreeMap::new();
        let numbers = match number {
            Some(number) => vec![number],
            None => self.numbers()?,
        };
        for number in numbers {
            match self.record(number) {
                Ok(Record { files: its, .. }) => files.extend(its.iter().map(|file| (file.sha256, *file))),
                Err(error @ Error::NoSuchBackup { .. }) => return Err(error),
                Err(error) => report.problems.push(error),
            }
            report.backups += 1;
        }
        self.check_files(files.values(), &mut report, &mut progress);
        Ok(report)
    }

    fn check_files<'a>(
        &self,
        files: impl Iterator<Item = &'a File> + Clone,
        report: &mut Verified,
        show: &mut OnProgress<'_>,
    ) {
        let total = files.clone().map(|file| file.bytes).fold(0, u64::saturating_add);
        let mut show = |so_far: &Progress| show(so_far);
        let progress = Counter::new(total, &mut show);
        for file in files {
            progress.rewind();
            let read = self.read_file(file, &mut |piece| {
                progress.advance(piece.len());
                report.bytes += piece.len() as u64;
                Ok(())
            });
            progress.end_file();
            report.problems.extend(read.err());
            report.files += 1;
        }
    }
}

//! Making a backup:
//!
//! 1. Lock the repository. Check that it is this store's, or nobody's yet.
//! 2. Take the store's files of one moment.
//! 3. Put the files that the repository lacks. The last backup's entries tell which ones it has: neither the
//!    store's file nor the repository's is read for that, except the first 4 KiB of a sidecar.
//! 4. Make them durable. Say whose repository it is, if nothing does. Then create the backup itself, whole or
//!    not at all.
//! 5. In an object store, which has no locks: withdraw it if somebody removed its files during this.
//!
//! A crash leaves the earlier backups as they were, and perhaps files that no backup lists. The next backup
//! writes over them, and a removal removes them.

use super::Backup;
use super::contents::{Bytes, LogContents, OpenContents, SegmentContents};
use super::format::{File, Mark, Record, Sha256, What};
use super::inside::check_apart;
use super::names::{FILES, REPOSITORY, backup_name, hex};
use super::owner::Owner;
use super::progress::{Counter, OnProgress};
use super::repository::{Repository, millis_now};
use super::storage::{Contents, Hold, Purpose, Storage};
use crate::engine::copies::file_set::{FileSet, SegmentEntry, sidecar_head};
use crate::error::{Error, Result};
use crate::fs::ReadFile;
use crate::progress::Progress;
use sha2::{Digest, Sha256 as Hasher};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const NO_FILTER: &str = "a filter is not backed up; a restored store builds it anew";
/// How many numbers may be taken by others before a backup gets one.
const NUMBERS_TRIED: u64 = 1000;

/// How long a complete backup waits for a removal to end, at most half an hour.
const REMOVAL_LOOKS: u32 = 1800;
const REMOVAL_PAUSE: Duration = Duration::from_secs(1);

/// What is backed up.
pub(super) struct Source {
    /// A guard's generation and settings.
    pub guard: Option<(u64, Vec<u8>)>,
    pub files: FileSet,
}

/// What the repository has already.
struct Known {
    /// The files of the last backup.
    files: HashMap<What, File>,
    /// The length of each file there is.
    there: HashMap<String, u64>,
}

impl Known {
    /// A file that is in the last backup and still there.
    fn find(&self, what: What, mark: Mark, bytes: u64) -> Option<File> {
        let same = |file: &&File| file.mark == mark && file.bytes == bytes;
        let file = self.files.get(&what).filter(same)?;
        (self.there.get(&hex(&file.sha256)) == Some(&bytes)).then_some(*file)
    }
}

/// A file that the repository lacks.
enum Missing {
    Segment(SegmentEntry),
    /// Of this segment. The writer may replace it until it is copied.
    Sidecar(SegmentEntry, u64),
}

impl Repository {
    /// Backs up what `source` takes once the repository is locked. `dir` is its directory.
    pub(super) fn add(
        &self,
        dir: &Path,
        owner: Owner,
        source: impl FnOnce() -> Result<Source>,
        show: &mut OnProgress<'_>,
    ) -> Result<Backup> {
        check_apart(&*self.fs, self.storage(), dir)?;
        let hold = self.storage().lock(Purpose::Add)?;
        // Now its directory exists, so that a symbolic link above it is followed.
        check_apart(&*self.fs, self.storage(), dir)?;
        self.check_owner(owner)?;
        let (time_ms, source) = (millis_now(), source()?);
        let known = self.known()?;
        let mut files = Vec::new();
        let missing = plan(&source.files, &known, &mut files)?;
        let first = files.len();
        let copied = self.copy(&source, missing, &mut files, show);
        let copied = copied.inspect_err(|_| {
            if hold.is_exclusive() {
                self.remove_new(files.get(first..).unwrap_or_default(), &known);
            }
        })?;
        let new = |file: &&File| !known.there.contains_key(&hex(&file.sha256));
        let new_bytes = copied.iter().filter(new).map(|file| file.bytes).sum();
        self.storage().sync()?;
        hold.confirm()?;
        let mut record = Record::new(owner, 0, time_ms, files);
        record.head.generation = source.guard.as_ref().map_or(0, |(generation, _)| *generation);
        record.head.entries = source.files.entries();
        record.head.new_bytes = new_bytes;
        if self.named_owner().is_err() {
            self.storage().remove(REPOSITORY)?; // It is damaged, and the backups have this owner.
        }
        if self.named_owner()?.is_none() {
            self.storage().create(REPOSITORY, &owner.encode())?;
        }
        self.check_owner(owner)?;
        self.complete(record, &*hold)
    }

    /// Refuses the repository of another owner.
    fn check_owner(&self, owner: Owner) -> Result<()> {
        match self.owner()? {
            None => Ok(()),
            Some(found) if found == owner => Ok(()),
            Some(found) if found.kind != owner.kind => {
                Err(self.unusable(format!("it holds backups of a {}, not of a {}", found.kind, owner.kind)))
            }
            Some(_) => {
                let kind = owner.kind;
                Err(self.unusable(format!("it holds backups of another {kind}: give each its own")))
            }
        }
    }

    /// Removes what a failed backup has put, so that a full disk does not stay full.
    fn remove_new(&self, put: &[File], known: &Known) {
        for name in put.iter().map(|file| hex(&file.sha256)).filter(|name| !known.there.contains_key(name)) {
            if let Err(error) = self.storage().remove(&format!("{FILES}/{name}")) {
                tracing::warn!(%error, "cannot remove a file of a failed backup; `sidebloom backup keep` does");
            }
        }
    }

    /// What the last readable backup has. If there is none, everything is copied.
    fn known(&self) -> Result<Known> {
        let there = self.storage().list(FILES)?.into_iter().map(|file| (file.name, file.bytes)).collect();
        for number in self.numbers()?.into_iter().rev() {
            match self.record(number) {
                Ok(record) => {
                    let files = record.files.into_iter().map(|file| (file.what, file)).collect();
                    return Ok(Known { files, there });
                }
                Err(
                    error @ (Error::UnsupportedVersion { .. }
                    | Error::UnknownCode { .. }
                    | Error::NotARepository { .. }),
                ) => return Err(error),
                Err(error) => tracing::warn!(%error, "cannot read a backup; it is not built upon"),
            }
        }
        Ok(Known { files: HashMap::new(), there })
    }

    /// Copies the missing files, and what is different in every backup. Adds all of them to `files`, and
    /// returns them.
    fn copy(
        &self,
        source: &Source,
        missing: Vec<Missing>,
        files: &mut Vec<File>,
        show: &mut OnProgress<'_>,
    ) -> Result<Vec<File>> {
        let (set, first) = (&source.files, files.len());
        let small = set.manifest().len() as u64 + set.log.as_ref().map_or(0, |log| log.bytes);
        let large = missing.iter().map(|file| match file {
            Missing::Segment(segment) => segment.bytes,
            Missing::Sidecar(_, bytes) => *bytes,
        });
        let total = large.fold(small, u64::saturating_add);
        let mut shown = |so_far: &Progress| show(so_far);
        let progress = Counter::new(total, &mut shown);
        let mut put = |what, bytes, mark, contents: &dyn Contents| {
            let sha256 = self.storage().put(contents)?;
            progress.end_file();
            let written = self.storage().open(&format!("{FILES}/{}", hex(&sha256)))?;
            let written = written.map_or(Ok(0), |file| file.len())?;
            if written != bytes {
                return Err(Error::Internal(format!(
                    "{written} bytes were written, where {bytes} were to be"
                )));
            }
            files.push(File { what, bytes, sha256, mark });
            Ok::<_, Error>(())
        };
        // The log first: it keeps files open that the writer may have removed.
        if let Some(log) = &set.log {
            let contents = LogContents { set, progress: &progress };
            put(What::Log(log.id()), log.bytes, Mark::None, &contents)?;
        }
        for file in missing {
            match file {
                Missing::Segment(segment) => {
                    let contents = SegmentContents { set, segment: &segment, progress: &progress };
                    let mark = Mark::Digest(segment.digest);
                    put(What::Segment(segment.id()), segment.bytes, mark, &contents)?;
                }
                Missing::Sidecar(segment, _) => {
                    // Not kept open since it was looked at: there may be very many.
                    let Some((file, mark, bytes)) = sidecar(set, &segment) else { continue };
                    let contents = OpenContents { file: &*file, bytes, progress: &progress };
                    match put(What::Sidecar(segment.id()), bytes, mark, &contents) {
                        // Derived data stops no backup (I2).
                        Err(Error::Io { path, source, .. }) if path == file.path() => {
                            tracing::warn!(error = %source, file = %path.display(), "{NO_FILTER}");
                        }
                        done => done?,
                    }
                }
            }
        }
        let bytes = |bytes| Bytes { bytes, progress: &progress };
        let manifest = set.manifest();
        put(What::Manifest, manifest.len() as u64, Mark::None, &bytes(manifest))?;
        if let Some((_, settings)) = &source.guard {
            put(What::Settings, settings.len() as u64, Mark::None, &bytes(settings))?;
        }
        Ok(files.get(first..).unwrap_or_default().to_vec())
    }

    /// Creates the backup under the next free number.
    fn complete(&self, mut record: Record, hold: &dyn Hold) -> Result<Backup> {
        let storage = self.storage();
        let last = self.numbers()?.last().copied().unwrap_or(0);
        for number in last.saturating_add(1)..=last.saturating_add(NUMBERS_TRIED) {
            record.head.number = number;
            if !storage.create(&backup_name(number), &record.encode()?)? {
                continue; // Another process has it.
            }
            if !hold.is_exclusive() {
                // A removal that has begun may have counted this backup among those that stay, and removed
                // others for it. So it is withdrawn only if it lacks a file.
                wait_for_removal(hold)?;
                if let Err(error) = check_there(storage, &record.files) {
                    storage.remove(&backup_name(number))?;
                    return Err(error);
                }
            }
            return Ok(Backup::of(&record.head));
        }
        Err(self.unusable("others take all of the next numbers".into()))
    }
}

/// Waits until nobody removes anything. After an error, the backup is there and perhaps lacks files.
fn wait_for_removal(hold: &dyn Hold) -> Result<()> {
    for _ in 0..REMOVAL_LOOKS {
        match hold.confirm() {
            Err(Error::Locked { .. }) => crate::sync::sleep(REMOVAL_PAUSE),
            confirmed => return confirmed,
        }
    }
    hold.confirm()
}

/// Sorts the files into those that the repository has, which `files` gets, and the others.
fn plan(set: &FileSet, known: &Known, files: &mut Vec<File>) -> Result<Vec<Missing>> {
    if let Some(path) = set.quarantined() {
        let what = "the segment is in quarantine, because it could not be read: nothing was backed up; run `sidebloom repair`, then back up again";
        return Err(Error::corruption(path, 0, what));
    }
    let mut missing = Vec::new();
    for segment in set.segments() {
        let mark = Mark::Digest(segment.digest);
        match known.find(What::Segment(segment.id()), mark, segment.bytes) {
            Some(file) => files.push(file),
            None => missing.push(Missing::Segment(segment.clone())),
        }
        if let Some((_, mark, bytes)) = sidecar(set, &segment) {
            match known.find(What::Sidecar(segment.id()), mark, bytes) {
                Some(file) => files.push(file),
                None => missing.push(Missing::Sidecar(segment, bytes)),
            }
        }
    }
    Ok(missing)
}

/// Opens the sidecar of a segment, if it has one.
fn sidecar(set: &FileSet, segment: &SegmentEntry) -> Option<(Arc<dyn ReadFile>, Mark, u64)> {
    let open = || {
        let Some(file) = set.open_sidecar(segment)? else { return Ok(None) };
        let bytes = file.len()?;
        let sha256: Sha256 = Hasher::digest(sidecar_head(&*file)?).into();
        Ok(Some((file, Mark::Head(sha256), bytes)))
    };
    // Derived data stops no backup (I2).
    open().unwrap_or_else(|error: Error| {
        tracing::warn!(%error, "{NO_FILTER}");
        None
    })
}

/// Checks that all files exist.
fn check_there(storage: &dyn Storage, files: &[File]) -> Result<()> {
    let there: HashMap<_, _> = storage.list(FILES)?.into_iter().map(|f| (f.name, f.bytes)).collect();
    match files.iter().find(|file| there.get(&hex(&file.sha256)) != Some(&file.bytes)) {
        None => Ok(()),
        Some(file) => {
            let path = super::names::path_of(storage.place(), &format!("{FILES}/{}", hex(&file.sha256)));
            let what = "the file was removed while a backup that needs it was made: back up again";
            Err(Error::corruption(path, 0, what))
        }
    }
}

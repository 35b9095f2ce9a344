//! A repository, and reading its backups.

use super::Backup;
use super::directory::Directory;
use super::format::{HEAD_BYTES, Head, RECORD_BYTES_MAX, Record};
use super::names::{BACKUPS, FILES, REPOSITORY, backup_name, backup_number, hex, path_of};
use super::owner::{OWNER_BYTES, Owner};
use super::storage::Storage;
use crate::error::{Error, Result};
use crate::fs::{Fs, ReadFile, RealFs, read_pieces};
use sha2::{Digest, Sha256 as Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Any number of backups of one store, or of one guard. The first backup makes the place a repository.
///
/// ```
/// use sidebloom::backup::Repository;
/// # fn main() -> sidebloom::Result<()> {
/// # let dir = tempfile::tempdir()
/// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
/// # let [songs, backups, restored] = ["songs.db", "backups", "new.db"].map(|name| dir.path().join(name));
/// let db = sidebloom::Db::open(songs)?;
/// db.put("Nina Simone - Sinnerman", "1965")?;
/// let repository = Repository::in_dir(backups)?;
/// db.backup(&repository)?;
/// repository.keep(7)?; // The newest seven, and the files that they need.
///
/// let latest = repository.restore(None, &restored)?;
/// assert_eq!(latest.number, 1);
/// assert!(sidebloom::Db::open(restored)?.contains_key("Nina Simone - Sinnerman")?);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Repository {
    storage: Arc<dyn Storage>,
    /// Where stores and guards are restored to.
    pub(super) fs: Arc<dyn Fs>,
}

/// What [`Repository::list`] found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Listing {
    /// The backups, oldest first.
    pub backups: Vec<Backup>,
    /// Damaged backups, and those of a newer version.
    pub problems: Vec<Error>,
}

impl Repository {
    /// A repository in a directory, which may be missing or empty before the first backup. Touches nothing.
    ///
    /// # Errors
    /// [`Error::Io`] if the working directory cannot be found.
    pub fn in_dir(path: impl AsRef<Path>) -> Result<Self> {
        Self::in_dir_on(Arc::new(RealFs), path)
    }

    /// The same on another file system, from and to which backups are restored.
    ///
    /// # Errors
    /// The errors of [`Fs::absolute`].
    pub fn in_dir_on(fs: Arc<dyn Fs>, path: impl AsRef<Path>) -> Result<Self> {
        let storage = Arc::new(Directory::new(Arc::clone(&fs), path.as_ref())?);
        Ok(Repository { storage, fs })
    }

    /// A repository somewhere else, such as in an object store.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Repository { storage, fs: Arc::new(RealFs) }
    }

    /// The directory or the URL.
    pub fn place(&self) -> &Path {
        self.storage.place()
    }

    pub(super) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    pub(super) fn unusable(&self, what: String) -> Error {
        Error::NotARepository { path: self.place().to_path_buf(), what }
    }

    /// Lists the backups. Reads 96 bytes of each.
    ///
    /// # Errors
    /// [`Error::NotARepository`], [`Error::Io`]; [`Error::UnsupportedVersion`] if a newer version wrote the
    /// repository. What is wrong with single backups is in the listing.
    pub fn list(&self) -> Result<Listing> {
        self.check_exists()?;
        let mut listing = Listing::default();
        for number in self.numbers()? {
            match self.head(number) {
                Ok(head) => listing.backups.push(Backup::of(&head)),
                // It was removed meanwhile.
                Err(Error::NoSuchBackup { .. }) => {}
                Err(error) => listing.problems.push(error),
            }
        }
        Ok(listing)
    }

    /// Whose backups these are; `None` if there are none yet. If the file that says so is lost or damaged,
    /// the backups tell.
    pub(super) fn owner(&self) -> Result<Option<Owner>> {
        match self.named_owner() {
            Ok(None) => self.owner_of_backups(),
            Err(error @ Error::Corruption { .. }) => {
                let owner = self.owner_of_backups()?;
                if owner.is_none() {
                    return Err(error);
                }
                tracing::warn!(%error, "the backups tell whose they are; the next one writes the file anew");
                Ok(owner)
            }
            named => named,
        }
    }

    /// What `REPOSITORY` says; `None` if it is missing.
    pub(super) fn named_owner(&self) -> Result<Option<Owner>> {
        let Some(file) = self.storage.open(REPOSITORY)? else { return Ok(None) };
        let path = path_of(self.place(), REPOSITORY);
        // One byte more than there should be, which the decoder refuses.
        let bytes = read_at_most(&*file, OWNER_BYTES as u64 + 1)?;
        Owner::decode(&path, &bytes).map(Some)
    }

    /// The owner in all readable backups; `None` if there are none.
    fn owner_of_backups(&self) -> Result<Option<Owner>> {
        let mut owner = None;
        for number in self.numbers()? {
            let Ok((file, path)) = self.open_backup(number) else { continue };
            let bytes = read_at_most(&*file, HEAD_BYTES as u64)?;
            match Head::decode(&path, &bytes) {
                Ok(head) if *owner.get_or_insert(head.owner) != head.owner => {
                    return Err(self.unusable("it has backups of different stores or guards".into()));
                }
                Err(error @ (Error::UnsupportedVersion { .. } | Error::UnknownCode { .. })) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(owner)
    }

    /// # Errors
    /// [`Error::NotARepository`] if there never was a backup.
    pub(super) fn check_exists(&self) -> Result<Owner> {
        self.owner()?.ok_or_else(|| {
            self.unusable(format!("it has no file {REPOSITORY}: check the path, or make a backup first"))
        })
    }

    /// The numbers of all backups, ascending.
    pub(super) fn numbers(&self) -> Result<Vec<u64>> {
        let names = self.storage.list(BACKUPS)?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|listed| backup_number(&listed.name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn open_backup(&self, number: u64) -> Result<(Arc<dyn ReadFile>, PathBuf)> {
        let name = backup_name(number);
        let missing = || Error::NoSuchBackup { path: self.place().to_path_buf(), number };
        let file = self.storage.open(&name)?.ok_or_else(missing)?;
        Ok((file, path_of(self.place(), &name)))
    }

    pub(super) fn head(&self, number: u64) -> Result<Head> {
        let (file, path) = self.open_backup(number)?;
        let head = Head::decode(&path, &read_at_most(&*file, HEAD_BYTES as u64)?)?;
        self.check_place(head, number, &path)
    }

    /// A whole backup.
    pub(super) fn record(&self, number: u64) -> Result<Record> {
        let (file, path) = self.open_backup(number)?;
        let record = Record::decode(&path, &read_at_most(&*file, RECORD_BYTES_MAX)?)?;
        self.check_place(record.head, number, &path)?;
        Ok(record)
    }

    fn check_place(&self, head: Head, number: u64, path: &Path) -> Result<Head> {
        if head.number != number {
            return Err(Error::corruption(path, 16, format!("it is backup {}, renamed", head.number)));
        }
        match self.owner()? {
            Some(owner) if owner == head.owner => Ok(head),
            _ => Err(self.unusable(format!(
                "{} is a backup of another store or guard: move it to a repository of its own",
                crate::show::path(path)
            ))),
        }
    }

    /// The backup with this number, or the newest.
    pub(super) fn find(&self, number: Option<u64>) -> Result<Record> {
        self.check_exists()?;
        let newest = || {
            let newest = self.numbers()?.last().copied();
            newest.ok_or_else(|| self.unusable("it has no backups".into()))
        };
        self.record(number.map_or_else(newest, Ok)?)
    }

    /// The path of a file in the repository, for messages.
    pub(super) fn path_of_file(&self, file: &super::format::File) -> PathBuf {
        path_of(self.place(), &format!("{FILES}/{}", hex(&file.sha256)))
    }

    /// Reads a file and compares it with its SHA-256, at the end. Passes the pieces to `each`.
    pub(super) fn read_file(
        &self,
        file: &super::format::File,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let path = self.path_of_file(file);
        let Some(found) = self.storage.open(&format!("{FILES}/{}", hex(&file.sha256)))? else {
            return Err(Error::corruption(
                path,
                0,
                "the file is missing, but backups need it; the next backup copies it again if the store still has it",
            ));
        };
        let len = found.len()?;
        if len != file.bytes {
            let what = format!(
                "the file has {len} bytes, but its backup says {}; remove it, and the next backup copies it again if the store still has it",
                file.bytes
            );
            return Err(Error::corruption(path, len.min(file.bytes), what));
        }
        let mut sha256 = Hasher::new();
        read_pieces(&*found, len, &mut |piece| {
            sha256.update(piece);
            each(piece)
        })?;
        if *sha256.finalize() == file.sha256 {
            Ok(())
        } else {
            Err(Error::corruption(
                path,
                0,
                "SHA-256 mismatch: the file is not what was backed up; remove it, and the next backup copies it again if the store still has it",
            ))
        }
    }
}

fn read_at_most(file: &dyn ReadFile, max: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.len()?.min(max)).unwrap_or_default()];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Now, in milliseconds since 1970.
pub(super) fn millis_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

//! A repository in a directory.

use super::format::Sha256;
use super::names::{BACKUPS, FILES, REPOSITORY, backup_number, hex, is_file_name, path_of};
use super::storage::{Contents, Hold, Listed, Purpose, Storage};
use crate::error::{Error, REPOSITORY_LOCK, REPOSITORY_READERS, Result};
use crate::fs::{AppendFile, Fs, LockGuard, LockMode, ReadFile, create_dir_durably, parent_of};
use crate::show;
use sha2::{Digest, Sha256 as Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A file that is being written.
const INCOMING: &str = "incoming-";
const INCOMING_END: &str = ".tmp";

/// A directory.
#[derive(Debug)]
pub(super) struct Directory {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    /// Of temporary names.
    next: AtomicU64,
}

#[derive(Debug)]
struct Locks {
    fs: Arc<dyn Fs>,
    held: Vec<(PathBuf, Box<dyn LockGuard>)>,
}

impl Hold for Locks {
    fn confirm(&self) -> Result<()> {
        for (path, lock) in &self.held {
            if let Some(file) = lock.file()
                && self.fs.stamp(path)?.is_none_or(|stamp| stamp.file != file)
            {
                return Err(Error::LockLost { path: path.clone() });
            }
        }
        Ok(())
    }

    fn is_exclusive(&self) -> bool {
        true
    }
}

impl Directory {
    pub fn new(fs: Arc<dyn Fs>, dir: &Path) -> Result<Self> {
        let dir = fs.absolute(dir)?;
        Ok(Directory { fs, dir, next: AtomicU64::new(0) })
    }

    /// Refuses a directory with other files, and changes nothing.
    fn check_usable(&self) -> Result<()> {
        if self.fs.file_len(&self.dir)?.is_none() {
            return Ok(());
        }
        let names = match self.fs.list(&self.dir) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotADirectory => {
                return Err(self.unusable("it is a file, not a directory".into()));
            }
            names => names?,
        };
        if names.iter().any(|name| name == REPOSITORY) {
            return Ok(());
        }
        let is_ours = |name: &String| {
            [BACKUPS, FILES, REPOSITORY_LOCK, REPOSITORY_READERS].contains(&&**name) || is_incoming(name)
        };
        let mut others = names.into_iter().filter(|name| !is_ours(name)).collect::<Vec<_>>();
        for (folder, is_name) in [(BACKUPS, is_backup_name as fn(&str) -> bool), (FILES, is_file_name)] {
            let listed = match self.fs.list(&self.dir.join(folder)) {
                Err(error) if is_missing(&error) => continue,
                listed => listed?,
            };
            let foreign = listed.into_iter().filter(|name| !is_name(name) && !is_incoming(name));
            others.extend(foreign.map(|name| format!("{folder}/{name}")));
        }
        match others.first() {
            None => Ok(()),
            Some(other) => Err(self.unusable(format!(
                "the directory holds other files ({}): give one that is new or empty",
                show::escaped(other)
            ))),
        }
    }

    fn unusable(&self, what: String) -> Error {
        Error::NotARepository { path: self.dir.clone(), what }
    }

    /// Creates what is missing. What a killed process was writing is removed.
    fn prepare(&self) -> Result<()> {
        for folder in [BACKUPS, FILES] {
            let path = self.dir.join(folder);
            if self.fs.file_len(&path)?.is_none() {
                self.fs.create_dir(&path)?;
            }
        }
        let readers = self.dir.join(REPOSITORY_READERS);
        if self.fs.file_len(&readers)?.is_none() {
            self.fs.create(&readers)?;
        }
        self.fs.sync_dir(&self.dir)?;
        for dir in [self.dir.clone(), self.dir.join(BACKUPS), self.dir.join(FILES)] {
            for name in self.fs.list(&dir)?.iter().filter(|name| is_incoming(name)) {
                self.fs.remove(&dir.join(name))?;
            }
        }
        Ok(())
    }

    /// Begins a file under a temporary name in the directory where its own will be. Only its owner may read
    /// it, like a store that is private, whatever the permissions of this one.
    fn begin(&self, dir: &Path) -> Result<Incoming<'_>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("{INCOMING}{number}{INCOMING_END}"));
        let file = self.fs.create_private(&path)?;
        Ok(Incoming { fs: &*self.fs, path, file })
    }
}

/// A file under a temporary name.
struct Incoming<'a> {
    fs: &'a dyn Fs,
    path: PathBuf,
    file: Box<dyn AppendFile>,
}

impl Incoming<'_> {
    /// Makes it durable and renames it, if it was written.
    fn finish(mut self, written: Result<()>, to: &Path) -> Result<()> {
        let finished = written.and_then(|()| self.file.sync()).and_then(|()| self.fs.rename(&self.path, to));
        finished.inspect_err(|_| {
            let _ = self.fs.remove(&self.path); // Otherwise the next backup removes it.
        })
    }
}

fn is_incoming(name: &str) -> bool {
    let number = name.strip_prefix(INCOMING).and_then(|name| name.strip_suffix(INCOMING_END));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_backup_name(name: &str) -> bool {
    backup_number(name).is_some()
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

impl Storage for Directory {
    fn place(&self) -> &Path {
        &self.dir
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.dir)
    }

    fn list(&self, folder: &str) -> Result<Vec<Listed>> {
        let dir = self.dir.join(folder);
        let names = match self.fs.list(&dir) {
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            names => names?,
        };
        let mut listed = Vec::with_capacity(names.len());
        for name in names.into_iter().filter(|name| !is_incoming(name)) {
            if let Some(bytes) = self.fs.file_len(&dir.join(&name))? {
                listed.push(Listed { name, bytes, age: Duration::MAX });
            }
        }
        Ok(listed)
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn ReadFile>>> {
        match self.fs.open(&path_of(&self.dir, name)) {
            Err(error) if is_missing(&error) => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn put(&self, contents: &dyn Contents) -> Result<Sha256> {
        let (dir, mut sha256) = (self.dir.join(FILES), Hasher::new());
        let mut incoming = self.begin(&dir)?;
        let read = contents.read(&mut |piece| {
            sha256.update(piece);
            incoming.file.append(piece)
        });
        let sha256 = sha256.finalize().into();
        incoming.finish(read, &dir.join(hex(&sha256)))?;
        Ok(sha256)
    }

    fn sync(&self) -> Result<()> {
        [FILES, BACKUPS].iter().try_for_each(|folder| self.fs.sync_dir(&self.dir.join(folder)))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let path = path_of(&self.dir, name);
        if self.fs.file_len(&path)?.is_some() {
            return Ok(false);
        }
        let dir = parent_of(&path);
        let mut incoming = self.begin(dir)?;
        let written = incoming.file.append(bytes);
        incoming.finish(written, &path)?;
        self.fs.sync_dir(dir)?;
        Ok(true)
    }

    fn remove(&self, name: &str) -> Result<()> {
        match self.fs.remove(&path_of(&self.dir, name)) {
            Err(error) if is_missing(&error) => Ok(()),
            removed => removed,
        }
    }

    fn lock(&self, purpose: Purpose) -> Result<Box<dyn Hold>> {
        let [writers, readers] = [REPOSITORY_LOCK, REPOSITORY_READERS].map(|name| self.dir.join(name));
        let mut held = Vec::new();
        let mut take = |path: &Path, mode| {
            held.push((path.to_path_buf(), self.fs.lock(path, mode)?));
            Ok::<_, Error>(())
        };
        match purpose {
            Purpose::Read => match take(&readers, LockMode::Shared) {
                Err(error) if is_missing(&error) => {} // A copy of a repository without its lock files.
                taken => taken?,
            },
            Purpose::Remove => {
                take(&writers, LockMode::Exclusive)?;
                take(&readers, LockMode::Exclusive)?;
            }
            Purpose::Add => {
                self.check_usable()?;
                create_dir_durably(&*self.fs, &self.dir)?;
                take(&writers, LockMode::Exclusive)?;
                self.check_usable()?;
                self.prepare()?;
            }
        }
        Ok(Box::new(Locks { fs: Arc::clone(&self.fs), held }))
    }
}

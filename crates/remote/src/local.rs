//! What a reader keeps on this machine: whole sidecars and manifests, and the ends of segments, under names that say what they are.
//!
//! Several readers, in this process and in others, may share a directory. Files appear whole, by renaming, and never change. Each reader holds
//! a shared lock; whoever gets the exclusive one is alone, and removes what its generation does not need.

use crate::error::{Error, Result};
use crate::generation::{File, Object, sha256};
use crate::parallel;
use crate::remote::Remote;
use std::collections::HashSet;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Not the name of the lock of a store, whose directory may have been named by mistake.
const LOCK: &str = "readers.lock";
const TEMPORARY: &str = ".tmp";

/// The directory.
#[derive(Debug)]
pub(crate) struct Local {
    dir: PathBuf,
    lock: fs::File,
}

/// A part of an object, to be kept.
struct Part<'a> {
    object: &'a Object,
    /// Where it begins; 0 for all of it.
    at: u64,
    sha256: &'a str,
}

impl Local {
    pub fn open(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).map_err(Error::file("create", dir))?;
        let path = dir.join(LOCK);
        let lock = fs::File::options().write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(Error::file("open", &path))?;
        lock.lock_shared().map_err(Error::file("lock", &path))?;
        Ok(Local { dir: dir.to_path_buf(), lock })
    }

    /// The directory that stores are opened in; there is no such directory.
    pub fn store_dir(&self) -> PathBuf {
        self.dir.join("store")
    }

    /// Where an object, or its end from `at` on, is kept.
    pub fn path(&self, object: &Object, at: u64) -> PathBuf {
        let name = object.object.replace('/', "-");
        self.dir.join(if at == 0 { name } else { format!("{name}-from-{at}") })
    }

    /// Fetches what the files of a generation need, and is not here yet.
    pub fn fetch(&self, remote: &Remote, manifest: &Object, files: &[&File]) -> Result<()> {
        let whole = |object| Part { object, at: 0, sha256: &object.sha256 };
        let parts: Vec<Part<'_>> = files
            .iter()
            .map(|file| match &file.tail {
                Some(tail) => Part { object: &file.object, at: tail.at, sha256: &tail.sha256 },
                None => whole(&file.object),
            })
            .chain([whole(manifest)])
            .collect();
        parallel::for_each(&parts, |part| self.fetch_part(remote, part))
    }

    fn fetch_part(&self, remote: &Remote, part: &Part<'_>) -> Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let path = self.path(part.object, part.at);
        let due = part.object.bytes.saturating_sub(part.at);
        match fs::metadata(&path) {
            Ok(found) if found.len() == due => return Ok(()),
            Ok(_) => {} // It was not written by this crate.
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(Error::file("inspect", path)(e)),
        }
        let name = &part.object.object;
        let bytes = match part.at {
            0 => remote.get(name)?.ok_or_else(|| Error::Expired { object: remote.object(name) })?.bytes,
            at => remote.get_range(name, at..part.object.bytes)?,
        };
        if bytes.len() as u64 != due || sha256(&bytes) != part.sha256 {
            let what = "its contents are not those that its generation names";
            return Err(Error::damaged(remote.object(name), part.at, what));
        }
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let temporary = self.dir.join(format!("{process}-{number}{TEMPORARY}"));
        let write = || -> std::io::Result<()> {
            let mut file = fs::File::create(&temporary)?;
            file.write_all(&bytes)?;
            file.sync_all()?; // A file that a crash has emptied would look whole.
            fs::rename(&temporary, &path)
        };
        write().inspect_err(|_| _ = fs::remove_file(&temporary)).map_err(Error::file("write", path))
    }

    /// Removes what readers have left here but for these files, unless another reader uses the directory. Other files stay: a user may have
    /// named a directory that has some.
    pub fn clean(&self, keep: &HashSet<PathBuf>) -> Result<()> {
        let path = self.dir.join(LOCK);
        // The shared lock is given up for a moment: the exclusive one is had by nobody else then, or by another cleaner.
        if self.lock.unlock().is_ok() && self.lock.try_lock().is_ok() {
            for entry in fs::read_dir(&self.dir).map_err(Error::file("list", &self.dir))? {
                let file = entry.map_err(Error::file("list", &self.dir))?.path();
                if is_ours(&file)
                    && !keep.contains(&file)
                    && let Err(error) = fs::remove_file(&file)
                {
                    tracing::debug!(%error, file = %file.display(), "cannot remove a file that is not needed any more");
                }
            }
            let _ = self.lock.unlock();
        }
        self.lock.lock_shared().map_err(Error::file("lock", path))
    }
}

/// Whether readers give files such names: those of objects (`Local::path`), of unfinished ones, and of caches of blocks.
fn is_ours(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_numbers = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let between = |prefix, suffix| name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
    ["segment-", "filter-", "manifest-"].iter().any(|folder| name.starts_with(folder))
        || between("", TEMPORARY).is_some_and(is_numbers)
        || between("blocks-", ".cache").is_some_and(is_numbers)
}

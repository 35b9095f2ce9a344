//! What a reader keeps on this machine: whole sidecars and manifests, and the ends of segments, under the SHA-256 of their contents.
//!
//! ```text
//! DIR/store-HHHH…        one directory for each URL, with 32 hex digits of its SHA-256, mode 0700
//!     HHHH…              what is kept: 64 hex digits
//!     newest-HHHH…       the newest generation that was seen (mark.rs)
//!     readers.lock, newest.lock
//!     N-N.tmp            a file that is being written
//!     blocks-N-N.cache   the blocks of one reader
//! ```
//!
//! Several readers, in this process and in others, may share a directory. Files appear whole, by renaming, and never change. Each reader holds
//! a shared lock; whoever gets the exclusive one is alone, and removes what its generation does not need. Nothing but files of these names
//! is ever removed, and nothing outside of the directory of the URL is touched.

use crate::error::{Error, Result};
use crate::generation::{File, Generation, sha256};
use crate::kept::{Kept, Part, check_room};
use crate::lost::LostFilter;
use crate::mark::Mark;
use crate::parallel;
use crate::private;
use crate::remote::Remote;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const LOCK: &str = "readers.lock";

/// The directory.
#[derive(Debug)]
pub(crate) struct Local {
    dir: PathBuf,
    kept: Kept,
    lock: fs::File,
}

/// The directory below `root` for what one URL holds.
pub(crate) fn dir_of(root: &Path, kind: &str, remote: &Remote) -> Result<PathBuf> {
    let hash = sha256(remote.url().as_bytes());
    private::dir(root, &format!("{kind}-{}", hash.get(..32).unwrap_or(&hash)))
}

impl Local {
    pub fn open(root: &Path, remote: &Remote) -> Result<Self> {
        let dir = dir_of(root, "store", remote)?;
        let path = dir.join(LOCK);
        let lock = private::lock_file(&path).map_err(Error::file("open", &path))?;
        lock.lock_shared().map_err(Error::file("lock", &path))?;
        Ok(Local { kept: Kept::new(&dir), dir, lock })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The newest generation that was seen of this store.
    pub fn mark(&self, of: &Generation) -> Mark {
        Mark::new(&self.dir, of.store_id())
    }

    /// The directory that stores are opened in; there is no such directory.
    pub fn store_dir(&self) -> PathBuf {
        self.dir.join("store")
    }

    /// Where a file, or its end, is kept.
    pub fn path(&self, file: &File) -> PathBuf {
        self.kept.path(part(file).sha256)
    }

    /// Fetches what the files of a generation need, and is not here yet. Returns the filters that the bucket does not have.
    pub fn fetch(&self, remote: &Remote, generation: &Generation) -> Result<Vec<LostFilter>> {
        let manifest = generation.manifest_file();
        let files: Vec<&File> = generation.files.iter().chain([&manifest]).collect();
        let missing =
            files.iter().map(|file| part(file)).filter(|part| !self.kept.path(part.sha256).exists());
        check_room(remote, &self.dir, missing.map(|part| part.range.end - part.range.start))?;
        let lost = Mutex::new(Vec::new());
        parallel::for_each(&files, |file| {
            if let Err(error) = self.kept.fetch(remote, &part(file)) {
                let filter = LostFilter::from_error(file, error)?;
                lost.lock().unwrap_or_else(PoisonError::into_inner).push(filter);
            }
            Ok(())
        })?;
        Ok(lost.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Removes what readers have left here but for these files, unless another reader uses the directory.
    pub fn clean(&self, keep: &HashSet<PathBuf>) -> Result<()> {
        let path = self.dir.join(LOCK);
        let keep: HashSet<String> =
            keep.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
        // The shared lock is given up for a moment: the exclusive one is had by nobody else then, or by another cleaner.
        if self.lock.unlock().is_ok() && self.lock.try_lock().is_ok() {
            for entry in fs::read_dir(&self.dir).map_err(Error::file("list", &self.dir))? {
                let entry = entry.map_err(Error::file("list", &self.dir))?;
                let (name, file) = (entry.file_name(), entry.path());
                let is_blocks =
                    || is_cache_of_blocks(&name) && !name.to_str().is_some_and(|name| keep.contains(name));
                if (Kept::is_unused(&name, &keep) || is_blocks())
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

/// What is kept of a file.
fn part(file: &File) -> Part<'_> {
    let (at, sha256) = match &file.tail {
        Some(tail) => (tail.at, &tail.sha256),
        None => (0, &file.object.sha256),
    };
    Part { object: &file.object.object, range: at..file.object.bytes, sha256 }
}

/// Whether a reader gives such a name to its cache of blocks.
fn is_cache_of_blocks(name: &std::ffi::OsStr) -> bool {
    let unique = |name: &'_ str| name.strip_prefix("blocks-")?.strip_suffix(".cache").map(private::is_unique);
    name.to_str().and_then(unique).unwrap_or(false)
}

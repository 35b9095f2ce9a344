//! What store readers keep on this machine: whole sidecars and manifests, and the ends of segments.
//!
//! Each reader holds a shared lock on the directory. Whoever gets the exclusive lock is alone, and removes
//! what its generation does not need.

use crate::error::{Error, Result};
use crate::find_generation::Generations;
use crate::generation::{File, Generation};
use crate::kept_files::KeptFiles;
use crate::lost_filter::LostFilter;
use crate::private_files;
use crate::remote::Remote;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const LOCK: &str = "readers.lock";

/// The directory.
#[derive(Debug)]
pub(crate) struct LocalFiles {
    kept: KeptFiles,
    lock: fs::File,
}

impl LocalFiles {
    pub fn open(root: &Path, generations: &Generations) -> Result<Self> {
        let kept = KeptFiles::open(root, generations)?;
        let path = kept.dir.join(LOCK);
        let lock = private_files::lock_file(&path).map_err(Error::file("open", &path))?;
        lock.lock_shared().map_err(Error::file("lock", &path))?;
        Ok(LocalFiles { kept, lock })
    }

    pub fn dir(&self) -> &Path {
        &self.kept.dir
    }

    /// The virtual directory in which stores are opened.
    pub fn store_dir(&self) -> PathBuf {
        self.dir().join("store")
    }

    /// The path of a file, or of its tail.
    pub fn path(&self, file: &File) -> PathBuf {
        self.kept.path(file)
    }

    /// Fetches missing files of a generation. Returns the filters that the bucket lacks.
    pub fn fetch(&self, remote: &Remote, generation: &Generation) -> Result<Vec<LostFilter>> {
        let manifest = generation.manifest_file();
        let files: Vec<&File> = generation.files.iter().chain([&manifest]).collect();
        let lost = Mutex::new(Vec::new());
        self.kept.fetch(remote, &files, |file, error| {
            let filter = LostFilter::from_error(file, error)?;
            lost.lock().unwrap_or_else(PoisonError::into_inner).push(filter);
            Ok(())
        })?;
        Ok(lost.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Removes what readers left here except these files, unless another reader uses the directory.
    pub fn clean(&self, used: &HashSet<PathBuf>) -> Result<()> {
        // Gives up the shared lock for a moment: then nobody, or another cleaner, has the exclusive one.
        let is_alone = self.lock.unlock().is_ok() && self.lock.try_lock().is_ok();
        let cleaned = if is_alone { self.kept.clean(used, Duration::ZERO) } else { Ok(()) };
        let _ = self.lock.unlock();
        cleaned.and(self.lock.lock_shared().map_err(Error::file("lock", self.dir().join(LOCK))))
    }
}

//! Cloning: copies a published store into a local directory.
//!
//! The manifest is the first file, under a temporary name; renaming it is the last step. So neither `open`
//! nor `repair` accepts a clone that a kill or a power cut interrupted. A failed clone removes what it
//! created.

use crate::error::{Error, Result};
use crate::find_generation::Generations;
use crate::generation::{File, Generation, Kind};
use crate::kept_files::{self, Part, check_room};
use crate::lineage;
use crate::lost_filter::LostFilter;
use crate::remote::Remote;
use sidebloom::FileSet;
use sidebloom::fs::{Fs, LockGuard, LockMode, RealFs, create_dir_durably};
use std::fs;
use std::path::{Path, PathBuf};

const LOCK: &str = "LOCK";

/// Copies the newest generation into a new directory. The result is a writable store that can publish the
/// next generation. `progress` gets the bytes copied so far and the total. A filter that is missing or
/// damaged in the bucket is left out with a warning: the store rebuilds it. Returns the generation.
///
/// # Errors
/// [`Error::NotPublished`]; [`Error::Store`] if the directory exists, or another clone into it is running or
/// was interrupted; [`Error::Damaged`] for a damaged object; [`Error::File`] if the disk is too small for
/// what the generation claims; errors of the bucket and of the directory. After an error, nothing of the
/// clone is left.
pub fn clone(remote: &Remote, dir: impl AsRef<Path>, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
    let dir = dir.as_ref();
    let generations = Generations::new(remote, Kind::Store);
    let generation = generations.newest(None)?.ok_or_else(|| generations.not_published())?.generation;
    refuse_existing(dir)?;
    let mut copy = Copy::begin(dir)?;
    let copied = copy.fill(remote, &generation, progress);
    if copied.is_err() {
        copy.remove();
    }
    copied.map(|()| generation.number)
}

fn refuse_existing(dir: &Path) -> Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    if dir.is_dir() {
        FileSet::refuse_unfinished_copy(&RealFs, dir)?;
    }
    Err(sidebloom::Error::AlreadyExists { path: dir.to_path_buf() }.into())
}

/// A clone in progress.
struct Copy<'a> {
    dir: &'a Path,
    /// The files created, or about to be, except the lock file.
    created: Vec<PathBuf>,
    /// Prevents others from opening the directory.
    _lock: Box<dyn LockGuard>,
}

impl<'a> Copy<'a> {
    /// Creates the directory and owns it: the owner is whoever creates its lock file.
    fn begin(dir: &'a Path) -> Result<Self> {
        let begun = create_dir_durably(&RealFs, dir).map_err(Error::from).and_then(|()| claim(dir));
        match begun {
            Ok(lock) => Ok(Copy { dir, created: Vec::new(), _lock: lock }),
            Err(error) => {
                let _ = fs::remove_dir(dir); // Fails if not empty: then somebody else owns it.
                Err(error)
            }
        }
    }

    fn fill(
        &mut self,
        remote: &Remote,
        generation: &Generation,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let all = check_room(remote, self.dir, generation.objects().map(|object| object.bytes))?;
        let mut done = 0;
        let [unfinished, manifest] =
            [FileSet::MANIFEST_OF_COPY, FileSet::MANIFEST].map(|name| self.dir.join(name));
        let first = File { name: FileSet::MANIFEST_OF_COPY.to_owned(), ..generation.manifest_file() };
        for file in [&first].into_iter().chain(&generation.files) {
            let before = done;
            let copied = self.copy(remote, file, &mut |bytes| {
                done += bytes;
                progress(done, all);
            });
            if file.name == first.name {
                self.sync()?; // The name is durable before any file looks like a store's.
            }
            if let Err(error) = copied {
                LostFilter::from_error(file, error)?.warn();
                let path = self.dir.join(&file.name);
                fs::remove_file(&path).map_err(Error::file("remove", &path))?;
                done = before + file.object.bytes;
                progress(done, all);
            }
        }
        self.created.extend(lineage::files(self.dir));
        lineage::note(self.dir, remote.url(), generation)?;
        self.sync()?;
        fs::rename(&unfinished, &manifest).map_err(Error::file("rename", &unfinished))?;
        self.sync().inspect_err(|_| {
            // Removed under the name that the clone created.
            let _ = fs::rename(&manifest, &unfinished);
        })
    }

    fn copy(&mut self, remote: &Remote, file: &File, copied: &mut dyn FnMut(u64)) -> Result<()> {
        let path = self.dir.join(&file.name);
        let mut copy = fs::File::create_new(&path).map_err(Error::file("create", &path))?;
        self.created.push(path.clone());
        let object = &file.object;
        let whole = Part { object: &object.object, range: 0..object.bytes, sha256: &object.sha256 };
        kept_files::copy(remote, &whole, &mut copy, &path, copied)?;
        copy.sync_all().map_err(Error::file("sync", &path))
    }

    fn sync(&self) -> Result<()> {
        fs::File::open(self.dir).and_then(|dir| dir.sync_all()).map_err(Error::file("sync", self.dir))
    }

    /// Removes what was created, as far as possible, so that the caller can try again: the unfinished
    /// manifest after all other files of the store, and the lock file last.
    fn remove(&self) {
        let lock = self.dir.join(LOCK);
        for path in self.created.iter().rev().chain([&lock]) {
            let _ = fs::remove_file(path); // Some were never created. A file that stays keeps the directory.
        }
        if let Err(error) = fs::remove_dir(self.dir) {
            tracing::warn!(%error, dir = %self.dir.display(), "cannot remove a failed clone; remove it yourself");
        }
    }
}

/// Creates the lock file of a new directory and locks it.
fn claim(dir: &Path) -> Result<Box<dyn LockGuard>> {
    let path = dir.join(LOCK);
    fs::File::create_new(&path).map_err(Error::file("create", &path))?;
    // If this fails, the directory now belongs to somebody else.
    let lock = RealFs.lock(&path, LockMode::Exclusive)?;
    match &*RealFs.list(dir)? {
        [only] if only == LOCK => Ok(lock),
        _ => Err(sidebloom::Error::AlreadyExists { path: dir.to_path_buf() }.into()),
    }
}

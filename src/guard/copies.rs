//! Copies of a guard: the files of one moment, from the process that has it open or from outside, and a
//! guard made of them.

use super::format::{LOCK, SETTINGS, Settings};
use super::handle::Guard;
use super::leftovers::remove_leftovers;
use super::open::{claim, what_it_is_instead};
use super::options::GuardOptions;
use crate::engine::copies::file_set::FileSet;
use crate::error::{Error, Result};
use crate::fs::{Fs, open_dir};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How often a refresh may replace the generation while it is opened.
const ATTEMPTS: usize = 10;

/// What a copy of a guard needs.
pub(crate) struct GuardFiles {
    /// Identifies the guard, but not its copies and generations.
    pub id: u64,
    pub generation: u64,
    /// With the secret key.
    pub settings: Vec<u8>,
    /// Of the generation's store.
    pub files: FileSet,
}

impl GuardFiles {
    fn new(settings: Settings, files: FileSet) -> Result<Self> {
        let (id, generation) = (settings.guard_id(), settings.generation);
        Ok(GuardFiles { id, generation, settings: settings.encode()?, files })
    }
}

impl Guard {
    /// The files of everything inserted and removed so far.
    pub(crate) fn files_to_copy(&self) -> Result<GuardFiles> {
        let shared = self.shared();
        shared.process.check()?;
        if !shared.options.store.has_segments {
            let what = "it is an image, which has no keys: back up the guard itself".into();
            return Err(Error::NotAGuard { path: shared.dir.clone(), what });
        }
        let live = shared.live.load_full();
        let files = live.db.files_to_copy()?;
        GuardFiles::new(Settings { generation: live.number, ..shared.settings }, files)
    }
}

/// A guard that another process may have open.
pub(crate) struct GuardFollower {
    dir: PathBuf,
    fs: Arc<dyn Fs>,
    options: GuardOptions,
}

impl GuardFollower {
    /// Changes nothing.
    ///
    /// # Errors
    /// The errors of [`GuardOptions::open`].
    pub fn new(path: &Path, options: GuardOptions) -> Result<Self> {
        options.store.validate()?;
        let (dir, named) = (options.fs.absolute(path)?, options.named_fs());
        if named.file_len(&dir.join(SETTINGS))?.is_none() {
            let what = what_it_is_instead(&*named, &dir)?;
            return Err(Error::NotAGuard { path: dir, what });
        }
        let fs = open_dir(&named, &dir)?;
        Ok(GuardFollower { dir, fs, options })
    }

    /// The guard's directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The files of everything inserted and removed so far.
    ///
    /// # Errors
    /// The errors of following its store.
    pub fn files_to_copy(&self) -> Result<GuardFiles> {
        let mut attempt = 1;
        loop {
            let settings = Settings::read(&*self.fs, &self.dir)?;
            let options = self.options.store.clone().filesystem(Arc::clone(&self.fs)).follow(true);
            let taken = options.open(settings.store(&self.dir)).and_then(|db| db.files_to_copy());
            let now = Settings::read(&*self.fs, &self.dir)?;
            if now.generation == settings.generation || attempt == ATTEMPTS {
                return GuardFiles::new(settings, taken?);
            }
            attempt += 1;
        }
    }
}

/// Makes a guard with these settings in the new directory `target`. `fill` makes the store of its generation
/// in the directory that it is given. The settings come last. After an error, what was created is removed.
///
/// # Errors
/// [`Error::AlreadyExists`]; [`Error::Corruption`] for settings of another generation; the errors of `fill`.
pub(crate) fn make_guard(
    fs: &Arc<dyn Fs>,
    target: &Path,
    settings: &[u8],
    generation: u64,
    fill: impl FnOnce(&Arc<dyn Fs>, &Path) -> Result<()>,
) -> Result<()> {
    let settings = Settings::decode(Path::new(SETTINGS), settings)?;
    if settings.generation != generation {
        return Err(Error::corruption(SETTINGS, 32, "the settings are those of another generation"));
    }
    if fs.file_len(target)?.is_some() {
        return Err(Error::AlreadyExists { path: target.to_path_buf() });
    }
    let (locked, _lock) = claim(fs, target).inspect_err(|_| {
        let _ = fs.remove_dir(target); // Fails if not empty: then somebody else owns it.
    })?;
    let made = fill(&locked, &settings.store(target)).and_then(|()| settings.write(&*locked, target));
    made.inspect_err(|_| {
        let _ = locked.remove(&target.join(SETTINGS));
        let _ = remove_leftovers(&locked, target, "");
        let _ = locked.remove(&target.join(LOCK));
        if let Err(error) = fs.remove_dir(target) {
            tracing::warn!(%error, "cannot remove a failed copy of a guard; remove it yourself");
        }
    })
}

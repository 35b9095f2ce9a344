//! Building and opening a guard.

use super::counters::GuardCounters;
use super::format::{LOCK, SETTINGS, Settings};
use super::generation::Generation;
use super::handle::Guard;
use super::hash_sorter::HashSorter;
use super::leftovers::{is_leftover, remove_leftovers};
use super::options::GuardOptions;
use super::shared::{InFlight, Shared};
use super::source::{Source, check_equality};
use super::stored_hash::StoredHash;
use crate::error::{Error, Result};
use crate::fs::{Fs, LockGuard, LockMode, LockedFs, Process, create_dir_durably, open_dir};
use crate::manifest::MANIFEST;
use crate::options::FilterPolicy;
use crate::show;
use crate::sync::atomic::AtomicBool;
use crate::sync::{ArcSwap, Mutex};
use std::path::Path;
use std::sync::{Arc, OnceLock};

impl Guard {
    /// Builds a guard of exact keys in a new directory; see [`GuardOptions::build`].
    ///
    /// # Errors
    /// The errors of [`GuardOptions::build`].
    pub fn build<K: AsRef<[u8]>>(path: impl AsRef<Path>, keys: impl IntoIterator<Item = K>) -> Result<Self> {
        GuardOptions::new().build(path, keys)
    }

    /// Opens a guard with default options.
    ///
    /// # Errors
    /// The errors of [`GuardOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        GuardOptions::new().open(path)
    }
}

impl GuardOptions {
    /// Builds a guard in the directory `path`, which must be missing or empty, from the key of every row, in
    /// any order. Sorts in 256 MiB of memory, and on disk beyond that.
    ///
    /// # Errors
    /// [`Error::NotAGuard`] if there is already something at `path`, [`Error::InvalidArgument`] for a key
    /// that the canonical form does not allow or an option out of range, [`Error::Io`]. Leaves at most an
    /// empty directory at `path`.
    pub fn build<K: AsRef<[u8]>>(
        self,
        path: impl AsRef<Path>,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Guard> {
        self.build_with(path.as_ref(), |visit| {
            keys.into_iter().try_for_each(|key| visit(key.as_ref()))?;
            Ok(None)
        })
    }

    /// Builds a guard of a database's keys, as [`build`](Self::build) does. Without
    /// [`canonical`](Self::canonical), the guard treats keys as equal when the database's column does
    /// ([`Guard::canonical`] returns the form).
    ///
    /// # Errors
    /// The errors of [`build`](Self::build) and of the database, and [`Error::InvalidArgument`] when the
    /// database treats keys as equal that the guard would distinguish ([`Source::equality`]).
    pub fn build_from(self, path: impl AsRef<Path>, source: &mut dyn Source) -> Result<Guard> {
        let canonical = self.canonical.unwrap_or_else(|| source.equality());
        check_equality(canonical, source)?;
        self.canonical(canonical).build_with(path.as_ref(), |visit| {
            source.stream(visit)?;
            Ok(source.note())
        })
    }

    /// `stream` visits every key and then returns the note.
    fn build_with(
        mut self,
        dir: &Path,
        stream: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Option<Vec<u8>>>,
    ) -> Result<Guard> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        self.store.validate()?;
        let dir = &*self.fs.absolute(dir)?;
        let (fs, lock) = claim(&self.named_fs(), dir)?;
        self = self.filesystem(Arc::clone(&fs));
        let policy = self.policy.unwrap_or(FilterPolicy::bits_per_key(Self::BITS_PER_KEY));
        let settings = Settings::new(self.width, self.canonical.unwrap_or_default(), policy)?;
        let build = || {
            let mut sorter = HashSorter::new(&fs, dir, settings.width);
            let note = stream(&mut |key| {
                let key = settings.canonical.apply(key)?;
                sorter.push(StoredHash::of(&key, &settings.hasher, settings.width))
            })?;
            let generation = Generation::open(dir, &settings, &self)?;
            generation.fill(sorter, note.as_deref())?;
            settings.write(&*fs, dir)?;
            Ok(generation)
        };
        match build() {
            Ok(generation) => Ok(self.guard(dir, settings, generation, lock)),
            Err(error) => {
                // Leftovers are harmless: without settings the directory is not a guard.
                let _ = fs.remove(&dir.join(SETTINGS));
                let _ = remove_leftovers(&fs, dir, "");
                let _ = fs.remove(&dir.join(LOCK));
                Err(error)
            }
        }
    }

    /// Opens the guard in the directory `path`. Reads and verifies its filters.
    ///
    /// # Errors
    /// [`Error::NotAGuard`] if there is no guard, or its canonical form differs from the given one;
    /// [`Error::FeatureMissing`] if it folds case and this build lacks the feature `unicode`;
    /// [`Error::Locked`] while it is open elsewhere; [`Error::Corruption`] for damaged settings or logs.
    pub fn open(mut self, path: impl AsRef<Path>) -> Result<Guard> {
        self.store.validate()?;
        let (dir, named) = (&*self.fs.absolute(path.as_ref())?, self.named_fs());
        if named.file_len(&dir.join(SETTINGS))?.is_none() {
            return Err(Error::NotAGuard {
                path: dir.to_path_buf(),
                what: what_it_is_instead(&*named, dir)?,
            });
        }
        Settings::read(&*named, dir)?;
        let mut fs = open_dir(&named, dir)?;
        let mode = if self.read_only { LockMode::Shared } else { LockMode::Exclusive };
        let lock = fs.lock(&dir.join(LOCK), mode)?;
        if !self.read_only {
            fs = LockedFs::wrap(fs, dir, LOCK, &*lock);
        }
        self = self.filesystem(Arc::clone(&fs));
        // Again: a refresh may have ended during the wait for the lock.
        let mut settings = Settings::read(&*fs, dir)?;
        settings.policy = self.policy.unwrap_or(settings.policy);
        let unusable = |what| Error::NotAGuard { path: dir.to_path_buf(), what };
        settings.canonical.check_features()?;
        if let Some(canonical) = self.canonical.filter(|canonical| *canonical != settings.canonical) {
            return Err(unusable(format!(
                "its keys are \"{}\", not \"{canonical}\": open it without naming them, or build another guard",
                settings.canonical
            )));
        }
        if !self.read_only {
            remove_leftovers(&fs, dir, &settings.store_name())?;
        }
        let store = settings.store(dir);
        if fs.file_len(&store)?.is_none() {
            let missing = store.display();
            return Err(unusable(format!(
                "its keys, {missing}, are missing: delete the guard and build it again"
            )));
        }
        let generation = Generation::open(dir, &settings, &self)?;
        Ok(self.guard(dir, settings, generation, lock))
    }

    fn guard(self, dir: &Path, settings: Settings, live: Generation, lock: Box<dyn LockGuard>) -> Guard {
        Guard::new(Shared {
            dir: dir.to_path_buf(),
            options: self,
            settings,
            live: ArcSwap::from_pointee(live),
            stripes: std::array::from_fn(|_| Mutex::new(())),
            in_flight: Mutex::new(InFlight::default()),
            refreshing: Mutex::new(()),
            counters: GuardCounters::default(),
            suspended: AtomicBool::new(false),
            failure: OnceLock::new(),
            process: Process::current(),
            _lock: lock,
        })
    }
}

/// Locks a directory that is missing, empty, or contains only leftovers of an interrupted build.
pub(super) fn claim(named: &Arc<dyn Fs>, dir: &Path) -> Result<(Arc<dyn Fs>, Box<dyn LockGuard>)> {
    let check = |names: Vec<String>| {
        let what = if names.iter().any(|name| name == SETTINGS) {
            "there is a guard already; refresh it, or delete the directory first"
        } else if names.iter().any(|name| name != LOCK && !is_leftover(name)) {
            "the directory is not empty; a guard needs one of its own"
        } else {
            return Ok(());
        };
        Err(Error::NotAGuard { path: dir.to_path_buf(), what: what.into() })
    };
    create_dir_durably(&**named, dir)?;
    let fs = open_dir(named, dir)?;
    check(fs.list(dir)?)?;
    let lock = fs.lock(&dir.join(LOCK), LockMode::Exclusive)?;
    let fs = LockedFs::wrap(fs, dir, LOCK, &*lock);
    check(fs.list(dir)?)?;
    remove_leftovers(&fs, dir, "")?;
    Ok((fs, lock))
}

/// Describes a place without settings. Never suggests deleting what no guard has made.
pub(super) fn what_it_is_instead(fs: &dyn Fs, dir: &Path) -> Result<String> {
    if fs.file_len(dir)?.is_none() {
        return Ok("there is nothing at this path; build a guard first".into());
    }
    let names = fs.list(dir)?;
    if fs.file_len(&dir.join(MANIFEST))?.is_some() {
        return Ok("it is a store, and has no file named GUARD: get, scan and stats read it; a guard needs its own directory".into());
    }
    Ok(match names.iter().find(|name| *name != LOCK && !is_leftover(name)) {
        Some(other) => format!(
            "it has no file named GUARD, but others, such as {}: check the path",
            show::escaped(other)
        ),
        None if names.is_empty() => {
            "it has no file named GUARD, nor any other: build a guard in it first".into()
        }
        None => "it has no file named GUARD: its build was interrupted; build it again".into(),
    })
}

#[cfg(all(test, not(feature = "unicode")))]
mod tests {
    use super::*;
    use crate::guard::canonical::Canonical;

    /// A guard that folds case is refused without the feature, and the error names it.
    #[test]
    fn folding_case_without_the_feature_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let options = GuardOptions::new().canonical(Canonical { fold: true, ..Canonical::EXACT });
        drop(options.build(dir.path(), [b"abba"; 0]).unwrap());
        let error = Guard::open(dir.path()).err().unwrap().to_string();
        assert!(error.contains("\"fold\"") && error.contains("feature `unicode`"), "{error}");
    }
}

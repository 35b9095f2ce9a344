//! Building and opening.

use super::format::{LOCK, SETTINGS, Settings, is_leftover, remove_leftovers};
use super::generation::Generation;
use super::handle::{Guard, Shared};
use super::hashed::Hashed;
use super::options::GuardOptions;
use super::sort::Sorter;
use super::source::{Source, check_equality};
use super::stats::Counters;
use super::write::Flux;
use crate::db::FilterPolicy;
use crate::error::{Error, Result};
use crate::fs::{Fs, LockGuard, LockMode, create_dir_durably};
use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

impl Guard {
    /// Builds a guard of exact keys in a new directory; see [`GuardOptions::build`].
    ///
    /// # Errors
    /// As [`GuardOptions::build`].
    pub fn build<K: AsRef<[u8]>>(path: impl AsRef<Path>, keys: impl IntoIterator<Item = K>) -> Result<Self> {
        GuardOptions::new().build(path, keys)
    }

    /// Opens a guard with default options.
    ///
    /// # Errors
    /// As [`GuardOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        GuardOptions::new().open(path)
    }
}

impl GuardOptions {
    /// Builds a guard in the directory `path`, which must be missing or empty: the key of every row, in any order. Sorts within 256 MiB
    /// of memory and on disk beyond that.
    ///
    /// # Errors
    /// [`Error::NotAGuard`] when something is at `path` already, [`Error::InvalidArgument`] for a key that the canonical form does not
    /// allow or a setting out of range, [`Error::Io`]. Then nothing is left at `path` but perhaps an empty directory.
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

    /// Builds a guard of a database's keys; otherwise as [`build`](Self::build). Unless [`canonical`](Self::canonical) is given, keys count
    /// as one when the database's column takes them for one ([`Guard::canonical`] says when).
    ///
    /// # Errors
    /// As [`build`](Self::build), the database's, and [`Error::InvalidArgument`] when the database takes more keys for one than the
    /// guard would ([`Source::equality`]).
    pub fn build_from(self, path: impl AsRef<Path>, source: &mut dyn Source) -> Result<Guard> {
        let canonical = self.canonical.unwrap_or_else(|| source.equality());
        check_equality(canonical, source)?;
        self.canonical(canonical).build_with(path.as_ref(), |visit| {
            source.stream(visit)?;
            Ok(source.note())
        })
    }

    /// `stream` visits every key and returns the note.
    fn build_with(
        self,
        dir: &Path,
        stream: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Option<Vec<u8>>>,
    ) -> Result<Guard> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        let fs = Arc::clone(&self.fs);
        let lock = claim(&*fs, dir)?;
        let policy = self.policy.unwrap_or(FilterPolicy::bits_per_key(Self::BITS_PER_KEY));
        let settings = Settings::new(self.width, self.canonical.unwrap_or_default(), policy)?;
        let build = || {
            let mut sorter = Sorter::new(Arc::clone(&fs), dir, settings.width);
            let note = stream(&mut |key| {
                let key = settings.canonical.apply(key)?;
                sorter.push(Hashed::of(&key, &settings.hasher, settings.width))
            })?;
            let generation = Generation::open(dir, &settings, &self)?;
            generation.fill(sorter, note.as_deref())?;
            settings.write(&*fs, dir)?;
            Ok(generation)
        };
        match build() {
            Ok(generation) => Ok(self.guard(dir, settings, generation, lock)),
            Err(error) => {
                // What stays is harmless: without settings it is not taken for a guard.
                let _ = fs.remove(&dir.join(SETTINGS));
                let _ = remove_leftovers(&*fs, dir, "");
                let _ = fs.remove(&dir.join(LOCK));
                Err(error)
            }
        }
    }

    /// Opens the guard in the directory `path`, with its filters read and verified.
    ///
    /// # Errors
    /// [`Error::NotAGuard`] when there is none, or one of another canonical form; [`Error::Locked`] while another process has it;
    /// [`Error::Corruption`] when its settings or its log are damaged.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Guard> {
        let dir = path.as_ref();
        let fs = Arc::clone(&self.fs);
        Settings::read(&*fs, dir)?;
        let mode = if self.read_only { LockMode::Shared } else { LockMode::Exclusive };
        let lock = fs.lock(&dir.join(LOCK), mode)?;
        let mut settings = Settings::read(&*fs, dir)?; // Again: a refresh may have ended before the lock was free.
        settings.policy = self.policy.unwrap_or(settings.policy);
        if let Some(canonical) = self.canonical.filter(|canonical| *canonical != settings.canonical) {
            return Err(Error::NotAGuard {
                path: dir.to_path_buf(),
                what: format!(
                    "its keys are \"{}\", asked for were \"{canonical}\": open it as it is, or build another",
                    settings.canonical
                ),
            });
        }
        if !self.read_only {
            remove_leftovers(&*fs, dir, &settings.store_name())?;
        }
        let store = settings.store(dir);
        if fs.file_len(&store)?.is_none() {
            return Err(Error::NotAGuard {
                path: dir.to_path_buf(),
                what: format!("its keys, {}, are missing; delete it and build it again", store.display()),
            });
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
            flux: Mutex::new(Flux::default()),
            refreshing: Mutex::new(()),
            counters: Counters::default(),
            suspended: AtomicBool::new(false),
            failure: OnceLock::new(),
            _lock: lock,
        })
    }
}

/// Takes a missing or empty directory, or one with nothing but the leftovers of a build that was cut off.
fn claim(fs: &dyn Fs, dir: &Path) -> Result<Box<dyn LockGuard>> {
    let check = |names: Vec<String>| {
        let what = if names.iter().any(|name| name == SETTINGS) {
            "there is a guard already; refresh it, or delete the directory first"
        } else if names.iter().any(|name| name != LOCK && !is_leftover(name)) {
            "the directory is not empty; give it one of its own"
        } else {
            return Ok(());
        };
        Err(Error::NotAGuard { path: dir.to_path_buf(), what: what.into() })
    };
    create_dir_durably(fs, dir)?;
    check(fs.list(dir)?)?;
    let lock = fs.lock(&dir.join(LOCK), LockMode::Exclusive)?;
    check(fs.list(dir)?)?;
    remove_leftovers(fs, dir, "")?;
    Ok(lock)
}

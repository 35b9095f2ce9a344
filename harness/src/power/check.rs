//! Opens what a crash left, and checks it against what was promised.

use super::fates;
use super::life::Image;
use super::plan::{Found, Plan, mix};
use super::promises::{Copy, Promises};
use crate::harness::Counts;
use crate::support::{Crash, Rng, STORE, SimFs};
use crate::{brief, config};
use sidebloom::{Db, Error, Options};
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::Xxh3;

/// The names and contents of all files below a directory.
pub type Digest = u128;

pub fn digest(fs: &SimFs, dir: &str) -> Digest {
    let mut digest = Xxh3::new();
    fs.visit(dir, |path, bytes| {
        let name = path.strip_prefix(dir).unwrap_or(path).as_os_str().as_encoded_bytes();
        for part in [name, bytes] {
            digest.update(&(part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    });
    digest.digest128()
}

/// The checks of one life's images.
pub struct Checker<'a> {
    pub plan: &'a Plan,
    pub promises: &'a Promises,
    pub counts: &'a Counts,
    /// The contents of each opened store; the image's files determine them.
    pub known: HashMap<Digest, Found>,
    /// The same for checkpoints; `None` if refused.
    pub copies: HashMap<Digest, Option<Found>>,
    /// The images of this life. What is done with an image does not depend on other lives and seeds, so that
    /// a seed alone repeats it.
    pub images: HashSet<Digest>,
    pub all_images: &'a Mutex<HashSet<Digest>>,
    pub rng: Rng,
}

pub type Outcome<T> = Result<T, String>;

pub fn failed(what: &str) -> impl Fn(Error) -> String + '_ {
    move |error| format!("{what}: {error}")
}

impl Checker<'_> {
    /// Checks the image after this crash. Returns the disk and the store's contents, and whether it is the
    /// first of its kind.
    pub fn check(&mut self, image: &Image, crash: Crash, seed: u64) -> Outcome<(SimFs, Found, bool)> {
        let fs = image.fs.crash(crash, seed);
        self.counts.add("images", 1);
        let key = digest(&fs, STORE);
        let is_new = self.images.insert(key);
        if is_new && self.all_images.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
            self.counts.add("distinct images", 1);
        }
        let found = match self.known.get(&key) {
            Some(found) => found.clone(),
            None => self.read(&fs, self.plan.has_filters)?,
        };
        self.known.insert(key, found.clone());
        self.promises.check_store(&image.told, &found, crash)?;
        for copy in &image.told.copies {
            self.check_copy(image, &fs, copy).map_err(|e| format!("checkpoint {}: {e}", copy.dir))?;
        }
        Ok((fs, found, is_new))
    }

    pub fn options(&mut self, fs: &SimFs) -> Options {
        let options = config::random(&mut self.rng, Arc::new(fs.clone()));
        if self.rng.percent(10) {
            return options;
        }
        // More threads find nothing else, and starting them takes longer than a recovery. So does unpacking a
        // block for each key.
        options.background_threads(2).block_cache_bytes(1 << 20)
    }

    /// Opens the store on a copy of the disk and reads it in every way. `has_filters`: every segment must
    /// have its filter.
    pub fn read(&mut self, fs: &SimFs, has_filters: bool) -> Outcome<Found> {
        let copy = fs.crash(Crash::Kill, 0);
        let read_only = if self.rng.percent(25) { Some(self.read_only(fs)?) } else { None };
        let db = self.options(&copy).open(STORE).map_err(failed("opening"))?;
        let found = self.read_open(&db)?;
        let unusable = db.verify().map_err(failed("verify"))?.unusable_filters;
        if has_filters && !unusable.is_empty() {
            return Err(format!("segments were published before their filters were durable: {unusable:?}"));
        }
        if let Some(read_only) = read_only.filter(|read_only| *read_only != found) {
            return Err(format!("read-only it holds {read_only:?}, otherwise {found:?}"));
        }
        if self.rng.percent(5) {
            db.compact().map_err(failed("compact"))?;
            let compacted = self.read_open(&db).map_err(|e| format!("compacted: {e}"))?;
            same("compacted", &compacted, &found)?;
        }
        drop(db);
        if self.rng.percent(5) {
            let db = self.options(&copy).open(STORE).map_err(failed("opening it again"))?;
            let again = self.read_open(&db).map_err(|e| format!("opened again: {e}"))?;
            same("opened again", &again, &found)?;
        }
        Ok(found)
    }

    /// The contents of the store when opened read-only.
    fn read_only(&mut self, fs: &SimFs) -> Outcome<Found> {
        // The lock file and the manifest become durable together, before the first opening returns.
        let is_begun = |error: &Error| match error {
            Error::NotAStore { .. } => true,
            Error::Io { path, .. } => path.ends_with("LOCK") && fs.read(path).is_none(),
            _ => false,
        };
        let options = if self.rng.percent(50) {
            self.options(fs).follow(true)
        } else {
            self.options(fs).read_only(true)
        };
        match options.open(STORE) {
            Ok(db) => self.read_open(&db).map_err(|e| format!("read-only: {e}")),
            Err(error) if is_begun(&error) => Ok(Found::nothing(self.plan.writers)),
            Err(error) => Err(format!("opening read-only: {error}")),
        }
    }

    pub fn read_open(&mut self, db: &Db) -> Outcome<Found> {
        let keyspaces = fates::find(db, self.plan.home.name())?;
        let Some(rows) = self.plan.home.find(db).map_err(failed("keyspace"))? else {
            return Ok(Found { keyspaces, ..Found::nothing(self.plan.writers) });
        };
        let found = Found { keyspaces, ..self.plan.identify(rows.iter())? };
        self.plan.check_lookups(&rows, &found)?;
        brief::check(db)?;
        if self.rng.percent(10) {
            let mut rows: Vec<_> = rows.iter().rev().collect();
            rows.reverse();
            same("backwards", &self.plan.identify(rows.into_iter())?.batches, &found.batches)?;
        }
        let report = db.verify().map_err(failed("verify"))?;
        if report.is_ok() { Ok(found) } else { Err(format!("verify: {:?}", report.problems)) }
    }

    /// A checkpoint whose call has returned exists. Any other is refused, or complete.
    fn check_copy(&mut self, image: &Image, fs: &SimFs, copy: &Copy) -> Outcome<()> {
        let key = digest(fs, &copy.dir);
        let found = match self.copies.get(&key) {
            Some(found) => found.clone(),
            None => self.read_copy(fs, &copy.dir)?,
        };
        self.copies.insert(key, found.clone());
        match found {
            Some(found) => self.promises.check_copy(&image.told, copy, &found),
            None if copy.is_finished() => Err("it was finished and is refused".into()),
            None => Ok(()),
        }
    }

    fn read_copy(&mut self, fs: &SimFs, dir: &str) -> Outcome<Option<Found>> {
        let fs = fs.crash(Crash::Kill, 0);
        let read_only = self.rng.percent(50);
        let options = self.options(&fs).create_if_missing(false).read_only(read_only);
        match options.open(Path::new(dir)) {
            Ok(db) => {
                self.counts.add("checkpoints", 1);
                self.read_open(&db).map(Some)
            }
            Err(Error::NotAStore { .. }) => Ok(None),
            Err(error) => Err(format!("opening: {error}")),
        }
    }
}

pub fn same<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Outcome<()> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?}, before that {expected:?}")) }
}

/// A seed for the damage to an image.
pub fn damage_seed(plan: &Plan, life: u64, image: usize, draw: usize) -> u64 {
    mix(&[plan.seed, 6, life, image as u64, draw as u64])
}

//! A filter in memory, or in its file.

use sidebloom::filter::{AnyFilter, Bloom, Verdict};
use sidebloom::{Error, MappedFilter, Result};
use std::path::{Path, PathBuf};

pub enum State {
    Held {
        filter: AnyFilter,
        /// The file with the same filter.
        path: Option<PathBuf>,
        /// How often it may have changed.
        changes: u64,
    },
    Mapped(MappedFilter),
}

/// A file that was written.
pub struct Saved {
    path: PathBuf,
    changes: u64,
    pub bytes: u64,
}

impl State {
    pub fn of(filter: AnyFilter) -> Self {
        State::Held { filter, path: None, changes: 0 }
    }

    pub fn open(path: PathBuf, mapped: bool) -> Result<Self> {
        // A path of its own, so that the filter is found from any directory.
        let path = std::path::absolute(&path).unwrap_or(path);
        Ok(if mapped {
            sidebloom::fs::catch_sigbus()?;
            State::Mapped(MappedFilter::open(path)?)
        } else {
            State::Held { filter: sidebloom::read_filter(&path)?, path: Some(path), changes: 0 }
        })
    }

    pub fn contains(&self, key: &[u8]) -> Result<Verdict> {
        match self {
            State::Held { filter, .. } => Ok(filter.contains(key)),
            State::Mapped(filter) => filter.contains(key),
        }
    }

    pub fn contains_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Verdict>> {
        match self {
            State::Held { filter, .. } => Ok(filter.contains_many(keys)),
            State::Mapped(filter) => filter.contains_many(keys),
        }
    }

    /// The filter, to be changed.
    pub fn held(&mut self) -> Result<&mut AnyFilter> {
        match self {
            State::Held { filter, path, changes } => {
                (*path, *changes) = (None, *changes + 1);
                Ok(filter)
            }
            State::Mapped(_) => Err(Error::InvalidArgument(
                "a mapped filter cannot be changed: open it with mapped=False".to_owned(),
            )),
        }
    }

    /// Lends the filter; copies a mapped one.
    pub fn with_held<T>(&self, work: impl FnOnce(&AnyFilter) -> Result<T>) -> Result<T> {
        match self {
            State::Held { filter, .. } => work(filter),
            State::Mapped(filter) => work(&filter.to_memory()?),
        }
    }

    /// Its bits as a Bloom filter, if its kind has them.
    pub fn bloom(&self) -> Result<Option<Bloom>> {
        self.with_held(|filter| {
            Ok(match filter {
                AnyFilter::Bloom(filter) => Some(filter.clone()),
                AnyFilter::Counting(filter) => Some(filter.to_bloom()?),
                _ => None,
            })
        })
    }

    pub fn save(&self, to: &Path) -> Result<Saved> {
        let path = std::path::absolute(to).unwrap_or_else(|_| to.to_path_buf());
        let bytes = self.with_held(|filter| sidebloom::write_filter(&path, filter))?;
        let changes = if let State::Held { changes, .. } = self { *changes } else { 0 };
        Ok(Saved { path, changes, bytes })
    }

    /// Notes the file, unless the filter has changed meanwhile.
    pub fn note(&mut self, saved: &Saved) {
        if let State::Held { path, changes, .. } = self
            && *changes == saved.changes
        {
            *path = Some(saved.path.clone());
        }
    }

    pub fn verify(&self) -> Result<()> {
        match self {
            State::Held { .. } => Ok(()),
            State::Mapped(filter) => filter.verify(),
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            State::Held { filter, .. } => filter.name(),
            State::Mapped(filter) => filter.name(),
        }
    }

    pub fn keys(&self) -> u64 {
        match self {
            State::Held { filter, .. } => filter.keys(),
            State::Mapped(filter) => filter.keys(),
        }
    }

    pub fn fpr(&self) -> f64 {
        match self {
            State::Held { filter, .. } => filter.fpr(),
            State::Mapped(filter) => filter.fpr(),
        }
    }

    pub fn bytes(&self) -> u64 {
        match self {
            State::Held { filter, .. } => filter.bytes(),
            State::Mapped(filter) => filter.bytes(),
        }
    }

    pub fn capacity(&self) -> Option<u64> {
        match self {
            State::Held { filter, .. } => filter.capacity(),
            State::Mapped(_) => None,
        }
    }

    pub fn path(&self) -> Option<&Path> {
        match self {
            State::Held { path, .. } => path.as_deref(),
            State::Mapped(filter) => Some(filter.path()),
        }
    }

    pub fn is_mapped(&self) -> bool {
        matches!(self, State::Mapped(_))
    }
}

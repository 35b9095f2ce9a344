//! The stores under one trait. Each has a file; what it is set to is printed with every result.

mod fjall;
mod lmdb;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sidebloom;

use crate::settings::Settings;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::Path;

/// Whatever went wrong.
pub type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// A store that is open.
pub trait Engine: Send + Sync {
    /// Writes one key; the operating system has it when this returns.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Writes many keys at once.
    fn put_all(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<()>;

    /// Copies a value to `value`; whether there is one.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// [`get`](Engine::get) for many keys; the outcome stands beside each value.
    fn multi_get(&self, keys: &[Vec<u8>], values: &mut [(bool, Vec<u8>)]) -> Result<()> {
        for (key, (found, value)) in keys.iter().zip(values) {
            *found = self.get(key, value)?;
        }
        Ok(())
    }

    /// Gives rows from `from` on, in order, until `row` returns false.
    fn scan(&self, from: &[u8], row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()>;

    /// Writes what is in memory to tables, and waits until nothing is left to compact.
    fn settle(&self) -> Result<()>;

    /// Whether a flush or a compaction runs or waits.
    fn busy(&self) -> bool;

    /// Reads filters and indexes into memory, where the engine does not do so when it is opened.
    fn warm(&self) -> Result<()> {
        Ok(())
    }

    /// What it says of itself.
    fn facts(&self) -> Result<Facts>;
}

/// What an engine says of itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Sorted runs that a lookup may have to ask; `None` for a B-tree.
    pub runs: Option<u64>,
    /// Bytes of the filters.
    pub filter_bytes: Option<u64>,
    /// Answers "maybe" for a key that was not in the run, since it was opened.
    pub false_positives: Option<u64>,
    /// Answers "absent", since it was opened.
    pub negatives: Option<u64>,
}

/// One column of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// RocksDB as it is by default: without a filter. The baseline.
    Rocksdb,
    /// RocksDB with its Bloom filter.
    RocksdbBloom,
    /// RocksDB with its Ribbon filter.
    RocksdbRibbon,
    /// This project.
    Sidebloom,
    /// This project without filters.
    SidebloomNofilter,
    /// fjall.
    Fjall,
    /// redb.
    Redb,
    /// LMDB.
    Lmdb,
}

impl Kind {
    /// Every engine of this build, the baseline first.
    pub fn all() -> Vec<Kind> {
        let rocksdb = [Kind::Rocksdb, Kind::RocksdbBloom, Kind::RocksdbRibbon];
        let others = [Kind::SidebloomNofilter, Kind::Sidebloom, Kind::Fjall, Kind::Redb, Kind::Lmdb];
        rocksdb.into_iter().filter(|_| cfg!(feature = "rocksdb")).chain(others).collect()
    }

    /// Whether a lookup may have to ask several sorted runs; a B-tree has none.
    pub fn has_runs(self) -> bool {
        !matches!(self, Kind::Redb | Kind::Lmdb)
    }

    /// As tables show it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Rocksdb => "rocksdb",
            Kind::RocksdbBloom => "rocksdb bloom",
            Kind::RocksdbRibbon => "rocksdb ribbon",
            Kind::Sidebloom => "sidebloom",
            Kind::SidebloomNofilter => "sidebloom no filter",
            Kind::Fjall => "fjall",
            Kind::Redb => "redb",
            Kind::Lmdb => "lmdb",
        }
    }

    /// Opens the store in `dir`, creating it if it is missing. `count` turns on counters that cost time, for [`Facts`].
    pub fn open(self, dir: &Path, settings: &Settings, count: bool) -> Result<Box<dyn Engine>> {
        std::fs::create_dir_all(dir)?;
        Ok(match self {
            #[cfg(feature = "rocksdb")]
            Kind::Rocksdb | Kind::RocksdbBloom | Kind::RocksdbRibbon => {
                Box::new(rocksdb::Rocks::open(self, dir, settings, count)?)
            }
            #[cfg(not(feature = "rocksdb"))]
            Kind::Rocksdb | Kind::RocksdbBloom | Kind::RocksdbRibbon => {
                let _ = count;
                return Err("this build has no RocksDB: build with --features rocksdb".into());
            }
            Kind::Sidebloom => Box::new(sidebloom::Sidebloom::open(true, dir, settings)?),
            Kind::SidebloomNofilter => Box::new(sidebloom::Sidebloom::open(false, dir, settings)?),
            Kind::Fjall => Box::new(fjall::Fjall::open(dir, settings)?),
            Kind::Redb => Box::new(redb::Redb::open(dir, settings)?),
            Kind::Lmdb => Box::new(lmdb::Lmdb::open(dir, settings)?),
        })
    }

    /// What it is set to, in words.
    pub fn settings(self, settings: &Settings) -> String {
        match self {
            #[cfg(feature = "rocksdb")]
            Kind::Rocksdb | Kind::RocksdbBloom | Kind::RocksdbRibbon => rocksdb::describe(self, settings),
            #[cfg(not(feature = "rocksdb"))]
            Kind::Rocksdb | Kind::RocksdbBloom | Kind::RocksdbRibbon => "not in this build".to_owned(),
            Kind::Sidebloom | Kind::SidebloomNofilter => sidebloom::describe(self, settings),
            Kind::Fjall => fjall::describe(settings),
            Kind::Redb => redb::describe(settings),
            Kind::Lmdb => lmdb::describe(),
        }
    }

    /// Whether a file of the store holds what the engine keeps in memory by design (mapped), so that a cold run leaves it there.
    pub fn stays_in_memory(self, file: &Path) -> bool {
        self == Kind::Sidebloom && file.extension().is_some_and(|extension| extension == "filter")
    }
}

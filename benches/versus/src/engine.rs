//! What the comparison needs of a store.

use crate::error::Result;
use crate::workload::{CacheState, WorkloadSpec};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// An open store.
pub trait Engine: Send + Sync {
    /// Writes one key. The operating system has it when this returns.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Writes many keys at once.
    fn put_all(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<()>;

    /// Copies the value of a key to `value`. Returns false, with `value` empty, when the key is missing.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// [`get`](Engine::get) for many keys. Each value comes with its result.
    fn multi_get(&self, keys: &[Vec<u8>], values: &mut [(bool, Vec<u8>)]) -> Result<()> {
        for (key, (found, value)) in keys.iter().zip(values) {
            *found = self.get(key, value)?;
        }
        Ok(())
    }

    /// Skips rows from `from` on in the engine's own way, then calls `row` with each row in key order, until
    /// it returns false.
    fn scan(&self, from: &[u8], skip: usize, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()>;

    /// Calls `row` with each key from `from` on. An engine that can leave values unread does.
    fn scan_keys(&self, from: &[u8], row: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.scan(from, 0, &mut |key, _| {
            row(key);
            true
        })
    }

    /// Counts the rows from `from` on, in a pass over them in the engine's own way.
    fn count(&self, from: &[u8]) -> Result<u64> {
        let mut rows = 0;
        self.scan_keys(from, &mut |_| rows += 1)?;
        Ok(rows)
    }

    /// Flushes memory to tables, and waits until nothing is left to compact.
    fn finish_compactions(&self) -> Result<()>;

    /// Whether a flush or a compaction is running or pending.
    fn busy(&self) -> bool;

    /// Reads filters and indexes into memory, unless opening the store has done so.
    fn warm(&self) -> Result<()> {
        Ok(())
    }

    /// The engine's own statistics.
    fn facts(&self) -> Result<EngineFacts>;
}

/// An engine's own statistics.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EngineFacts {
    /// Sorted runs that a lookup may have to search in each level, from level 0 on; `None` without runs.
    pub runs_by_level: Option<Vec<u64>>,
    /// Size of the memtables in bytes; `None` without memtables.
    #[serde(default)]
    pub memtable_bytes: Option<u64>,
    /// Size of the filters in bytes.
    pub filter_bytes: Option<u64>,
    /// "Maybe" answers for keys that were not in the run, since the store was opened.
    pub false_positives: Option<u64>,
    /// "Absent" answers, since the store was opened.
    pub negatives: Option<u64>,
}

impl EngineFacts {
    /// Sorted runs that a lookup may have to search; `None` without runs.
    pub fn runs(&self) -> Option<u64> {
        self.runs_by_level.as_ref().map(|levels| levels.iter().sum())
    }

    /// The sorted runs of each level that has any: `L0 2, L6 1`.
    pub fn describe_runs(&self) -> Option<String> {
        let levels = self.runs_by_level.as_ref()?.iter().enumerate().filter(|(_, runs)| **runs > 0);
        let levels: Vec<String> = levels.map(|(level, runs)| format!("L{level} {runs}")).collect();
        Some(if levels.is_empty() { "none".to_owned() } else { levels.join(", ") })
    }
}

/// An engine in one configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// RocksDB with its defaults, which have no filter. The baseline.
    Rocksdb,
    /// RocksDB with its Bloom filter.
    RocksdbBloom,
    /// RocksDB with its Ribbon filter.
    RocksdbRibbon,
    /// sidebloom.
    Sidebloom,
    /// sidebloom without compression.
    SidebloomPlain,
    /// sidebloom without filters.
    SidebloomNofilter,
    /// fjall.
    Fjall,
    /// redb.
    Redb,
    /// LMDB.
    Lmdb,
    /// libmdbx, which descends from LMDB.
    Libmdbx,
    /// CandyStore, a hash table, whose keys have no order.
    Candystore,
}

impl EngineKind {
    /// Every engine in this build, the baseline first.
    fn all() -> Vec<EngineKind> {
        let rocksdb = [EngineKind::Rocksdb, EngineKind::RocksdbBloom, EngineKind::RocksdbRibbon];
        let others = [
            EngineKind::SidebloomNofilter,
            EngineKind::Sidebloom,
            EngineKind::SidebloomPlain,
            EngineKind::Fjall,
            EngineKind::Redb,
            EngineKind::Lmdb,
            EngineKind::Libmdbx,
            EngineKind::Candystore,
        ];
        rocksdb.into_iter().chain(others).filter(|kind| kind.is_in_this_build()).collect()
    }

    /// The engines that a user chose, or every one.
    pub fn or_all(chosen: &[EngineKind]) -> Vec<EngineKind> {
        if chosen.is_empty() { EngineKind::all() } else { chosen.to_vec() }
    }

    fn is_in_this_build(self) -> bool {
        match self {
            EngineKind::Libmdbx => cfg!(feature = "libmdbx"),
            _ => !self.is_rocksdb() || cfg!(feature = "rocksdb"),
        }
    }

    /// Whether a lookup may have to search several sorted runs. A B-tree and a hash table have none.
    pub fn has_runs(self) -> bool {
        self.is_sidebloom() || self.is_rocksdb() || self == EngineKind::Fjall
    }

    /// Why it cannot run a workload, if it cannot.
    pub fn lacks(self, workload: &WorkloadSpec) -> Option<&'static str> {
        if self.has_order() {
            None
        } else if workload.needs_order() {
            Some("whose keys have no order")
        } else {
            let limited = workload.cache == CacheState::Limited;
            limited.then_some("whose index has to be in memory and does not fit the limit")
        }
    }

    /// Whether it has its keys in order, so that it can seek and scan.
    pub fn has_order(self) -> bool {
        self != EngineKind::Candystore
    }

    /// Whether it is sidebloom, in any configuration.
    pub fn is_sidebloom(self) -> bool {
        matches!(self, EngineKind::Sidebloom | EngineKind::SidebloomPlain | EngineKind::SidebloomNofilter)
    }

    /// Whether it is RocksDB, in any configuration.
    pub fn is_rocksdb(self) -> bool {
        matches!(self, EngineKind::Rocksdb | EngineKind::RocksdbBloom | EngineKind::RocksdbRibbon)
    }

    /// The name in tables and directories.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Rocksdb => "rocksdb",
            EngineKind::RocksdbBloom => "rocksdb bloom",
            EngineKind::RocksdbRibbon => "rocksdb ribbon",
            EngineKind::Sidebloom => "sidebloom",
            EngineKind::SidebloomPlain => "sidebloom plain",
            EngineKind::SidebloomNofilter => "sidebloom no filter",
            EngineKind::Fjall => "fjall",
            EngineKind::Redb => "redb",
            EngineKind::Lmdb => "lmdb",
            EngineKind::Libmdbx => "libmdbx",
            EngineKind::Candystore => "candystore",
        }
    }

    /// How its files keep rows, and which memory holds the rows that it reads. Those with a cache of their
    /// own read what it does not have from the page cache.
    pub fn data(self) -> &'static str {
        match self {
            EngineKind::Rocksdb | EngineKind::RocksdbBloom | EngineKind::RocksdbRibbon => "LZ4, own cache",
            EngineKind::Sidebloom | EngineKind::SidebloomNofilter => "FSST, mapped, or LZ4, own cache",
            EngineKind::Fjall => "LZ4 below level 1, own cache",
            EngineKind::Redb => "plain, own cache",
            EngineKind::SidebloomPlain | EngineKind::Lmdb | EngineKind::Libmdbx => "plain, mapped",
            EngineKind::Candystore => "plain, page cache",
        }
    }

    /// Whether the engine keeps this file mapped in memory by design: sidebloom its filters, CandyStore its
    /// index. A cold run leaves it there.
    pub fn stays_in_memory(self, file: &Path) -> bool {
        match self {
            EngineKind::Sidebloom | EngineKind::SidebloomPlain => {
                file.extension().is_some_and(|extension| extension == "filter")
            }
            EngineKind::Candystore => file.file_name().is_some_and(|name| name == "index" || name == "rows"),
            _ => false,
        }
    }
}

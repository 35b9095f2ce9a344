//! The interface of the compared stores, and their list.

use crate::error::Result;
use serde::Serialize;
use std::path::Path;

/// Block cache of each store, in MiB.
pub const CACHE_MIB: u64 = 256;
/// Memtables while stores are read, in MiB.
pub const MEMTABLE_MIB: u64 = 64;

/// An open store.
pub trait PrefixStore {
    /// Writes many rows at once.
    fn put_all(&self, rows: &[(Vec<u8>, Vec<u8>)]) -> Result<()>;

    /// Writes the memtable to a sorted run.
    fn flush(&self) -> Result<()>;

    /// Merges everything into one sorted run.
    fn compact_all(&self) -> Result<()>;

    /// Reads filters and indexes into memory, unless opening the store has done so.
    fn warm(&self) -> Result<()>;

    /// How many rows have the prefix, counted up to `most`, with its own iterator.
    fn rows(&self, prefix: &[u8], most: u64) -> Result<u64>;

    /// How many of the prefixes have rows, by the seeks of one iterator.
    fn found_by_one_iterator(&self, prefixes: &[Vec<u8>]) -> Result<u64>;

    /// Whether the store has the key.
    fn contains(&self, key: &[u8]) -> Result<bool>;

    /// The shape of the store.
    fn facts(&self) -> Result<StoreFacts>;

    /// Blocks read, or found in the cache, since the store was opened: data blocks, and in sidebloom also
    /// index blocks. RocksDB counts only if opened with statistics.
    fn block_accesses(&self) -> u64;
}

/// The shape of a store.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreFacts {
    /// Sorted runs that a lookup may have to search.
    pub runs: u64,
    /// Size of the filters in bytes.
    pub filter_bytes: u64,
}

/// A store to compare. Filters of one engine, or filters of the same members, can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    /// RocksDB's Bloom filter of keys and prefixes.
    Rocks,
    /// RocksDB's Bloom filter of prefixes (`whole_key_filtering` off).
    RocksPrefixes,
    /// RocksDB's Bloom filter of keys.
    RocksKeys,
    /// sidebloom's filters of keys and prefixes.
    Ours,
    /// sidebloom's filters of keys.
    OursKeys,
}

impl StoreKind {
    /// All of them.
    pub const ALL: [StoreKind; 5] = [
        StoreKind::Rocks,
        StoreKind::RocksPrefixes,
        StoreKind::RocksKeys,
        StoreKind::Ours,
        StoreKind::OursKeys,
    ];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            StoreKind::Rocks => "RocksDB, keys and prefixes",
            StoreKind::RocksPrefixes => "RocksDB, prefixes alone",
            StoreKind::RocksKeys => "RocksDB, keys alone",
            StoreKind::Ours => "sidebloom, keys and prefixes",
            StoreKind::OursKeys => "sidebloom, keys alone",
        }
    }

    /// The name of the directory.
    pub fn directory(self) -> &'static str {
        match self {
            StoreKind::Rocks => "rocksdb",
            StoreKind::RocksPrefixes => "rocksdb-prefixes",
            StoreKind::RocksKeys => "rocksdb-keys",
            StoreKind::Ours => "sidebloom",
            StoreKind::OursKeys => "sidebloom-keys",
        }
    }

    /// Whether filters have keys.
    pub fn has_keys(self) -> bool {
        self != StoreKind::RocksPrefixes
    }

    /// Whether filters have prefixes.
    pub fn has_prefixes(self) -> bool {
        !matches!(self, StoreKind::RocksKeys | StoreKind::OursKeys)
    }

    /// The same engine's store with the same keys in its filters, but no prefixes; `None` without keys.
    pub fn without_prefixes(self) -> Option<StoreKind> {
        match self {
            StoreKind::Rocks => Some(StoreKind::RocksKeys),
            StoreKind::Ours => Some(StoreKind::OursKeys),
            _ => None,
        }
    }

    /// Whether it is sidebloom.
    pub fn is_ours(self) -> bool {
        matches!(self, StoreKind::Ours | StoreKind::OursKeys)
    }

    /// Whether the store keeps this file mapped in memory by design. A cold run leaves it there.
    pub fn stays_in_memory(self, file: &Path) -> bool {
        self.is_ours() && file.extension().is_some_and(|extension| extension == "filter")
    }
}

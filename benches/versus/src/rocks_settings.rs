//! The RocksDB settings that a user would try for lookups: cache type, and place of indexes and filters.

use serde::{Deserialize, Serialize};

/// The block cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RocksCache {
    /// `LRUCache`, RocksDB's default.
    Lru,
    /// `HyperClockCache`.
    #[default]
    HyperClock,
}

/// Where indexes and filters live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RocksMetadata {
    /// In memory outside the cache, while the table is open: RocksDB's default.
    #[default]
    Heap,
    /// In the cache, read when the store is opened, and never evicted.
    Pinned,
    /// In the cache, evicted like blocks.
    Cached,
}

/// One choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RocksSettings {
    /// The block cache.
    pub cache: RocksCache,
    /// Whether the index and the filter of a table are cut into partitions of 4 KiB.
    pub partitioned: bool,
    /// Where indexes and filters live.
    pub metadata: RocksMetadata,
}

impl RocksSettings {
    /// All choices. Partitions always live in the cache.
    #[cfg(any(test, feature = "rocksdb"))]
    pub fn all() -> Vec<RocksSettings> {
        let places = [
            (false, RocksMetadata::Heap),
            (false, RocksMetadata::Pinned),
            (false, RocksMetadata::Cached),
            (true, RocksMetadata::Pinned),
            (true, RocksMetadata::Cached),
        ];
        let caches = [RocksCache::Lru, RocksCache::HyperClock];
        let of_cache =
            |cache| places.map(|(partitioned, metadata)| RocksSettings { cache, partitioned, metadata });
        caches.into_iter().flat_map(of_cache).collect()
    }

    /// In words.
    pub fn describe(&self) -> String {
        let cache = match self.cache {
            RocksCache::Lru => "LRUCache",
            RocksCache::HyperClock => "HyperClockCache",
        };
        let partitioned = if self.partitioned { "partitioned" } else { "whole" };
        let place = match self.metadata {
            RocksMetadata::Heap => "in memory outside the cache",
            RocksMetadata::Pinned => "pinned in the cache",
            RocksMetadata::Cached => "in the cache",
        };
        format!("{cache}, indexes and filters {partitioned} and {place}")
    }
}

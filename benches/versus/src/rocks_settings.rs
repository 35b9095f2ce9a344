//! The settings of RocksDB that a user would try for lookups: the kind of cache, and where indexes and filters live.

use crate::error::Result;
use crate::machine::Machine;
use crate::settings::RunSettings;
use serde::{Deserialize, Serialize};

/// The record of the last `versus settings`, with the choice that every other command uses.
const RECORD: &str = include_str!("../records/rocksdb.json");

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
    /// In memory beside the cache, for as long as the table is open: RocksDB's default.
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

/// What a choice measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RocksFigures {
    /// The choice.
    pub settings: RocksSettings,
    /// Mean nanoseconds of a lookup of a missing key, in memory: the median of the rounds.
    pub missing_ns: f64,
    /// Mean nanoseconds of a lookup of a present key, in memory: the median of the rounds.
    pub found_ns: f64,
    /// The sorted runs of each level of the store.
    pub runs_by_level: String,
}

/// The record of a sweep.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RocksRecord {
    /// When it began.
    pub date: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// Sizes, counts and the seed.
    pub settings: RunSettings,
    /// Rounds of each choice.
    pub rounds: u64,
    /// Every choice.
    pub figures: Vec<RocksFigures>,
    /// The choice with the lowest geometric mean of both times, so that neither outweighs the other.
    pub choice: RocksSettings,
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
            RocksMetadata::Heap => "in memory beside the cache",
            RocksMetadata::Pinned => "pinned in the cache",
            RocksMetadata::Cached => "in the cache",
        };
        format!("{cache}, indexes and filters {partitioned} and {place}")
    }
}

#[cfg(any(test, feature = "rocksdb"))]
impl RocksFigures {
    /// What the best choice has least of.
    pub fn cost(&self) -> f64 {
        (self.missing_ns * self.found_ns).sqrt()
    }
}

impl RocksRecord {
    /// The record that this program was built with.
    pub fn recorded() -> Result<Self> {
        serde_json::from_str(RECORD).map_err(|error| format!("records/rocksdb.json: {error}").into())
    }

    /// Where the choice comes from.
    pub fn describe(&self) -> String {
        format!(
            "RocksDB's cache, indexes and filters as `versus settings` measured them to be fastest, {} with {} keys: {}",
            self.date,
            crate::format::count(self.settings.num as f64),
            self.choice.describe()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_has_every_choice_and_chose_the_fastest() {
        let record = RocksRecord::recorded().unwrap();
        let measured: Vec<RocksSettings> = record.figures.iter().map(|figures| figures.settings).collect();
        assert_eq!(measured, RocksSettings::all());
        let best = record.figures.iter().min_by(|a, b| a.cost().total_cmp(&b.cost())).unwrap();
        assert_eq!(best.settings, record.choice);
    }
}

//! The settings of a run. All of them are in its JSON.

use crate::keys::{MIN_KEY_BYTES, MIN_VALUE_BYTES};
use serde::{Deserialize, Serialize};

/// Sizes, counts and the seed, the same for every engine.
#[derive(Debug, Clone, Serialize, Deserialize, clap::Args)]
pub struct RunSettings {
    /// Keys in the store
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000))]
    pub num: u64,
    /// Calls per workload that reads from memory
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub reads: u64,
    /// Calls per workload that reads from disk
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub cold_reads: u64,
    /// Calls per workload in limited memory
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..))]
    #[serde(default)]
    pub limited_reads: u64,
    /// Calls per workload that writes
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub writes: u64,
    /// Calls per workload that seeks; ycsb-e makes a quarter
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub scans: u64,
    /// Key length
    #[arg(long, value_name = "BYTES", default_value_t = 24, value_parser = clap::value_parser!(u64).range(MIN_KEY_BYTES as u64..=511))]
    pub key_bytes: u64,
    /// Value length
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u64).range(MIN_VALUE_BYTES as u64..=1 << 20))]
    pub value_bytes: u64,
    /// Cache size of each engine that has a cache
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub cache_mib: u64,
    /// Memory limit of an engine in the limited workloads, page cache included [default: a quarter of the data]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    #[serde(default)]
    pub limit_mib: Option<u64>,
    /// Size of memtables and tables in engines that have them; smaller ones give more sorted runs
    #[arg(long, value_name = "MIB", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub memtable_mib: u64,
    /// Bits per key of RocksDB's filters
    #[arg(long, value_name = "BITS", default_value_t = 10.0, value_parser = bits)]
    pub bits_per_key: f64,
    /// Puts per second of the writer in readwhilewriting
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub put_rate: u64,
    /// Seed of keys, values and their order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Sorted runs to load, each over the whole key range, with compaction disabled. 0 leaves the number to the engine.
    #[arg(skip)]
    #[serde(default)]
    pub runs: u64,
    /// Whether memory is limited.
    #[arg(skip)]
    #[serde(default)]
    pub limited: bool,
}

impl RunSettings {
    /// Makes everything smaller that the user left at its default.
    pub fn shrink(&mut self) {
        let defaults = [(1_000_000, &mut self.num, 200_000), (200_000, &mut self.reads, 30_000)];
        let more = [
            (2_000, &mut self.cold_reads, 300),
            (5_000, &mut self.limited_reads, 1_000),
            (200_000, &mut self.writes, 20_000),
            (10_000, &mut self.scans, 1_000),
            (8, &mut self.memtable_mib, 2),
        ];
        for (default, value, quick) in defaults.into_iter().chain(more) {
            if *value == default {
                *value = quick;
            }
        }
    }

    /// Cache size in bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.cache_mib << 20
    }

    /// Size of the keys and values that a load writes, in bytes.
    pub fn data_bytes(&self) -> u64 {
        self.num * (self.key_bytes + self.value_bytes)
    }

    /// Memory limit of the limited workloads, in bytes.
    pub fn limit_bytes(&self) -> u64 {
        // The kernel rounds down to whole pages.
        self.limit_mib.map_or(self.data_bytes() / 4, |mib| mib << 20) & !0xffff
    }

    /// The settings in limited memory. Half of the limit is for the engine's cache, if it has one. Filters, indexes, other allocations
    /// and the page cache share the other half.
    pub fn in_limited_memory(&self) -> RunSettings {
        RunSettings { cache_mib: (self.limit_bytes() >> 21).max(1), limited: true, ..self.clone() }
    }

    /// The settings for loading sorted runs, each from one memtable.
    pub fn for_making_runs(&self) -> RunSettings {
        RunSettings { memtable_mib: 1024, ..self.clone() }
    }

    /// Memtable size in bytes.
    pub fn memtable_bytes(&self) -> u64 {
        self.memtable_mib << 20
    }
}

#[cfg(test)]
impl RunSettings {
    /// The settings of a command line.
    pub fn of_flags(flags: &str) -> Self {
        #[derive(clap::Parser)]
        struct SettingsFlags {
            #[command(flatten)]
            settings: RunSettings,
        }
        let words = std::iter::once("versus").chain(flags.split_whitespace());
        <SettingsFlags as clap::Parser>::parse_from(words).settings
    }
}

fn bits(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|bits| (1.0..=64.0).contains(bits))
        .ok_or_else(|| "expected a number from 1 to 64".to_owned())
}

//! The settings of an execution. All of them are in its JSON.

use crate::keys::{MIN_KEY_BYTES, MIN_VALUE_BYTES};
use crate::rocks_filter::RocksFilter;
use crate::rocks_settings::RocksSettings;
use serde::{Deserialize, Serialize};

/// A realistic size: 1.24 GB of keys and values, five times the cache.
const NUM: u64 = 10_000_000;
const READS: u64 = 200_000;
const COLD_READS: u64 = 20_000;
const LIMITED_READS: u64 = 5_000;
const WRITES: u64 = 200_000;
const SCANS: u64 = 10_000;
/// The default of RocksDB, fjall and sidebloom.
const MEMTABLE_MIB: u64 = 64;
const ROWS: u64 = 200_000;
const WRITTEN: u64 = 200_000;
const WRITTEN_ROW_BYTES: u64 = 1024;
/// Enough for a sorted run to be flushed at once.
pub const RUN_MEMTABLE_MIB: u64 = 1024;

/// Sizes, counts and the seed, the same for every engine.
#[derive(Debug, Clone, Serialize, Deserialize, clap::Args)]
pub struct BenchSettings {
    /// Keys in the store
    #[arg(long, value_name = "N", default_value_t = NUM, value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000))]
    pub num: u64,
    /// Calls per workload that reads from memory
    #[arg(long, value_name = "N", default_value_t = READS, value_parser = clap::value_parser!(u64).range(1..))]
    pub reads: u64,
    /// Calls per workload that reads from disk
    #[arg(long, value_name = "N", default_value_t = COLD_READS, value_parser = clap::value_parser!(u64).range(1..))]
    pub cold_reads: u64,
    /// Calls per workload in limited memory
    #[arg(long, value_name = "N", default_value_t = LIMITED_READS, value_parser = clap::value_parser!(u64).range(1..))]
    #[serde(default)]
    pub limited_reads: u64,
    /// Calls per workload that writes
    #[arg(long, value_name = "N", default_value_t = WRITES, value_parser = clap::value_parser!(u64).range(1..))]
    pub writes: u64,
    /// Calls per workload that seeks; ycsb-e makes a quarter, and those that skip rows a twentieth
    #[arg(long, value_name = "N", default_value_t = SCANS, value_parser = clap::value_parser!(u64).range(1..))]
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
    /// Memory limit of an engine in the limited workloads, page cache included [default: a quarter of the
    /// data]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    #[serde(default)]
    pub limit_mib: Option<u64>,
    /// Size of memtables in engines that have them; smaller ones give more sorted runs
    #[arg(long, value_name = "MIB", default_value_t = MEMTABLE_MIB, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub memtable_mib: u64,
    /// Size of tables in engines that have them [default: each engine's own]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1024))]
    #[serde(default)]
    pub table_mib: Option<u64>,
    /// Rows of the second store, which short ranges and threads read; it fits each engine's cache
    #[arg(long, value_name = "N", default_value_t = ROWS, value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000))]
    #[serde(default)]
    pub rows: u64,
    /// Value length in the second store
    #[arg(long, value_name = "BYTES", default_value_t = 840, value_parser = clap::value_parser!(u64).range(MIN_VALUE_BYTES as u64..=1 << 20))]
    #[serde(default)]
    pub row_bytes: u64,
    /// Rows of 1,024 bytes of a store that is read right after each of them was written twice
    #[arg(long, value_name = "N", default_value_t = WRITTEN, value_parser = clap::value_parser!(u64).range(1000..=100_000_000))]
    #[serde(default)]
    pub written: u64,
    /// Bits per key of RocksDB's filters
    #[arg(long, value_name = "BITS", default_value_t = 10.0, value_parser = bits)]
    pub bits_per_key: f64,
    /// Puts per second of the writer in readwhilewriting
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub put_rate: u64,
    /// Seed of keys, values and their order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Sorted runs to load, each over the whole key range, with compaction disabled. 0 leaves the number to
    /// the engine.
    #[arg(skip)]
    #[serde(default)]
    pub runs: u64,
    /// RocksDB's settings for lookups.
    #[arg(skip)]
    #[serde(default)]
    pub rocks: RocksSettings,
    /// RocksDB's filter, in place of the engine's own, for `versus policies`.
    #[arg(skip)]
    #[serde(default)]
    pub rocks_filter: Option<RocksFilter>,
    /// Whether memory is limited.
    #[arg(skip)]
    #[serde(default)]
    pub limited: bool,
}

/// A number given by the user, or its default, which `--quick` makes smaller.
pub fn given_or(given: Option<u64>, quick: bool, full: u64, small: u64) -> u64 {
    given.unwrap_or(if quick { small } else { full })
}

impl BenchSettings {
    /// The settings of a store of this many keys, otherwise the defaults. Small memtables have small tables.
    pub fn of_size(num: u64, memtable_mib: u64, rocks: RocksSettings) -> Self {
        BenchSettings {
            num,
            reads: READS,
            cold_reads: COLD_READS,
            limited_reads: LIMITED_READS,
            writes: WRITES,
            scans: SCANS,
            key_bytes: 24,
            value_bytes: 100,
            cache_mib: 256,
            limit_mib: None,
            memtable_mib,
            table_mib: (memtable_mib < MEMTABLE_MIB).then_some(memtable_mib),
            rows: ROWS,
            row_bytes: 840,
            written: WRITTEN,
            bits_per_key: 10.0,
            put_rate: 10_000,
            seed: 1,
            runs: 0,
            rocks,
            rocks_filter: None,
            limited: false,
        }
    }

    /// The settings for a minute: everything that the user left at its default gets smaller.
    pub fn shrink(&mut self) {
        self.replace_defaults(200_000, 300, 2);
        let more = [
            (READS, &mut self.reads, 30_000),
            (LIMITED_READS, &mut self.limited_reads, 1_000),
            (WRITES, &mut self.writes, 20_000),
            (SCANS, &mut self.scans, 1_000),
            (ROWS, &mut self.rows, 5_000),
            (WRITTEN, &mut self.written, 10_000),
        ];
        for (default, value, quick) in more {
            if *value == default {
                *value = quick;
            }
        }
    }

    /// The settings of a sweep, which loads many stores: sizes for ten minutes, unless the user chose others.
    pub fn shrink_for_sweep(&mut self) {
        self.replace_defaults(1_000_000, 2_000, 8);
    }

    /// Small memtables give a small store several sorted runs, and its tables are as small.
    fn replace_defaults(&mut self, num: u64, cold_reads: u64, memtable_mib: u64) {
        if self.num == NUM {
            self.num = num;
        }
        if self.cold_reads == COLD_READS {
            self.cold_reads = cold_reads;
        }
        if self.memtable_mib == MEMTABLE_MIB {
            self.memtable_mib = memtable_mib;
            self.table_mib = self.table_mib.or(Some(memtable_mib));
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

    /// Whether keys and values fit the cache, with room for the engine's overhead.
    pub fn fits_cache(&self) -> bool {
        self.data_bytes() <= self.cache_bytes() / 4 * 3
    }

    /// The settings of the second store.
    pub fn for_rows(&self) -> BenchSettings {
        BenchSettings { num: self.rows, value_bytes: self.row_bytes, ..self.clone() }
    }

    /// The settings of a store that is read as it was written.
    pub fn for_written(&self) -> BenchSettings {
        BenchSettings { num: self.written, value_bytes: WRITTEN_ROW_BYTES - self.key_bytes, ..self.clone() }
    }

    /// Memory limit of the limited workloads, in bytes.
    pub fn limit_bytes(&self) -> u64 {
        // The kernel rounds down to whole pages.
        self.limit_mib.map_or(self.data_bytes() / 4, |mib| mib << 20) & !0xffff
    }

    /// The settings in limited memory. Half of the limit is for the engine's cache, if it has one. Filters,
    /// indexes, other allocations and the page cache share the other half.
    pub fn in_limited_memory(&self) -> BenchSettings {
        BenchSettings { cache_mib: (self.limit_bytes() >> 21).max(1), limited: true, ..self.clone() }
    }

    /// The settings for loading sorted runs, each from one memtable.
    pub fn for_making_runs(&self) -> BenchSettings {
        BenchSettings { memtable_mib: RUN_MEMTABLE_MIB, table_mib: Some(RUN_MEMTABLE_MIB), ..self.clone() }
    }

    /// Memtable size in bytes.
    pub fn memtable_bytes(&self) -> u64 {
        self.memtable_mib << 20
    }

    /// Table size in bytes; `None` leaves it to the engine.
    pub fn table_bytes(&self) -> Option<u64> {
        self.table_mib.map(|mib| mib << 20)
    }

    /// Memtable and table size, in words.
    pub fn describe_tables(&self) -> String {
        let tables = self
            .table_mib
            .map_or("tables of the engine's default size".to_owned(), |mib| format!("tables {mib} MiB"));
        format!("memtable {} MiB, {tables}", self.memtable_mib)
    }
}

#[cfg(test)]
impl BenchSettings {
    /// The settings of a command line.
    pub fn of_flags(flags: &str) -> Self {
        #[derive(clap::Parser)]
        struct SettingsFlags {
            #[command(flatten)]
            settings: BenchSettings,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_runs_and_sweeps_keep_their_sizes_and_what_the_user_chose() {
        let mut quick = BenchSettings::of_flags("--num 20000");
        quick.shrink();
        assert_eq!([quick.num, quick.cold_reads, quick.rows], [20_000, 300, 5_000]);
        assert_eq!((quick.memtable_mib, quick.table_mib), (2, Some(2)));
        let mut sweep = BenchSettings::of_flags("--table-mib 4");
        sweep.shrink_for_sweep();
        assert_eq!((sweep.num, sweep.memtable_mib, sweep.table_mib), (1_000_000, 8, Some(4)));
    }

    #[test]
    fn a_full_run_has_a_store_five_times_the_cache_and_rows_that_fit_it() {
        let settings = BenchSettings::of_flags("");
        assert_eq!((settings.num, settings.memtable_mib, settings.table_mib), (10_000_000, 64, None));
        assert!(!settings.fits_cache() && settings.for_rows().fits_cache());
    }
}

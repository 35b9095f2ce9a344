//! The options of `sidebloom bench`.

use super::keys::MIN_KEY_BYTES;
use super::workload::Workload;
use crate::human::{parse_bits, parse_bytes};

/// Measure workloads of db_bench and YCSB
///
/// Runs the workloads in the order given, on a store in a temporary directory (or in the new directory that --db names, which
/// stays). If the first one is not a fill, fillrandom comes before it; a second fill begins with an empty store.
///
/// Throughput and mean are those of the whole run. Percentiles are of single calls (16 keys for multireadrandom, --batch puts for
/// fills); runs of 100,000 calls a thread and more time 1 call in 16, since reading the clock costs about 25 ns. Disk reads are
/// the device's, for the whole machine (/proc/diskstats): use a quiet one; disk bytes are this process's (/proc/self/io). False
/// positives are a share of the filters asked for absent keys.
#[derive(clap::Args)]
pub struct Args {
    /// Workloads, separated by commas or blanks
    #[arg(value_enum, value_delimiter = ',',
          default_values = ["fillrandom", "readrandom", "readmissing", "multireadrandom", "seekrandom", "scan"])]
    pub workloads: Vec<Workload>,
    /// Keys to load
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=u64::from(u32::MAX)))]
    pub num: u64,
    /// Operations of each workload that is not a fill [default: --num]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub reads: Option<u64>,
    /// Length of a key
    #[arg(long, value_name = "BYTES", default_value_t = 24, value_parser = clap::value_parser!(u64).range(MIN_KEY_BYTES as u64..=65536))]
    pub key_bytes: u64,
    /// Length of a value
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=64 << 20))]
    pub value_bytes: u64,
    /// Threads that call
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: u64,
    /// Puts in a write of fillseq, fillrandom and overwrite
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub batch: u64,
    /// Block cache, in bytes or with K, M or G
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = parse_bytes)]
    pub cache_bytes: u64,
    /// Before each workload that only reads, reopen the store, warm its filters and drop the page cache
    #[arg(long)]
    pub cold: bool,
    /// Whether filters are written and asked
    #[arg(long, value_enum, default_value_t = FilterUse::On)]
    pub filters: FilterUse,
    /// Bits of a filter for each key [default: the library's policy]
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    pub bits_per_key: Option<f64>,
    /// How blocks are compressed
    #[arg(long, value_enum, default_value_t = CompressionName::Lz4)]
    pub compression: CompressionName,
    /// Of keys, values and their order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Run on the store that is there, loaded before with the same --num, --key-bytes and --seed
    #[arg(long)]
    pub use_existing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FilterUse {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CompressionName {
    None,
    Lz4,
    Zstd,
}

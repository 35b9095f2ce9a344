//! The options of `sidebloom bench`.

use super::keys::MIN_KEY_BYTES;
use super::workload::Workload;
use crate::compression;
use crate::human::{parse_bits, parse_bytes};
use sidebloom::Compression;

/// Measure workloads of db_bench and YCSB
///
/// Runs the workloads in the given order, in a temporary directory, or in the new directory given with --db,
/// which is kept. If the first workload is not a fill, fillrandom runs first. Each further fill starts with
/// an empty store.
///
/// Throughput and mean cover the whole workload. Percentiles are of single calls (16 keys for
/// multireadrandom, --batch puts for fills). From 100,000 calls per thread on, 1 call in 16 is timed, since
/// reading the clock takes about 25 ns. Disk reads are counted by the device for the whole machine
/// (/proc/diskstats), so use a quiet one; disk bytes are this process's (/proc/self/io). False positives are
/// relative to the filter probes for absent keys.
#[derive(clap::Args)]
pub struct Args {
    /// Workloads, separated by commas or spaces
    #[arg(value_enum, value_delimiter = ',',
          default_values = ["fillrandom", "readrandom", "readmissing", "multireadrandom", "seekrandom", "scan"])]
    pub workloads: Vec<Workload>,
    /// Number of keys to load
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=u64::from(u32::MAX)))]
    pub num: u64,
    /// Operations of each workload other than fills [default: --num]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub reads: Option<u64>,
    /// Length of a key
    #[arg(long, value_name = "BYTES", default_value_t = 24, value_parser = clap::value_parser!(u64).range(MIN_KEY_BYTES as u64..=65536))]
    pub key_bytes: u64,
    /// Length of a value
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=64 << 20))]
    pub value_bytes: u64,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: u64,
    /// Spread the keys over this many keyspaces, in turn; multireadrandom reads from one per call
    /// [default: all in the default keyspace]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub keyspaces: Option<u64>,
    /// Puts per write in fillseq, fillrandom and overwrite
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub batch: u64,
    /// Block cache, in bytes or with K, M or G
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = parse_bytes)]
    pub cache_bytes: u64,
    /// Before each read-only workload, reopen the store, load its filters and drop the page cache
    #[arg(long)]
    pub cold: bool,
    /// Whether to write and use filters
    #[arg(long, value_enum, default_value_t = FilterUse::On)]
    pub filters: FilterUse,
    /// Filter bits per key [default: the library's policy]
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    pub bits_per_key: Option<f64>,
    /// Compression of blocks
    #[arg(long, value_parser = compression::parser(), default_value = Compression::default().name())]
    pub compression: Compression,
    /// Seed of keys, values and their order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Use the existing store at --db, loaded before with the same --num, --key-bytes, --seed and
    /// --keyspaces
    #[arg(long)]
    pub use_existing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FilterUse {
    On,
    Off,
}

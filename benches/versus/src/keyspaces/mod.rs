//! `versus keyspaces`: keyspaces of sidebloom, RocksDB's column families, fjall's keyspaces, redb's tables
//! and LMDB's named databases.
//!
//! 1. Load three large keyspaces with different filters, find every row, time lookups in each, then batches
//!    across all of them.
//! 2. Create and fill many small keyspaces, and open the store with all of them.
//! 3. Drop a large keyspace next to another one.
//!
//! Each step runs in a process of its own, in every store in turn, with the same keys in the same order.

mod comparison;
mod dropping;
mod fjall_store;
mod kind;
mod large;
mod lmdb_store;
mod record;
mod redb_store;
#[cfg(feature = "rocksdb")]
mod rocks;
mod rows;
mod sidebloom_store;
mod small;
mod store;
mod stores;
mod tables;
mod task;
mod worker;

use crate::error::Result;
use crate::format;
use crate::machine::Machine;
use crate::output::Output;
use crate::quiet;
use crate::rocks_record::RocksRecord;
use crate::settings::{BenchSettings, given_or};
use crate::terminal::progress;
use comparison::Comparison;
use kind::StoreKind;
use record::{KeyspaceSettings, KeyspacesRecord, StoreResult};
use std::time::Instant;
pub use worker::main as worker_main;

/// File of the results, in the output directory.
const KEYSPACES_FILE: &str = "keyspaces.json";

/// A part of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Three large keyspaces with different filters.
    Large,
    /// Many small keyspaces.
    Small,
    /// Dropping a keyspace.
    Drop,
}

/// Measure keyspaces: tables on the terminal, all figures in DIR/keyspaces.json
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    output: Output,
    /// Fewer rows, lookups, keyspaces and rounds, and smaller memtables
    #[arg(long)]
    quick: bool,
    /// Rows of each of the three large keyspaces [default: 4000000; with --quick: 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000))]
    num: Option<u64>,
    /// Lookups of present and of missing keys in each of them, in a round [default: 200000; with --quick:
    /// 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    reads: Option<u64>,
    /// Batches of three rows, one for each of them, in a round [default: 100000; with --quick: 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    batches: Option<u64>,
    /// Small keyspaces of 100 rows [default: 1000; with --quick: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    small: Option<u64>,
    /// Size of the keys and values of the keyspace that is dropped [default: 1000000000; with --quick:
    /// 20000000]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1_000_000..=1 << 40))]
    drop_bytes: Option<u64>,
    /// Compact the large keyspaces after the load, instead of leaving their shape to each store
    #[arg(long)]
    compact: bool,
    /// Parts to run [default: all]
    #[arg(long, value_name = "PART,…", value_delimiter = ',')]
    parts: Vec<Part>,
    /// Stores to compare [default: all]
    #[arg(long, value_name = "STORE,…", value_delimiter = ',')]
    engines: Vec<StoreKind>,
    /// Rounds [default: 3; with --quick: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: Option<u64>,
    /// Size of memtables in stores that have them [default: 64; with --quick: 2]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1024))]
    memtable_mib: Option<u64>,
}

impl Args {
    /// Measures, prints and writes the figures.
    pub fn run(self) -> Result<()> {
        let begin = Instant::now();
        let size = |given, full, small| given_or(given, self.quick, full, small);
        let chosen = RocksRecord::recorded()?;
        let num = size(self.num, 4_000_000, 20_000);
        let bench = BenchSettings::of_size(num, size(self.memtable_mib, 64, 2), chosen.choice);
        let settings = KeyspaceSettings {
            num,
            reads: size(self.reads, 200_000, 10_000),
            batches: size(self.batches, 100_000, 2_000),
            small: size(self.small, 1_000, 50),
            drop_bytes: size(self.drop_bytes, 1_000_000_000, 20_000_000),
            rounds: size(self.rounds, 3, 1),
            compact: self.compact,
            bench,
        };
        let stores = self.output.create()?;
        quiet::warn_of_others();
        let result = |kind| StoreResult::new(kind, stores::describe(kind, &settings.bench));
        let record = KeyspacesRecord {
            date: format::now(),
            machine: Machine::here(&stores),
            stores: StoreKind::or_all(&self.engines).into_iter().map(result).collect(),
            settings: settings.clone(),
            notes: vec![chosen.describe()],
        };
        record.print_head()?;
        let mut comparison = Comparison::new(record, &stores)?;
        let wants = |part| self.parts.is_empty() || self.parts.contains(&part);
        if wants(Part::Large) {
            comparison.measure_large()?;
        }
        if wants(Part::Small) {
            comparison.measure_small()?;
        }
        if wants(Part::Drop) {
            comparison.measure_drop()?;
        }
        progress("");
        comparison.record.print()?;
        self.output.write(KEYSPACES_FILE, &comparison.record)?;
        self.output.say_where(KEYSPACES_FILE, Some(begin.elapsed().as_secs_f64()))
    }
}

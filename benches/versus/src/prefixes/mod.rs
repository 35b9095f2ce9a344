//! `versus prefixes`: lookups of absent prefixes, with RocksDB's prefix Bloom and sidebloom's prefix filters.
//!
//! 1. Load the same rows into each store, as the same sorted runs. All rows of a prefix are in one run.
//! 2. Find every prefix and all of its rows in every store, and count the answers for absent prefixes.
//! 3. Time lookups in memory, in rounds, each with the same lookups in every store in turn.
//! 4. Time absent prefixes from disk, in rounds: reopen each store, with its blocks out of the page cache.

mod measure;
mod record;
mod rocks;
mod rows;
mod sidebloom_store;
mod store;
mod tables;

use crate::error::Result;
use crate::format;
use crate::machine::Machine;
use crate::output::Output;
use crate::quiet;
use crate::rocks_record::RocksRecord;
use crate::settings::given_or;
use crate::terminal::progress;
use measure::Comparison;
use record::{PrefixSettings, PrefixesRecord, StoreResult};
use rows::ROWS_MAX;
use std::time::Instant;
use store::StoreKind;

/// File of the results, in the output directory.
const PREFIXES_FILE: &str = "prefixes.json";

/// Measure lookups of absent prefixes: tables on the terminal, all figures in DIR/prefixes.json
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    output: Output,
    /// Fewer prefixes, lookups and rounds
    #[arg(long)]
    quick: bool,
    /// Distinct prefixes in a store [default: 1000000; with --quick: 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..=100_000_000))]
    prefixes: Option<u64>,
    /// Rows of each prefix
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=ROWS_MAX))]
    rows: u64,
    /// Lookups of each kind in a round, in memory [default: 200000; with --quick: 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..=100_000_000))]
    reads: Option<u64>,
    /// Lookups of absent prefixes in a round, from disk [default: 2000; with --quick: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    cold_reads: Option<u64>,
    /// Rounds [default: 5; with --quick: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: Option<u64>,
}

impl Args {
    /// Measures, prints and writes the figures.
    pub fn run(self) -> Result<()> {
        let begin = Instant::now();
        let size = |given, full, small| given_or(given, self.quick, full, small);
        let settings = PrefixSettings {
            prefixes: size(self.prefixes, 1_000_000, 20_000),
            rows: self.rows,
            reads: size(self.reads, 200_000, 20_000),
            cold_reads: size(self.cold_reads, 2_000, 200),
            rounds: size(self.rounds, 5, 1),
        };
        let stores = self.output.create()?;
        let chosen = RocksRecord::recorded()?;
        quiet::warn_of_others();
        let record = PrefixesRecord {
            date: format::now(),
            machine: Machine::here(&stores),
            engines: [rocks::describe(&chosen.choice), sidebloom_store::describe()],
            settings,
            stores: StoreKind::ALL.map(StoreResult::new).into(),
            notes: vec![chosen.describe()],
        };
        record.print_head()?;
        let mut comparison = Comparison::new(record, &stores, chosen.choice)?;
        comparison.load()?;
        comparison.count()?;
        comparison.time_warm()?;
        comparison.time_cold()?;
        progress("");
        comparison.record.print()?;
        self.output.write(PREFIXES_FILE, &comparison.record)?;
        self.output.say_where(PREFIXES_FILE, Some(begin.elapsed().as_secs_f64()))
    }
}

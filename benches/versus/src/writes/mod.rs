//! `versus writes`: conditional writes and transactions, of sidebloom and of other stores.
//!
//! 1. Load the same rows into each store.
//! 2. Time puts and inserts, then transactions, in rounds, each with the same keys in every store in turn.
//!    Nobody compacts while another store is timed.
//! 3. Time commits that validate what a transaction has read.
//! 4. Keep a transaction open while others write, and commit it.
//!
//! Every answer is checked: what an insert found, and after transactions how often each key was updated.

mod candy_store;
mod change;
mod comparison;
mod fjall_optimistic;
mod fjall_single;
mod inserts;
mod kind;
mod lmdb_store;
mod long;
mod optimistic;
pub mod page;
mod record;
mod redb_store;
#[cfg(feature = "rocksdb")]
mod rocks;
#[cfg(feature = "rocksdb")]
mod rocks_optimistic;
mod rows;
mod sidebloom_store;
mod store;
mod stores;
mod tables;
mod targets;
mod transactions;
mod validation;
mod workload;

use crate::error::Result;
use crate::format;
use crate::keys::YcsbZipf;
use crate::machine::Machine;
use crate::output::Output;
use crate::quiet::{self, CpuSample};
use crate::rocks_record::RocksRecord;
use crate::settings::{BenchSettings, given_or};
use crate::terminal::progress;
use comparison::{Comparison, SEED};
use kind::StoreKind;
use page::WRITES_FILE;
use record::{StoreResult, WriteSettings, WritesRecord};
use rows::{InsertPlan, add_writes};
use std::time::Instant;
use workload::Workload;

/// Measure conditional writes and transactions: tables on the terminal, all figures in DIR/writes.json
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    output: Output,
    /// Fewer keys, calls and rounds, smaller memtables, and a shorter long transaction
    #[arg(long)]
    quick: bool,
    /// Keys in a store [default: 10000000; with --quick: 50000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2000..=1_000_000_000))]
    keys: Option<u64>,
    /// Inserts of each kind in a round [default: 500000; with --quick: 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    inserts: Option<u64>,
    /// Inserts in a round with the store out of the page cache [default: 20000; with --quick: 500]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    cold_inserts: Option<u64>,
    /// Transactions of each kind in a round [default: 100000; with --quick: 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    transactions: Option<u64>,
    /// Commits of which each kind of validation is timed [default: 400; with --quick: 40]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(8..=1_000_000))]
    validations: Option<u64>,
    /// Length of the long transaction [default: 60; with --quick: 2]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    long_seconds: Option<u64>,
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
        let keys = size(self.keys, 10_000_000, 50_000);
        let bench = BenchSettings::of_size(keys, size(self.memtable_mib, 64, 2), chosen.choice);
        let settings = WriteSettings {
            keys,
            inserts: size(self.inserts, 500_000, 10_000),
            cold_inserts: size(self.cold_inserts, 20_000, 500),
            transactions: size(self.transactions, 100_000, 2_000),
            validations: size(self.validations, 400, 40),
            long_seconds: size(self.long_seconds, 60, 2),
            rounds: size(self.rounds, 3, 1),
            memtable_mib: bench.memtable_mib,
            cache_mib: bench.cache_mib,
        };
        let stores = self.output.create()?;
        quiet::warn_of_others();
        let result = |kind| StoreResult::new(kind, stores::describe(kind, &bench));
        let record = WritesRecord {
            date: format::now(),
            machine: Machine::here(&stores),
            settings,
            stores: StoreKind::or_all(&self.engines).into_iter().map(result).collect(),
            notes: vec![chosen.describe()],
        };
        record.print_head()?;
        let mut comparison = Comparison::new(record, &stores, bench)?;
        comparison.load()?;
        comparison.time_rounds()?;
        comparison.time_validation()?;
        comparison.run_long()?;
        progress("");
        comparison.record.print()?;
        self.output.write(WRITES_FILE, &comparison.record)?;
        self.output.say_where(WRITES_FILE, Some(begin.elapsed().as_secs_f64()))
    }
}

impl Comparison {
    /// Times every workload in every store, in rounds.
    fn time_rounds(&mut self) -> Result<()> {
        let (begin, rounds) = (CpuSample::now(), self.record.settings.rounds);
        let zipf = YcsbZipf::new(self.rows.num);
        let has_disk = !self.is_in_memory();
        if !has_disk {
            let note = "no cold inserts: the stores are in a memory-backed file system";
            self.record.notes.push(note.to_owned());
        }
        // Cold inserts come first, in the stores as they were loaded: what the others add makes more runs.
        let (cold, warm): (Vec<_>, Vec<_>) = Workload::ALL.into_iter().partition(|of| of.is_cold());
        for (workloads, round) in [cold, warm].iter().flat_map(|of| (0..rounds).map(move |round| (of, round)))
        {
            for &workload in workloads {
                progress(&format!("round {}/{rounds}: {}", round + 1, workload.name()));
                if workload.is_transactional() {
                    self.time_transactions(workload, round, workload.is_zipf().then_some(&zipf))?;
                } else if has_disk || !workload.is_cold() {
                    self.time_inserts(workload, round)?;
                }
            }
        }
        self.note_others("the rounds", &begin);
        Ok(())
    }

    fn time_inserts(&mut self, workload: Workload, round: u64) -> Result<()> {
        let settings = &self.record.settings;
        let is_cold = workload.is_cold();
        let plan = InsertPlan {
            first: self.next_new,
            rows: if is_cold { settings.cold_inserts } else { settings.inserts },
            half: workload == Workload::InsertHalf,
            seed: SEED ^ self.next_new << 8,
        };
        for (at, kind) in self.kinds().into_iter().enumerate() {
            if workload.suits(kind) {
                let pass = self.insert_pass(kind, workload, round, plan)?;
                self.record.stores[at].passes.extend(pass);
            }
        }
        self.next_new += plan.rows;
        Ok(())
    }

    fn time_transactions(&mut self, workload: Workload, round: u64, zipf: Option<&YcsbZipf>) -> Result<()> {
        let threads = workload.threads();
        let each = self.record.settings.transactions / threads;
        let seed = |thread| SEED ^ (round + 1) << 40 ^ (workload as u64 + 1) << 32 ^ (thread + 1) << 56;
        let picked: Vec<_> =
            (0..threads).map(|thread| self.rows.transactions(each, zipf, seed(thread))).collect();
        for (at, kind) in self.kinds().into_iter().enumerate() {
            if workload.suits(kind) {
                let pass = self.transaction_pass(kind, workload, round, &picked)?;
                self.record.stores[at].passes.push(pass);
            }
        }
        picked.iter().for_each(|picked| add_writes(&mut self.written, picked));
        Ok(())
    }
}

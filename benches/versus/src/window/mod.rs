//! `versus window`: ids that are remembered for a while.
//!
//! A stream of ids passes through a store that tells which of them it has not seen within the last window,
//! and remembers those. Each store runs in a process of its own, one after the other, with the same ids in
//! the same order.

mod fjall_store;
mod kind;
mod measure;
mod record;
mod redis_server;
mod redis_store;
mod redisbloom_store;
#[cfg(feature = "rocksdb")]
mod rocks;
mod sidebloom_store;
#[cfg(feature = "slatedb")]
mod slatedb_store;
mod store;
mod stores;
mod stream;
mod tables;
mod task;
mod worker;

use crate::error::Result;
use crate::format;
use crate::machine::Machine;
use crate::output::{Output, StoreDirs};
use crate::quiet::{self, CpuSample};
use crate::rocks_record::RocksRecord;
use crate::settings::{BenchSettings, given_or};
use crate::terminal::progress;
use kind::StoreKind;
use record::{StoreResult, WindowRecord, WindowSettings};
use std::path::PathBuf;
use std::time::Instant;
use stream::Stream;
use task::WindowTask;
pub use worker::main as worker_main;

/// File of the results, in the output directory.
const WINDOW_FILE: &str = "window.json";

/// Measure a window of ids: a table on the terminal, all figures in DIR/window.json
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    output: Output,
    /// Fewer ids, and smaller memtables
    #[arg(long)]
    quick: bool,
    /// Ids in a window [default: 30000000; with --quick: 60000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000))]
    window: Option<u64>,
    /// All ids [default: 100000000; with --quick: 200000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2000..=10_000_000_000))]
    total: Option<u64>,
    /// Ids are remembered for lives of exponential distribution, whose mean is a window
    #[arg(long)]
    mixed: bool,
    /// Threads that share the stream
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Stores to compare [default: all]
    #[arg(long, value_name = "STORE,…", value_delimiter = ',')]
    engines: Vec<StoreKind>,
    /// RedisBloom's module, redisbloom.so, to compare with it, too
    #[arg(long, value_name = "FILE")]
    redisbloom: Option<PathBuf>,
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
        let window = size(self.window, 30_000_000, 60_000);
        let stream = Stream { window, total: size(self.total, 100_000_000, 200_000), mixed: self.mixed };
        if stream.total <= window {
            return Err("--total: more ids than in a window are needed, so that some expire".into());
        }
        let all = || StoreKind::all(self.redisbloom.is_some(), self.mixed);
        let engines = if self.engines.is_empty() { all() } else { self.engines.clone() };
        if let Some(engine) = engines.iter().find(|engine| self.mixed && !engine.takes_mixed_lives()) {
            return Err(
                format!("--mixed: {} cannot remember ids for lives of their own", engine.name()).into()
            );
        }
        let bench = BenchSettings::of_size(window, size(self.memtable_mib, 64, 2), chosen.choice);
        let stores = self.output.create()?;
        quiet::warn_of_others();
        let result =
            |store| StoreResult { store, description: stores::describe(store, &bench), figures: None };
        let mut record = WindowRecord {
            date: format::now(),
            machine: Machine::here(&stores),
            stores: engines.into_iter().map(result).collect(),
            settings: WindowSettings { stream, threads: self.threads.into(), bench: bench.clone() },
            notes: vec![chosen.describe()],
        };
        record.print_head()?;
        let names = record.stores.iter().map(|of| of.store.name().to_owned());
        let dirs = StoreDirs::none_there(&stores, names)?;
        for at in 0..record.stores.len() {
            let store = record.stores[at].store;
            progress(store.name());
            let begun = CpuSample::now();
            let (dir, settings) = (dirs.dir(store.name()), record.settings.clone());
            let redisbloom = self.redisbloom.clone();
            let figures = WindowTask { store, dir, settings, redisbloom }.spawn()?;
            std::fs::remove_dir_all(dirs.dir(store.name()))?;
            record.stores[at].figures = Some(figures);
            record.notes.extend(quiet::note_of_others(store.name(), &begun));
            self.output.write(WINDOW_FILE, &record)?;
        }
        progress("");
        record.print()?;
        self.output.say_where(WINDOW_FILE, Some(begin.elapsed().as_secs_f64()))
    }
}

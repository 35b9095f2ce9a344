//! `versus run`: runs each workload on each engine in turn, prints tables, and writes all figures to a file.

use crate::engine::EngineKind;
use crate::error::Result;
use crate::format;
use crate::measures;
use crate::output::Output;
use crate::results::{BenchRecord, RUN_FILE};
use crate::rocks_record::RocksRecord;
use crate::session::{self, BenchSession};
use crate::settings::{BenchSettings, given_or};
use crate::table;
use crate::terminal::{self, print_notes};
use crate::workload::{self, WorkloadSpec};
use crate::workload_table;
use std::io::Write;

/// Measure the engines: tables on the terminal, all figures in DIR/run.json
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    output: Output,
    /// Fewer keys, calls and rounds, but all workloads: a minute instead of 20
    #[arg(long)]
    quick: bool,
    /// How often each workload runs on each engine [default: 3; with --quick: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: Option<u64>,
    /// Engines, separated by commas, the baseline first [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<EngineKind>,
    /// Workloads, separated by commas, or all [default: those of docs/measured.md; with --quick: all]
    #[arg(long, value_delimiter = ',', value_parser = known)]
    workloads: Vec<String>,
    /// RocksDB cuts the index and the filter of a table into partitions, for stores larger than memory
    #[arg(long)]
    rocksdb_partitioned: bool,
    #[command(flatten)]
    settings: BenchSettings,
}

/// The name that stands for all workloads.
const ALL: &str = "all";

fn known(name: &str) -> Result<String, String> {
    let found = name == ALL || workload::by_name(name).is_some();
    let names = || workload::names(false).join(", ");
    found.then(|| name.to_owned()).ok_or_else(|| format!("expected {ALL}, or one of {}", names()))
}

impl Args {
    /// Measures, prints and writes the figures.
    pub fn run(mut self) -> Result<()> {
        if self.quick {
            self.settings.shrink();
        }
        let mut chosen = RocksRecord::recorded()?;
        if self.rocksdb_partitioned {
            chosen.choose_partitioned();
        }
        self.settings.rocks = chosen.choice;
        let rounds = given_or(self.rounds, self.quick, 3, 1);
        let engines = EngineKind::or_all(&self.engines);
        let has_rocksdb = engines.iter().any(|kind| kind.is_rocksdb());
        if self.rocksdb_partitioned && !has_rocksdb {
            return Err("--rocksdb-partitioned without RocksDB: add it to --engines".into());
        }
        let stores = self.output.prepare(&engines, &self.settings)?;
        let wanted = match self.workloads.as_slice() {
            [] => workload::names(!self.quick),
            given if given.iter().any(|name| name == ALL) => workload::names(false),
            given => given.to_vec(),
        };
        let mut session = BenchSession::new(&stores, &engines, wanted, &self.settings, rounds)?;
        session.record.notes.extend(session::notes(&stores, &engines));
        if has_rocksdb {
            session.record.notes.push(chosen.describe());
        }
        print_head(&session.record)?;
        session.measure(print)?;
        let run = &session.record;
        self.output.write(RUN_FILE, run)?;
        let mut out = std::io::stdout().lock();
        for rejection in run.rejections() {
            writeln!(out, "{rejection}")?;
        }
        let [ahead, level, behind] = measures::standings(run);
        for (title, list) in [("ahead of the best other engine", ahead), ("level", level), ("behind", behind)]
        {
            if !list.is_empty() {
                writeln!(out, "\nsidebloom is {title}:\n  {}", list.join("\n  "))?;
            }
        }
        print_notes(&run.notes)?;
        self.output.say_where(RUN_FILE, Some(run.seconds))?;
        self.output.offer_page()
    }
}

fn print_head(run: &BenchRecord) -> Result<()> {
    terminal::print_head(&run.date, &run.machine)?;
    let (mut out, settings) = (std::io::stdout().lock(), &run.settings);
    writeln!(
        out,
        "{} keys of {} bytes, values of {} bytes; {} rows of {} bytes; {} rows just written; cache {} MiB; rounds: {}; speed is the first engine's mean time ÷ the engine's",
        format::count(settings.num as f64),
        settings.key_bytes,
        settings.value_bytes,
        format::count(settings.rows as f64),
        settings.row_bytes,
        format::count(settings.written as f64),
        settings.cache_mib,
        run.rounds
    )?;
    Ok(run.engines.iter().try_for_each(|(kind, settings)| writeln!(out, "  {}: {settings}", kind.name()))?)
}

fn print(run: &BenchRecord, workload: WorkloadSpec) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{}", workload.name)?;
    if let Some(about) = workload_table::about(run, &workload) {
        writeln!(out, "  {about}")?;
    }
    Ok(write!(out, "{}", table::aligned(&workload_table::rows(run, workload.name)))?)
}

//! `versus run`: runs each workload on each engine in turn, prints tables, and writes all figures to a file.

use crate::engine::EngineKind;
use crate::error::Result;
use crate::format;
use crate::kernel;
use crate::measures;
use crate::quiet;
use crate::results::{self, BenchRecord, RUN_FILE};
use crate::rocks_record::RocksRecord;
use crate::session::{self, BenchSession};
use crate::settings::BenchSettings;
use crate::table;
use crate::workload::{self, WorkloadSpec};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Measure the engines: tables on the terminal, all figures in DIR/run.json
#[derive(clap::Args)]
pub struct Args {
    /// Directory for the results
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Directory for the stores during the run, on the disk to measure [default: DIR/stores]
    #[arg(long, value_name = "DIR")]
    stores: Option<PathBuf>,
    /// Fewer keys, calls and rounds, but all workloads: a minute instead of 20
    #[arg(long)]
    quick: bool,
    /// How often each workload runs on each engine [default: 3; with --quick: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: Option<u64>,
    /// Engines, separated by commas, the baseline first [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<EngineKind>,
    /// Workloads, separated by commas, or all [default: those of the README's table; with --quick: all]
    #[arg(long, value_delimiter = ',', value_parser = known)]
    workloads: Vec<String>,
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
        let chosen = RocksRecord::recorded()?;
        self.settings.rocks = chosen.choice;
        let rounds = self.rounds.unwrap_or(if self.quick { 1 } else { 3 });
        let stores = self.stores.clone().unwrap_or_else(|| self.out.join("stores"));
        fs::create_dir_all(&self.out)?;
        let engines = if self.engines.is_empty() { EngineKind::all() } else { self.engines.clone() };
        session::check_space(&stores, &engines, &self.settings)?;
        warn_of_others();
        let wanted = match self.workloads.as_slice() {
            [] => workload::names(!self.quick),
            given if given.iter().any(|name| name == ALL) => workload::names(false),
            given => given.to_vec(),
        };
        let mut session = BenchSession::new(&stores, &engines, wanted, &self.settings, rounds)?;
        session.record.notes.extend(notes(&stores, &engines));
        if engines.iter().any(|kind| kind.is_rocksdb()) {
            session.record.notes.push(chosen.describe());
        }
        print_head(&session.record)?;
        session.measure(print)?;
        let (run, file) = (&session.record, self.out.join(RUN_FILE));
        results::write(&file, run)?;
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
        run.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
        writeln!(out, "{:.0} s; all figures: {}", run.seconds, file.display())?;
        Ok(writeln!(out, "for an HTML page: versus report {}", self.out.display())?)
    }
}

/// Warns of a busy machine before the user spends much time.
pub fn warn_of_others() {
    let others = quiet::others_now();
    if others > quiet::DISTURBING {
        let others = format::number(others);
        eprintln!(
            "versus: other processes keep {others} CPUs busy: figures will be worse than on a quiet machine"
        );
    }
}

/// What readers of the results should know.
pub fn notes(stores: &Path, engines: &[EngineKind]) -> Vec<String> {
    let mut notes = Vec::new();
    if kernel::is_memory(stores) {
        notes.push("the stores are in a memory-backed file system: cold runs are rejected".to_owned());
    }
    if !engines.contains(&EngineKind::Rocksdb) {
        notes.push(
            "the baseline is not RocksDB with its defaults: speeds are relative to the first engine in the table"
                .to_owned(),
        );
    }
    notes
}

fn print_head(run: &BenchRecord) -> Result<()> {
    let (mut out, settings) = (std::io::stdout().lock(), &run.settings);
    writeln!(out, "{}: {}", run.date, run.machine.describe())?;
    writeln!(
        out,
        "{} keys of {} bytes, values of {} bytes; {} rows of {} bytes; cache {} MiB; rounds: {}; speed is the first engine's mean time ÷ the engine's",
        format::count(settings.num as f64),
        settings.key_bytes,
        settings.value_bytes,
        format::count(settings.rows as f64),
        settings.row_bytes,
        settings.cache_mib,
        run.rounds
    )?;
    Ok(run.engines.iter().try_for_each(|(kind, settings)| writeln!(out, "  {}: {settings}", kind.name()))?)
}

fn print(run: &BenchRecord, workload: WorkloadSpec) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{}", workload.name)?;
    if let Some(about) = table::about(run, &workload) {
        writeln!(out, "  {about}")?;
    }
    Ok(write!(out, "{}", table::aligned(&table::rows(run, workload.name)))?)
}

//! `versus sweep`: how cost grows with the number of sorted runs, and memory with the number of keys. Each
//! number is a run.

use crate::engine::EngineKind;
use crate::error::Result;
use crate::format::{bytes, count, nanos, number};
use crate::results::{self, BenchRecord, SWEEP_FILE, SweepRecord};
use crate::rocks_record::RocksRecord;
use crate::run;
use crate::session::{self, BenchSession, progress};
use crate::settings::BenchSettings;
use crate::table;
use crate::task::WorkerOutcome;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Cache of each engine in the sweep over keys. It is small, so that the memory that must grow with the keys
/// shows.
const CACHE_MIB: u64 = 32;
const BY_RUNS: [&str; 4] = ["count", "readmissing", "readmissing-cold", "readrandom"];
const BY_KEYS: [&str; 2] = ["count", "readrandom"];

/// Measure by number of sorted runs and by number of keys: tables on the terminal, all figures in
/// DIR/sweep.json
#[derive(clap::Args)]
pub struct Args {
    /// Directory for the results
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Directory for the stores during the run, on the disk to measure [default: DIR/stores]
    #[arg(long, value_name = "DIR")]
    stores: Option<PathBuf>,
    /// Fewer keys, calls and runs: a minute instead of ten
    #[arg(long)]
    quick: bool,
    /// How often each workload runs on each engine
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// Numbers of sorted runs, separated by commas [default: 1,2,4,8,16]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=16))]
    runs: Vec<u64>,
    /// Numbers of keys, separated by commas [default: 250000,500000,1000000,2000000,4000000]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000))]
    keys: Vec<u64>,
    /// Engines, separated by commas, the baseline first [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<EngineKind>,
    #[command(flatten)]
    settings: BenchSettings,
}

impl Args {
    /// Measures both sweeps, prints and writes the figures.
    pub fn run(mut self) -> Result<()> {
        if self.quick {
            self.settings.shrink();
        } else {
            self.settings.shrink_for_sweep();
        }
        self.settings.rocks = RocksRecord::recorded()?.choice;
        let or = |given: &[u64], all: &[u64], quick: &[u64]| match given {
            [] if self.quick => quick.to_vec(),
            [] => all.to_vec(),
            _ => given.to_vec(),
        };
        let runs = or(&self.runs, &[1, 2, 4, 8, 16], &[1, 4, 16]);
        let keys = or(
            &self.keys,
            &[250_000, 500_000, 1_000_000, 2_000_000, 4_000_000],
            &[100_000, 200_000, 400_000],
        );
        let engines = if self.engines.is_empty() { EngineKind::all() } else { self.engines.clone() };
        let stores = self.stores.clone().unwrap_or_else(|| self.out.join("stores"));
        fs::create_dir_all(&self.out)?;
        let most = keys.iter().copied().max().unwrap_or(0).max(self.settings.num);
        session::check_space(&stores, &engines, &BenchSettings { num: most, ..self.settings.clone() })?;
        run::warn_of_others();
        let with_runs: Vec<EngineKind> = engines.iter().copied().filter(|kind| kind.has_runs()).collect();
        let mut found = SweepRecord { by_runs: Vec::new(), by_keys: Vec::new() };
        let file = self.out.join(SWEEP_FILE);
        for runs in runs.into_iter().filter(|_| !with_runs.is_empty()) {
            let settings = BenchSettings { runs, ..self.settings.clone() };
            found.by_runs.push(self.one(&stores, &with_runs, &BY_RUNS, &settings)?);
            results::write(&file, &found)?;
        }
        for num in keys {
            let settings = BenchSettings { num, cache_mib: CACHE_MIB, ..self.settings.clone() };
            found.by_keys.push(self.one(&stores, &engines, &BY_KEYS, &settings)?);
            results::write(&file, &found)?;
        }
        let mut out = std::io::stdout().lock();
        for (title, rows) in tables(&found) {
            writeln!(out, "{title}\n{}", table::aligned(&rows))?;
        }
        notes(&found).iter().try_for_each(|note| writeln!(out, "{note}"))?;
        writeln!(out, "all figures: {}", file.display())?;
        Ok(writeln!(out, "for an HTML page: versus report {}", self.out.display())?)
    }

    fn one(
        &self,
        stores: &Path,
        engines: &[EngineKind],
        workloads: &[&str],
        settings: &BenchSettings,
    ) -> Result<BenchRecord> {
        let wanted = workloads.iter().map(|&name| name.to_owned()).collect();
        let mut session = BenchSession::new(stores, engines, wanted, settings, self.rounds)?;
        session.record.notes.extend(run::notes(stores, engines));
        session.measure(|_, _| Ok(()))?;
        progress("");
        let runs = match settings.runs {
            0 => "sorted runs left to the engines".to_owned(),
            n => format!("{n} sorted runs"),
        };
        let (keys, seconds) = (count(settings.num as f64), session.record.seconds);
        eprintln!("{keys} keys, {runs}: {seconds:.0} s");
        Ok(session.record.clone())
    }
}

/// What readers of the results should know, without repetition.
pub fn notes(sweep: &SweepRecord) -> Vec<String> {
    let mut notes = Vec::new();
    let disturbances = |runs: &[BenchRecord]| runs.iter().filter_map(BenchRecord::disturbance).count();
    let disturbed = disturbances(&sweep.by_runs) + disturbances(&sweep.by_keys);
    if disturbed > 0 {
        let all = sweep.by_runs.len() + sweep.by_keys.len();
        notes.push(format!("the machine was not quiet during {disturbed} of {all} parts of the sweep"));
    }
    for run in sweep.by_runs.iter().chain(&sweep.by_keys) {
        let (keys, runs) = (count(run.settings.num as f64), run.settings.runs);
        notes.extend(run.rejections().map(|rejection| match runs {
            0 => format!("{keys} keys: {rejection}"),
            _ => format!("{runs} sorted runs: {rejection}"),
        }));
    }
    notes
}

/// Titles and tables with a row for each engine and a column for each number.
pub fn tables(sweep: &SweepRecord) -> Vec<(&'static str, Vec<Vec<String>>)> {
    let runs = |run: &BenchRecord| match run.settings.runs {
        1 => "1 run".to_owned(),
        n => format!("{n} runs"),
    };
    let keys = |run: &BenchRecord| format!("{} keys", count(run.settings.num as f64));
    let all = [
        (
            "mean lookup time of a missing key, in memory",
            grid(&sweep.by_runs, "readmissing", runs, nanos, |_, o| Some(o.mean_ns)),
        ),
        (
            "mean lookup time of a missing key, on disk",
            grid(&sweep.by_runs, "readmissing-cold", runs, nanos, |_, o| Some(o.mean_ns)),
        ),
        (
            "disk reads per lookup of a missing key",
            grid(&sweep.by_runs, "readmissing-cold", runs, number, |_, o| o.disk_reads_per_op),
        ),
        (
            "mean lookup time of a present key, in memory",
            grid(&sweep.by_runs, "readrandom", runs, nanos, |_, o| Some(o.mean_ns)),
        ),
        (
            "filter memory, bits per key",
            grid(&sweep.by_runs, "count", runs, number, |run, o| {
                Some(8.0 * o.facts.filter_bytes.filter(|&n| n > 0)? as f64 / run.settings.num as f64)
            }),
        ),
        (
            "resident memory including mapped pages, block cache of 32 MiB",
            grid(&sweep.by_keys, "readrandom", keys, bytes, |_, o| resident(o)),
        ),
        ("filter memory", grid(&sweep.by_keys, "count", keys, bytes, |_, o| filters(o))),
    ];
    all.into_iter().filter(|(_, rows)| rows.len() > 1).collect()
}

/// Resident memory: anonymous pages, and pages of mapped files.
pub fn resident(outcome: &WorkerOutcome) -> Option<f64> {
    Some(outcome.resident_bytes() as f64)
}

/// Size of the filters, if the engine has any.
pub fn filters(outcome: &WorkerOutcome) -> Option<f64> {
    outcome.facts.filter_bytes.filter(|&n| n > 0).map(|n| n as f64)
}

fn grid(
    runs: &[BenchRecord],
    workload: &str,
    head: impl Fn(&BenchRecord) -> String,
    show: fn(f64) -> String,
    figure: impl Fn(&BenchRecord, &WorkerOutcome) -> Option<f64>,
) -> Vec<Vec<String>> {
    let mut rows = vec![std::iter::once("engine".to_owned()).chain(runs.iter().map(head)).collect()];
    for (kind, _) in runs.first().map_or(&[][..], |run| &run.engines) {
        let cell = |run: &BenchRecord| run.median(*kind, workload, |o| figure(run, o)).map(show);
        let cells: Vec<Option<String>> = runs.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.unwrap_or("–".to_owned()));
            rows.push(std::iter::once(kind.name().to_owned()).chain(cells).collect());
        }
    }
    rows
}

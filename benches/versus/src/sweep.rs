//! `versus sweep`: how cost grows with the number of sorted runs, and memory with the number of keys. Each
//! number is measured by itself.

use crate::engine::EngineKind;
use crate::error::Result;
use crate::format::{bytes, count, nanos, number, shown};
use crate::output::Output;
use crate::results::{BenchRecord, SWEEP_FILE, SweepRecord};
use crate::rocks_record::RocksRecord;
use crate::session::{self, BenchSession};
use crate::settings::BenchSettings;
use crate::table::{aligned, headed};
use crate::task::WorkerOutcome;
use crate::terminal::progress;
use std::io::Write;
use std::path::Path;

/// Cache of each engine in the sweep over keys; small, so that the memory that must grow with the keys shows.
const CACHE_MIB: u64 = 32;
const BY_RUNS: [&str; 4] = ["count", "readmissing", "readmissing-cold", "readrandom"];
const BY_KEYS: [&str; 2] = ["count", "readrandom"];

/// Measure by number of sorted runs and of keys: tables on the terminal, all figures in DIR/sweep.json
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    output: Output,
    /// Fewer keys, calls and sorted runs: a minute instead of ten
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
        let engines = EngineKind::or_all(&self.engines);
        let most = keys.iter().copied().max().unwrap_or(0).max(self.settings.num);
        let largest = BenchSettings { num: most, ..self.settings.clone() };
        let stores = self.output.prepare(&engines, &largest)?;
        let with_runs: Vec<EngineKind> = engines.iter().copied().filter(|kind| kind.has_runs()).collect();
        let mut found = SweepRecord { by_runs: Vec::new(), by_keys: Vec::new() };
        for runs in runs.into_iter().filter(|_| !with_runs.is_empty()) {
            let settings = BenchSettings { runs, ..self.settings.clone() };
            found.by_runs.push(self.one(&stores, &with_runs, &BY_RUNS, &settings)?);
            self.output.write(SWEEP_FILE, &found)?;
        }
        for num in keys {
            let settings = BenchSettings { num, cache_mib: CACHE_MIB, ..self.settings.clone() };
            found.by_keys.push(self.one(&stores, &engines, &BY_KEYS, &settings)?);
            self.output.write(SWEEP_FILE, &found)?;
        }
        let mut out = std::io::stdout().lock();
        for (title, rows) in tables(&found) {
            writeln!(out, "{title}\n{}", aligned(&rows))?;
        }
        notes(&found).iter().try_for_each(|note| writeln!(out, "{note}"))?;
        self.output.say_where(SWEEP_FILE, None)?;
        self.output.offer_page()
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
        session.record.notes.extend(session::notes(stores, engines));
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

/// Notes for the reader, without repetition.
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
            grid(&sweep.by_runs, "count", runs, number, |run, o| o.filter_bits_per_key(run.settings.num)),
        ),
        (
            "resident memory including mapped pages, block cache of 32 MiB",
            grid(&sweep.by_keys, "readrandom", keys, bytes, |_, o| Some(o.resident_bytes() as f64)),
        ),
        ("filter memory", grid(&sweep.by_keys, "count", keys, bytes, |_, o| o.filter_bytes())),
    ];
    all.into_iter().filter(|(_, rows)| rows.len() > 1).collect()
}

fn grid(
    runs: &[BenchRecord],
    workload: &str,
    head: impl Fn(&BenchRecord) -> String,
    show: fn(f64) -> String,
    figure: impl Fn(&BenchRecord, &WorkerOutcome) -> Option<f64>,
) -> Vec<Vec<String>> {
    let engines = runs.first().map_or(&[][..], |run| &run.engines);
    let row = |(kind, _): &(EngineKind, String)| {
        let figures: Vec<Option<f64>> =
            runs.iter().map(|run| run.median(*kind, workload, |o| figure(run, o))).collect();
        let cells = figures.iter().map(|figure| shown(*figure, show));
        let row = std::iter::once(kind.name().to_owned()).chain(cells).collect();
        figures.iter().any(Option::is_some).then_some(row)
    };
    let numbers: Vec<String> = runs.iter().map(head).collect();
    let head = std::iter::once("engine").chain(numbers.iter().map(String::as_str));
    headed(head, engines.iter().filter_map(row))
}

//! `versus settings`: measures RocksDB's settings for lookups, and records the fastest for other commands.

use crate::engine::EngineKind;
use crate::error::Result;
use crate::format::{self, nanos};
use crate::machine::Machine;
use crate::output;
use crate::quiet;
use crate::results;
use crate::rocks_record::{RocksFigures, RocksRecord};
use crate::rocks_settings::RocksSettings;
use crate::rounds;
use crate::session;
use crate::settings::BenchSettings;
use crate::table::{aligned, headed};
use crate::task::{WorkerOutcome, WorkerTask};
use crate::terminal::progress;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

const ENGINE: EngineKind = EngineKind::RocksdbBloom;
const MISSING: &str = "readmissing";
const FOUND: &str = "readrandom";

/// Measure RocksDB's caches and filter layouts, and record the fastest for `run` and `sweep`
#[derive(clap::Args)]
pub struct Args {
    /// Directory for the stores during the measurement
    #[arg(long, value_name = "DIR")]
    stores: PathBuf,
    /// File for the record; build again to use it
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/records/rocksdb.json"))]
    record: PathBuf,
    /// How often each workload runs with each choice
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    #[command(flatten)]
    settings: BenchSettings,
}

/// The times of a choice, one for each accepted round.
#[derive(Default)]
struct RoundTimes {
    missing_ns: Vec<f64>,
    found_ns: Vec<f64>,
    runs_by_level: String,
}

impl Args {
    /// Measures, prints and writes the record.
    pub fn run(self) -> Result<()> {
        output::check_space(&self.stores, &[ENGINE, ENGINE], &self.settings)?;
        quiet::warn_of_others();
        let date = format::now();
        let machine = Machine::here(&self.stores);
        let choices = RocksSettings::all();
        // The cache is chosen when a store is opened, the layout when its tables are written.
        for layout in [false, true] {
            let choice = RocksSettings { partitioned: layout, ..RocksSettings::default() };
            self.work("load", choice, 1)?;
        }
        let mut times: Vec<RoundTimes> = choices.iter().map(|_| RoundTimes::default()).collect();
        for round in 0..self.rounds {
            for (&choice, times) in choices.iter().zip(&mut times) {
                progress(&format!("round {}/{}: {}", round + 1, self.rounds, choice.describe()));
                // The generation seeds the keys: every choice gets the same.
                let missing = self.work(MISSING, choice, 2 + 2 * round)?;
                let found = self.work(FOUND, choice, 3 + 2 * round)?;
                times.runs_by_level = found.facts.describe_runs().unwrap_or_default();
                times.missing_ns.push(missing.mean_ns);
                times.found_ns.push(found.mean_ns);
            }
        }
        progress("");
        let figures: Vec<RocksFigures> = choices
            .into_iter()
            .zip(times)
            .map(|(settings, times)| RocksFigures {
                settings,
                missing_ns: rounds::median(times.missing_ns).unwrap_or(f64::MAX),
                found_ns: rounds::median(times.found_ns).unwrap_or(f64::MAX),
                runs_by_level: times.runs_by_level,
            })
            .collect();
        let best =
            figures.iter().min_by(|a, b| a.cost().total_cmp(&b.cost())).ok_or("nothing to choose from")?;
        let choice = best.settings;
        let record = RocksRecord {
            date,
            machine,
            settings: self.settings.clone(),
            rounds: self.rounds,
            figures,
            choice,
        };
        print(&record)?;
        if let Some(dir) = self.record.parent() {
            fs::create_dir_all(dir)?;
        }
        results::write(&self.record, &record)?;
        for layout in [false, true] {
            fs::remove_dir_all(self.dir(layout))?;
        }
        fs::remove_dir(&self.stores).ok();
        println!("recorded in {}; build again to use it", self.record.display());
        Ok(())
    }

    fn dir(&self, partitioned: bool) -> PathBuf {
        self.stores.join(if partitioned { "partitioned" } else { "whole" })
    }

    /// Runs a workload with a choice. A rejected one gets a second chance.
    fn work(&self, workload: &str, rocks: RocksSettings, generation: u64) -> Result<WorkerOutcome> {
        let dir = self.dir(rocks.partitioned);
        if workload == "load" {
            output::refuse_existing(std::iter::once(dir.clone()), "a new directory to --stores")?;
        }
        let settings = BenchSettings { rocks, ..self.settings.clone() };
        let workload = workload.to_owned();
        let task = WorkerTask { engine: ENGINE, workload, dir, settings, added: 0, generation, group: None };
        let outcome = session::second_chance(|| session::spawn(&task))?;
        match &outcome.rejected {
            None => Ok(outcome),
            Some(why) => Err(format!("{} with {}: {why}", task.workload, rocks.describe()).into()),
        }
    }
}

fn print(record: &RocksRecord) -> Result<()> {
    let row = |one: &RocksFigures| {
        let chosen = if one.settings == record.choice { "chosen" } else { "" };
        vec![
            one.settings.describe(),
            nanos(one.missing_ns),
            nanos(one.found_ns),
            one.runs_by_level.clone(),
            chosen.to_owned(),
        ]
    };
    let head = ["RocksDB, Bloom", "missing key", "found key", "runs by level", ""];
    let rows = headed(head, record.figures.iter().map(row));
    Ok(write!(std::io::stdout().lock(), "{}", aligned(&rows))?)
}

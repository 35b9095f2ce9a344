//! `versus policies`: parity filters as a filter policy of RocksDB, against RocksDB's own filters, each in a
//! store of its own.
//!
//! 1. Time loads, and discard their stores: RocksDB leaves a different number of sorted runs after each load,
//!    whatever the filter.
//! 2. Make a store for each policy, all with the same sorted runs.
//! 3. Read every key in every store: filters must not hide any. Count the filters' answers for missing keys,
//!    with statistics.
//! 4. Time lookups without statistics, in interleaved rounds, each in a new process.
//! 5. Rewrite one store under each policy in turn, to see what building the filters costs.

mod answers;
mod compact;
mod compared;
mod record;
pub mod shape;
mod tables;
mod workloads;

use crate::engines::rocksdb::{RocksEngine, describe_store};
use crate::error::Result;
use crate::format::{self, count};
use crate::machine::Machine;
use crate::quiet::CpuSample;
use crate::results;
use crate::rocks_filter::RocksFilter;
use crate::rocks_record::RocksRecord;
use crate::run;
use crate::session::{self, progress};
use crate::settings::BenchSettings;
use crate::task::{WorkerOutcome, WorkerTask};
use record::{MeasuredRound, PoliciesRecord, PolicyResult};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use workloads::{ENGINE, LOADED, WORKLOADS};

/// File of the results, in the output directory.
const POLICIES_FILE: &str = "policies.json";
/// The workload that loads a store.
const LOAD: &str = "load";
/// Lookups that count a filter's answers: a rate of 0.1 % is known to 2 % with the three tables that a lookup
/// probes in a default run.
const PROBES: u64 = 1_000_000;
const QUICK_PROBES: u64 = 100_000;

/// Measure filter policies of RocksDB: tables on the terminal, all figures in DIR/policies.json
#[derive(clap::Args)]
pub struct Args {
    /// Directory for the figures
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Directory for the stores during the run, on the disk to measure [default: DIR/stores]
    #[arg(long, value_name = "DIR")]
    stores: Option<PathBuf>,
    /// Fewer keys, calls and rounds
    #[arg(long)]
    quick: bool,
    /// How often a store is loaded with each policy [default: 3; with --quick: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    loads: Option<u64>,
    /// How often each workload runs with each policy [default: 5; with --quick: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: Option<u64>,
    /// Untimed lookups of missing keys that count the filters' answers [default: 1000000; with --quick:
    /// 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000))]
    probes: Option<u64>,
    /// Policies, separated by commas, the baseline first
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "off,bloom:10,ribbon:10,parity:7,parity:8,parity:9,parity:auto:10,bloom:13"
    )]
    policies: Vec<RocksFilter>,
    #[command(flatten)]
    settings: BenchSettings,
}

impl Args {
    /// Measures, prints and writes the figures.
    pub fn run(mut self) -> Result<()> {
        if self.quick {
            self.settings.shrink();
        }
        let chosen = RocksRecord::recorded()?;
        self.settings.rocks = chosen.choice;
        let rounds = self.rounds.unwrap_or(if self.quick { 1 } else { 5 });
        let loads = self.loads.unwrap_or(if self.quick { 1 } else { 3 });
        let probes = self.probes.unwrap_or(if self.quick { QUICK_PROBES } else { PROBES });
        let stores = self.stores.clone().unwrap_or_else(|| self.out.join("stores"));
        fs::create_dir_all(&self.out)?;
        session::check_space(&stores, &vec![ENGINE; self.policies.len()], &self.settings)?;
        run::warn_of_others();
        let mut contest = Contest::new(&stores, self.policies, self.settings, rounds)?;
        contest.record.notes.push(chosen.describe());
        contest.record.print_head()?;
        contest.time_loads(loads)?;
        contest.make_stores()?;
        contest.count_answers(probes)?;
        contest.time_lookups()?;
        contest.time_compactions()?;
        progress("");
        contest.record.seconds = contest.begin.elapsed().as_secs_f64();
        contest.record.notes.extend(contest.record.disturbance());
        contest.record.print()?;
        let file = self.out.join(POLICIES_FILE);
        results::write(&file, &contest.record)?;
        println!("{:.0} s; all figures: {}", contest.record.seconds, file.display());
        Ok(())
    }
}

/// A run in progress. Its stores are removed at its end, also after an error.
struct Contest {
    record: PoliciesRecord,
    stores: PathBuf,
    generation: u64,
    begin: Instant,
}

impl Contest {
    fn new(stores: &Path, policies: Vec<RocksFilter>, settings: BenchSettings, rounds: u64) -> Result<Self> {
        let names: Vec<PathBuf> = policies.iter().map(|policy| directory(stores, policy)).collect();
        if let Some(there) = names.iter().find(|dir| dir.exists()) {
            return Err(
                format!("{} already exists: pass another directory to --stores", there.display()).into()
            );
        }
        let policies = policies.into_iter().map(PolicyResult::new).collect();
        let record = PoliciesRecord {
            date: format::now(),
            seconds: 0.0,
            machine: Machine::here(stores),
            rocksdb: format!("RocksDB {}: {}", env!("ROCKSDB_VERSION"), describe_store(&settings)),
            settings,
            rounds,
            policies,
            notes: Vec::new(),
        };
        Ok(Contest { record, stores: stores.to_owned(), generation: LOADED, begin: Instant::now() })
    }

    /// The settings of a load with this policy.
    fn settings(&self, filter: &RocksFilter) -> BenchSettings {
        BenchSettings { rocks_filter: Some(filter.clone()), ..self.record.settings.clone() }
    }

    /// The settings of a store of [`shape::RUNS`] sorted runs, which RocksDB must leave as they are.
    fn settled(&self, filter: &RocksFilter) -> BenchSettings {
        BenchSettings { runs: shape::RUNS, ..self.settings(filter) }
    }

    fn filters(&self) -> Vec<RocksFilter> {
        self.record.policies.iter().map(|policy| policy.filter.clone()).collect()
    }

    /// Runs a workload in a new process. A rejected one gets a second chance.
    fn work(&self, filter: &RocksFilter, workload: &str, settings: BenchSettings) -> Result<WorkerOutcome> {
        let task = WorkerTask {
            engine: ENGINE,
            workload: workload.to_owned(),
            dir: directory(&self.stores, filter),
            settings,
            added: 0,
            generation: self.generation,
            group: None,
        };
        let spawn = || -> Result<WorkerOutcome> {
            let before = CpuSample::now();
            let outcome = session::spawn(&task);
            let mut outcome = outcome.map_err(|error| format!("{workload} with {filter}: {error}"))?;
            outcome.others = CpuSample::now().others_since(&before);
            Ok(outcome)
        };
        let outcome = spawn()?;
        if outcome.rejected.is_some() && workload != LOAD { spawn() } else { Ok(outcome) }
    }

    fn time_loads(&mut self, loads: u64) -> Result<()> {
        for load in 0..loads {
            for (at, filter) in self.filters().into_iter().enumerate() {
                progress(&format!("load {}/{loads} with {filter}", load + 1));
                let outcome = self.work(&filter, LOAD, self.settings(&filter))?;
                self.record.policies[at].loads.push(outcome);
                fs::remove_dir_all(directory(&self.stores, &filter))?;
            }
        }
        Ok(())
    }

    fn make_stores(&self) -> Result<()> {
        for filter in self.filters() {
            progress(&format!("store with {filter}"));
            shape::make(&directory(&self.stores, &filter), &self.settled(&filter))?;
        }
        Ok(())
    }

    /// Reads every key, and counts the filters' answers for missing keys.
    fn count_answers(&mut self, probes: u64) -> Result<()> {
        for (at, filter) in self.filters().into_iter().enumerate() {
            progress(&format!(
                "{} keys and {} missing keys with {filter}",
                count(self.record.settings.num as f64),
                count(probes as f64)
            ));
            let dir = directory(&self.stores, &filter);
            let engine = RocksEngine::open(ENGINE, &dir, &self.settled(&filter), true)?;
            let of = &mut self.record.policies[at];
            of.tables = engine.tables()?;
            of.answers = answers::for_missing(&engine, &self.record.settings, probes)?;
            of.found_keys = answers::found(&engine, &self.record.settings)?;
            let (found, wanted) = (of.found_keys, self.record.policies[0].found_keys);
            if found != wanted || found != self.record.settings.num {
                return Err(format!(
                    "WRONG ANSWER: {filter} found {found} of {} keys, {} found {wanted}: a filter hides keys",
                    self.record.settings.num, self.record.policies[0].filter
                )
                .into());
            }
        }
        Ok(())
    }

    fn time_lookups(&mut self) -> Result<()> {
        for round in 0..self.record.rounds {
            for workload in WORKLOADS {
                self.generation += 1;
                for (at, filter) in self.filters().into_iter().enumerate() {
                    progress(&format!(
                        "round {}/{}: {workload} with {filter}",
                        round + 1,
                        self.record.rounds
                    ));
                    let outcome = self.work(&filter, workload, self.settled(&filter))?;
                    if let Some(why) = &outcome.rejected {
                        let note = format!("rejected: {workload} with {filter}, round {}: {why}", round + 1);
                        self.record.notes.push(note);
                    }
                    let measured = MeasuredRound { workload: workload.to_owned(), round, outcome };
                    self.record.policies[at].lookups.push(measured);
                }
            }
        }
        Ok(())
    }
}

impl Drop for Contest {
    fn drop(&mut self) {
        for policy in &self.record.policies {
            fs::remove_dir_all(directory(&self.stores, &policy.filter)).ok();
        }
        fs::remove_dir(&self.stores).ok();
    }
}

fn directory(stores: &Path, filter: &RocksFilter) -> PathBuf {
    stores.join(filter.to_string().replace(':', "-"))
}

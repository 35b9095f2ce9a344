//! `versus policies`: parity filters as a filter policy of RocksDB, against RocksDB's own filters, each in
//! its own store.
//!
//! 1. Time loads, and discard their stores: RocksDB leaves a different number of sorted runs after each load,
//!    whatever the filter.
//! 2. Make a store for each policy, all with the same sorted runs.
//! 3. Read every key in every store: no filter may hide one. Count the filters' answers for missing keys,
//!    with statistics.
//! 4. Time lookups without statistics, in interleaved rounds, each in a new process.
//! 5. Rewrite one store under each policy in turn, to see what building the filters costs.

mod answers;
mod compact;
mod compared;
mod contest;
mod make;
mod record;
mod steps;
mod tables;
mod workloads;

use crate::error::Result;
use crate::output::Output;
use crate::rocks_filter::RocksFilter;
use crate::rocks_record::RocksRecord;
use crate::settings::{BenchSettings, given_or};
use crate::terminal::progress;
use contest::Contest;
use workloads::ENGINE;

/// File of the results, in the output directory.
const POLICIES_FILE: &str = "policies.json";
/// Lookups that count a filter's answers: with the three tables probed per lookup by default, a rate of 0.1 %
/// is known to 2 %.
const PROBES: u64 = 1_000_000;
const QUICK_PROBES: u64 = 100_000;

/// Measure filter policies of RocksDB: tables on the terminal, all figures in DIR/policies.json
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    output: Output,
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
        let rounds = given_or(self.rounds, self.quick, 5, 1);
        let loads = given_or(self.loads, self.quick, 3, 1);
        let probes = given_or(self.probes, self.quick, PROBES, QUICK_PROBES);
        let stores = self.output.prepare(&vec![ENGINE; self.policies.len()], &self.settings)?;
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
        self.output.write(POLICIES_FILE, &contest.record)?;
        self.output.say_where(POLICIES_FILE, Some(contest.record.seconds))
    }
}

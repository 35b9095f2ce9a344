//! The results: the contents of `policies.json`, and the medians that the tables show.

use super::answers::FilterAnswers;
use crate::engines::rocksdb::RocksTables;
use crate::machine::Machine;
use crate::quiet;
use crate::rocks_filter::RocksFilter;
use crate::rounds;
use crate::settings::BenchSettings;
use crate::task::WorkerOutcome;
use serde::{Deserialize, Serialize};

/// The results of `versus policies`.
#[derive(Debug, Serialize, Deserialize)]
pub struct PoliciesRecord {
    /// When the measurement began.
    pub date: String,
    /// Its duration in seconds.
    pub seconds: f64,
    /// The machine it ran on.
    pub machine: Machine,
    /// RocksDB's version and configuration, the same for all policies, in words.
    pub rocksdb: String,
    /// Sizes, counts and the seed.
    pub settings: BenchSettings,
    /// Rounds of lookups, and of compactions.
    pub rounds: u64,
    /// Each policy, the baseline first.
    pub policies: Vec<PolicyResult>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// What was measured of a policy.
#[derive(Debug, Serialize, Deserialize)]
pub struct PolicyResult {
    /// The policy.
    pub filter: RocksFilter,
    /// Its loads.
    pub loads: Vec<WorkerOutcome>,
    /// The memory of its filters.
    pub tables: RocksTables,
    /// The filters' answers for missing keys.
    pub answers: FilterAnswers,
    /// How many of the written keys are found.
    pub found_keys: u64,
    /// Every timed workload of every round.
    pub lookups: Vec<MeasuredRound>,
    /// CPU seconds of rewriting all tables of the baseline's store, in each round.
    pub compaction_cpu_seconds: Vec<f64>,
}

/// A workload of a round.
#[derive(Debug, Serialize, Deserialize)]
pub struct MeasuredRound {
    /// The name of the workload.
    pub workload: String,
    /// The round, from 0.
    pub round: u64,
    /// The figures.
    pub outcome: WorkerOutcome,
}

/// A figure of a worker, if it has it.
pub type Figure = fn(&WorkerOutcome) -> Option<f64>;

impl PolicyResult {
    /// The result of a policy before anything is measured.
    pub fn new(filter: RocksFilter) -> Self {
        PolicyResult {
            filter,
            loads: Vec::new(),
            tables: RocksTables::default(),
            answers: FilterAnswers::default(),
            found_keys: 0,
            lookups: Vec::new(),
            compaction_cpu_seconds: Vec::new(),
        }
    }

    /// A figure of a workload in each accepted round.
    fn rounds(&self, workload: &str, figure: Figure) -> Vec<(u64, f64)> {
        let accepted = self.lookups.iter().filter(|one| one.workload == workload);
        let accepted = accepted.filter(|one| one.outcome.rejected.is_none());
        accepted.filter_map(|one| Some((one.round, figure(&one.outcome)?))).collect()
    }

    /// The median of a figure over the accepted rounds; `None` if no round has it.
    pub fn median(&self, workload: &str, figure: Figure) -> Option<f64> {
        rounds::median(self.rounds(workload, figure).into_iter().map(|(_, value)| value).collect())
    }

    /// The median of a figure over the loads.
    pub fn load(&self, figure: Figure) -> Option<f64> {
        rounds::median(self.loads.iter().filter_map(figure).collect())
    }

    /// The median of the ratios of each round: the other policy's mean time divided by this one's.
    pub fn speed(&self, other: &PolicyResult, workload: &str) -> Option<f64> {
        let means = |of: &PolicyResult| of.rounds(workload, |o| Some(o.mean_ns));
        rounds::ratio(means(other), means(self))
    }

    /// Filter bits per key in the files; `None` without filters.
    pub fn bits_per_key(&self) -> Option<f64> {
        let bits = 8.0 * self.tables.filter_bytes as f64 / self.tables.entries.max(1) as f64;
        (self.tables.filter_bytes > 0).then_some(bits)
    }

    /// CPU nanoseconds per key that building the filters adds to a compaction: the median over the rounds of
    /// the difference to a compaction without filters.
    pub fn build_ns(&self, unfiltered: &PolicyResult) -> Option<f64> {
        let pairs = self.compaction_cpu_seconds.iter().zip(&unfiltered.compaction_cpu_seconds);
        let seconds = rounds::median(pairs.map(|(with, without)| with - without).collect())?;
        Some(1e9 * seconds / self.tables.entries.max(1) as f64)
    }
}

impl PoliciesRecord {
    /// The policy without filters, if it was measured.
    pub fn unfiltered(&self) -> Option<&PolicyResult> {
        self.policies.iter().find(|policy| policy.filter == RocksFilter::Off)
    }

    /// How much other processes disturbed the measurement; `None` if they hardly did.
    pub fn disturbance(&self) -> Option<String> {
        let outcomes = self
            .policies
            .iter()
            .flat_map(|policy| policy.lookups.iter().map(|one| &one.outcome).chain(&policy.loads));
        quiet::disturbance(outcomes.filter_map(|outcome| outcome.others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(means_ns: &[f64], rejected: Option<u64>) -> PolicyResult {
        let round = |(round, &mean_ns): (usize, &f64)| {
            let round = round as u64;
            let rejected = (rejected == Some(round)).then(String::new);
            let outcome = WorkerOutcome { mean_ns, rejected, ..WorkerOutcome::default() };
            MeasuredRound { workload: "readmissing".to_owned(), round, outcome }
        };
        let tables = RocksTables { entries: 1000, filter_bytes: 1250, ..RocksTables::default() };
        let lookups = means_ns.iter().enumerate().map(round).collect();
        PolicyResult { lookups, tables, ..PolicyResult::new(RocksFilter::Off) }
    }

    #[test]
    fn speed_compares_the_rounds_that_both_policies_completed() {
        let (ours, theirs) = (policy(&[100.0, 1.0, 200.0], Some(1)), policy(&[300.0, 900.0, 400.0], None));
        assert_eq!(ours.speed(&theirs, "readmissing"), Some(2.5));
        assert_eq!(ours.median("readmissing", |o| Some(o.mean_ns)), Some(150.0));
        assert_eq!(ours.speed(&theirs, "readrandom"), None);
    }

    #[test]
    fn a_build_costs_what_a_compaction_without_filters_does_not() {
        let (mut with, mut without) = (policy(&[], None), policy(&[], None));
        with.compaction_cpu_seconds = vec![1.5, 1.25, 9.0];
        without.compaction_cpu_seconds = vec![1.0, 1.0, 1.0];
        assert_eq!(with.build_ns(&without), Some(500_000.0));
        assert_eq!(with.bits_per_key(), Some(10.0));
    }
}

//! What was measured.

use super::kind::StoreKind;
use super::store::{Aborts, Outcome, ReadCounts};
use super::workload::Workload;
use crate::machine::Machine;
use crate::rounds;
use serde::{Deserialize, Serialize};

/// The record of an execution.
#[derive(Debug, Serialize, Deserialize)]
pub struct WritesRecord {
    /// When it began.
    pub date: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// Sizes and counts.
    pub settings: WriteSettings,
    /// Each store.
    pub stores: Vec<StoreResult>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Sizes and counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriteSettings {
    /// Keys loaded.
    pub keys: u64,
    /// Inserts of a pass, in memory.
    pub inserts: u64,
    /// Inserts of a pass from disk.
    pub cold_inserts: u64,
    /// Transactions of a pass, of all threads together.
    pub transactions: u64,
    /// Commits of which each kind of validation is timed.
    pub validations: u64,
    /// Length of the long transaction, in seconds.
    pub long_seconds: u64,
    /// Rounds.
    pub rounds: u64,
    /// Size of memtables, in MiB.
    pub memtable_mib: u64,
    /// Block cache of stores that have one, in MiB.
    pub cache_mib: u64,
}

/// The figures of one store.
#[derive(Debug, Serialize, Deserialize)]
pub struct StoreResult {
    /// Which store.
    pub store: StoreKind,
    /// Its configuration, in words.
    pub configuration: String,
    /// The passes of every round.
    pub passes: Vec<PassResult>,
    /// Times of commits; `None` if nothing is validated.
    pub validation: Option<ValidationResult>,
    /// The long transaction; `None` if others could not write during it.
    pub long: Option<LongResult>,
}

/// One workload in one round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PassResult {
    /// The workload.
    pub workload: Workload,
    /// The round, from 0.
    pub round: u64,
    /// Keys inserted, or transactions committed.
    pub ops: u64,
    /// Mean nanoseconds of each: the time of all threads together, divided by all of them.
    pub mean_ns: f64,
    /// The same, with the flushes and compactions that follow.
    pub settled_ns: f64,
    /// CPU nanoseconds of the process for each, without the flushes and compactions that follow.
    pub cpu_ns: f64,
    /// Reads of the disk for each, for the whole machine; `None` if the kernel does not count them.
    pub disk_reads: Option<f64>,
    /// Keys that were there.
    pub duplicates: u64,
    /// What reading cost, in stores that count it.
    pub counts: Option<ReadCounts>,
    /// Attempts that were not committed.
    pub aborts: Aborts,
}

/// Times of a commit of one put, without fsync: nanoseconds, for each repetition.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ValidationResult {
    /// The transaction has read nothing.
    pub no_reads_ns: Vec<f64>,
    /// It has read 100 absent keys.
    pub reads_ns: Vec<f64>,
    /// It has read nothing, and the memtable was flushed since.
    pub flushed_no_reads_ns: Vec<f64>,
    /// It has read 100 absent keys, and the memtable was flushed since.
    pub flushed_reads_ns: Vec<f64>,
    /// Commits that failed, although nothing that was read had changed.
    pub aborts: Aborts,
}

/// The long transaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LongResult {
    /// Seconds from its begin to its commit.
    pub seconds: f64,
    /// Keys that it has read at its begin. Half of them were absent.
    pub reads: u64,
    /// Rows that another thread wrote during it. It had read none of them.
    pub others_rows: u64,
    /// Memtables that were flushed during it; `None` if the store does not count what it flushes.
    pub flushes: Option<u64>,
    /// What became of it.
    pub outcome: Outcome,
    /// Nanoseconds of the commit.
    pub commit_ns: f64,
}

impl StoreResult {
    /// The result of a store before anything is measured.
    pub fn new(store: StoreKind, configuration: String) -> Self {
        StoreResult { store, configuration, passes: Vec::new(), validation: None, long: None }
    }

    /// The passes of a workload.
    pub fn of(&self, workload: Workload) -> impl Iterator<Item = &PassResult> {
        self.passes.iter().filter(move |pass| pass.workload == workload)
    }

    /// The figures of a workload in each round.
    pub fn each(&self, workload: Workload, figure: impl Fn(&PassResult) -> Option<f64>) -> Vec<f64> {
        self.of(workload).filter_map(figure).collect()
    }

    /// The median of a figure of a workload.
    pub fn median(&self, workload: Workload, figure: impl Fn(&PassResult) -> Option<f64>) -> Option<f64> {
        rounds::median(self.each(workload, figure))
    }

    /// The mean time of a call in a workload: the median of the rounds.
    pub fn mean_ns(&self, workload: Workload) -> Option<f64> {
        self.median(workload, |pass| Some(pass.mean_ns))
    }

    /// The mean time in each round, with its number.
    pub fn rounds_ns(&self, workload: Workload) -> Vec<(u64, f64)> {
        self.of(workload).map(|pass| (pass.round, pass.mean_ns)).collect()
    }

    /// All attempts of a workload that were not committed.
    pub fn aborts(&self, workload: Workload) -> Aborts {
        let mut all = Aborts::default();
        self.of(workload).for_each(|pass| all.add(pass.aborts));
        all
    }

    /// What reading cost in all rounds of a workload, with the keys inserted and those that were there.
    pub fn counted(&self, workload: Workload) -> Option<(ReadCounts, u64, u64)> {
        let (mut sum, mut ops, mut duplicates) = (ReadCounts::default(), 0, 0);
        for pass in self.of(workload) {
            let counts = pass.counts?;
            sum.block_reads += counts.block_reads;
            sum.cache_hits += counts.cache_hits;
            sum.false_positives += counts.false_positives;
            ops += pass.ops;
            duplicates += pass.duplicates;
        }
        (ops > 0).then_some((sum, ops, duplicates))
    }
}

impl ValidationResult {
    /// The medians, in the order of the fields.
    pub fn medians(&self) -> [Option<f64>; 4] {
        [&self.no_reads_ns, &self.reads_ns, &self.flushed_no_reads_ns, &self.flushed_reads_ns]
            .map(|times| rounds::median(times.clone()))
    }
}

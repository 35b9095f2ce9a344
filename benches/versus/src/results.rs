//! The results: the contents of the JSON files, and the medians that tables and charts show.

use crate::engine::EngineKind;
use crate::error::Result;
use crate::machine::Machine;
use crate::quiet;
use crate::rounds;
use crate::settings::BenchSettings;
use crate::task::WorkerOutcome;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// File of the results of `versus run`, in its output directory.
pub const RUN_FILE: &str = "run.json";
/// File of the results of `versus sweep`.
pub const SWEEP_FILE: &str = "sweep.json";
/// File of the results of `versus filters`.
pub const FILTERS_FILE: &str = "filters.json";

/// The results of `versus run`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BenchRecord {
    /// When the measurement began.
    pub date: String,
    /// Its duration in seconds.
    pub seconds: f64,
    /// The machine it ran on.
    pub machine: Machine,
    /// Sizes, counts and the seed.
    pub settings: BenchSettings,
    /// How often each workload ran on each engine.
    pub rounds: u64,
    /// Each engine and its configuration, in the order of their turns. The first is the baseline.
    pub engines: Vec<(EngineKind, String)>,
    /// What could not be measured, and other notes for the reader.
    pub notes: Vec<String>,
    /// The figures of each worker.
    pub results: Vec<Measured>,
}

/// The figures of one worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// The engine.
    pub engine: EngineKind,
    /// The name of the workload.
    pub workload: String,
    /// The round, from 0.
    pub round: u64,
    /// The figures.
    pub outcome: WorkerOutcome,
}

/// The figures of one filter at one size.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FilterResult {
    /// The name in tables.
    pub name: String,
    /// The number of keys.
    pub keys: u64,
    /// Its size in bits per key.
    pub bits_per_key: f64,
    /// False-positive rate: the share of absent keys for which it answers "maybe".
    pub fpr: f64,
    /// The number of absent keys that `fpr` was counted over. Its relative standard error is one over the
    /// square root of `fpr * fpr_queries`.
    #[serde(default)]
    pub fpr_queries: u64,
    /// `bits_per_key` divided by the information bound, log2(1 / `fpr`); `None` without false positives.
    #[serde(default)]
    pub over_bound: Option<f64>,
    /// Nanoseconds per query for an absent key, one query at a time.
    pub probe_ns: f64,
    /// Nanoseconds per query for an absent key in a batch; `None` if the filter has no batched query.
    pub batched_ns: Option<f64>,
    /// Nanoseconds per query for a present key, one query at a time.
    #[serde(default)]
    pub hit_ns: Option<f64>,
    /// Nanoseconds per query for a present key in a batch; `None` if the filter has no batched query.
    #[serde(default)]
    pub batched_hit_ns: Option<f64>,
    /// Build time in nanoseconds per key.
    pub build_ns: f64,
    /// `probe_ns` with copies of the filter filling `crowd_bytes`.
    #[serde(default)]
    pub crowded_ns: Option<f64>,
    /// `batched_ns` with copies of the filter filling `crowd_bytes`.
    #[serde(default)]
    pub crowded_batched_ns: Option<f64>,
}

/// The results of `versus filters`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FiltersRecord {
    /// When the measurement began.
    pub date: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// Memory filled with copies of the largest filter ("crowd"), in bytes.
    #[serde(default)]
    pub crowd_bytes: u64,
    /// Each filter at each size.
    pub results: Vec<FilterResult>,
}

/// The results of `versus sweep`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SweepRecord {
    /// The results for each number of sorted runs.
    pub by_runs: Vec<BenchRecord>,
    /// The results for each number of keys.
    pub by_keys: Vec<BenchRecord>,
}

/// Reads JSON.
pub fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Writes JSON atomically.
pub fn write<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let next = path.with_extension("tmp");
    fs::write(&next, serde_json::to_vec_pretty(value)?)?;
    Ok(fs::rename(next, path)?)
}

impl BenchRecord {
    /// The accepted rounds.
    fn accepted(&self, engine: EngineKind, workload: &str) -> impl Iterator<Item = (u64, &WorkerOutcome)> {
        let of_both = self.results.iter().filter(move |one| one.engine == engine && one.workload == workload);
        of_both.filter(|one| one.outcome.rejected.is_none()).map(|one| (one.round, &one.outcome))
    }

    /// A figure of each accepted round.
    pub fn values(
        &self,
        engine: EngineKind,
        workload: &str,
        figure: impl Fn(&WorkerOutcome) -> Option<f64>,
    ) -> Vec<f64> {
        self.accepted(engine, workload).filter_map(|(_, outcome)| figure(outcome)).collect()
    }

    /// The median of a figure over the accepted rounds; `None` if no round has it.
    pub fn median(
        &self,
        engine: EngineKind,
        workload: &str,
        figure: impl Fn(&WorkerOutcome) -> Option<f64>,
    ) -> Option<f64> {
        rounds::median(self.values(engine, workload, figure))
    }

    /// The sorted runs of each level at the end of the last accepted round; `None` without runs.
    pub fn runs_by_level(&self, engine: EngineKind, workload: &str) -> Option<String> {
        self.accepted(engine, workload).last()?.1.facts.describe_runs()
    }

    /// The sorted runs of each level of a store that was just written, at the start of the last accepted
    /// round.
    pub fn runs_at_start(&self, engine: EngineKind, workload: &str) -> Option<String> {
        self.accepted(engine, workload).last()?.1.at_start.as_ref()?.describe_runs()
    }

    /// The speed relative to the baseline: the median of the ratios of each round.
    pub fn speedup(&self, engine: EngineKind, workload: &str) -> Option<f64> {
        let baseline = self.engines.first()?.0;
        let means =
            |of| self.accepted(of, workload).map(|(round, outcome)| (round, outcome.mean_ns)).collect();
        rounds::ratio(means(baseline), means(engine))
    }

    /// Whether this workload was measured.
    pub fn has(&self, workload: &str) -> bool {
        self.results.iter().any(|one| one.workload == workload)
    }

    /// Which figures were rejected, and why.
    pub fn rejections(&self) -> impl Iterator<Item = String> + '_ {
        self.results.iter().filter_map(|one| {
            let why = one.outcome.rejected.as_deref()?;
            Some(format!(
                "rejected: {} on {}, round {}: {why}",
                one.workload,
                one.engine.name(),
                one.round + 1
            ))
        })
    }

    /// How much other processes disturbed the accepted figures; `None` if they hardly did.
    pub fn disturbance(&self) -> Option<String> {
        let counted = self.results.iter().filter(|one| one.outcome.rejected.is_none());
        quiet::disturbance(counted.filter_map(|one| one.outcome.others))
    }
}

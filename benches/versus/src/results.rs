//! What a run found: everything that its JSON holds, and the medians that tables and pictures are made of.

use crate::engine::{Kind, Result};
use crate::filters::FilterResult;
use crate::format::number;
use crate::quiet::DISTURBING;
use crate::settings::Settings;
use crate::worker::Outcome;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Of a run, in its directory.
pub const RUN_FILE: &str = "run.json";
/// Of the sweeps, in the same directory.
pub const SWEEP_FILE: &str = "sweep.json";
/// Of the filter arena, in the same directory.
pub const FILTERS_FILE: &str = "filters.json";

/// A run of `versus run`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// When it began.
    pub date: String,
    /// Seconds that it took.
    pub seconds: f64,
    /// Where it ran.
    pub machine: Machine,
    /// Sizes, counts, seed.
    pub settings: Settings,
    /// Times that each workload ran on each engine.
    pub rounds: u64,
    /// Each engine and what it was set to, in the order in which they took turns; the first is the baseline.
    pub engines: Vec<(Kind, String)>,
    /// What could not be measured or deserves mention.
    pub notes: Vec<String>,
    /// Each worker's figures.
    pub results: Vec<Measured>,
}

/// One worker's figures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// On what.
    pub engine: Kind,
    /// A workload's name.
    pub workload: String,
    /// From 0.
    pub round: u64,
    /// The figures.
    pub outcome: Outcome,
}

/// Where a run took place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// Its name in /proc/cpuinfo.
    pub processor: String,
    /// That this process may use.
    pub cores: usize,
    /// In bytes.
    pub memory_bytes: u64,
    /// Name and release.
    pub kernel: String,
    /// Of the stores.
    pub file_system: String,
    /// rustc's version.
    pub rustc: String,
    /// Over the minute before the run.
    pub load_average: String,
}

/// The results of the filter arena.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Arena {
    /// When.
    pub date: String,
    /// Where.
    pub machine: Machine,
    /// Memory that copies of the largest filters filled ("crowd").
    #[serde(default)]
    pub crowd_bytes: u64,
    /// Each filter at each size.
    pub results: Vec<FilterResult>,
}

/// What `versus sweep` found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sweep {
    /// A run for each number of sorted runs.
    pub by_runs: Vec<Run>,
    /// A run for each number of keys.
    pub by_keys: Vec<Run>,
}

/// Reads JSON.
pub fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Writes JSON, whole or not at all.
pub fn write<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let next = path.with_extension("tmp");
    fs::write(&next, serde_json::to_vec_pretty(value)?)?;
    Ok(fs::rename(next, path)?)
}

impl Run {
    /// The rounds that count.
    fn accepted(&self, engine: Kind, workload: &str) -> impl Iterator<Item = (u64, &Outcome)> {
        let of_both = self.results.iter().filter(move |one| one.engine == engine && one.workload == workload);
        of_both.filter(|one| one.outcome.rejected.is_none()).map(|one| (one.round, &one.outcome))
    }

    /// A figure in each round that counts, sorted.
    pub fn values(&self, engine: Kind, workload: &str, figure: impl Fn(&Outcome) -> Option<f64>) -> Vec<f64> {
        sorted(self.accepted(engine, workload).filter_map(|(_, outcome)| figure(outcome)))
    }

    /// The median of a figure over the rounds; `None` when no round has it.
    pub fn median(
        &self,
        engine: Kind,
        workload: &str,
        figure: impl Fn(&Outcome) -> Option<f64>,
    ) -> Option<f64> {
        middle(&self.values(engine, workload, figure))
    }

    /// How many times faster than the baseline: the ratio of each round, then its median.
    pub fn speedup(&self, engine: Kind, workload: &str) -> Option<f64> {
        let baseline = self.engines.first()?.0;
        let ratios = self.accepted(engine, workload).filter_map(|(round, outcome)| {
            let (_, base) = self.accepted(baseline, workload).find(|(other, _)| *other == round)?;
            Some(base.mean_ns / outcome.mean_ns)
        });
        middle(&sorted(ratios))
    }

    /// Whether anything of this workload was measured.
    pub fn has(&self, workload: &str) -> bool {
        self.results.iter().any(|one| one.workload == workload)
    }

    /// Which figures do not count, and why.
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

    /// How much other processes disturbed the figures that count; `None` when it was little.
    pub fn disturbance(&self) -> Option<String> {
        let counted = self.results.iter().filter(|one| one.outcome.rejected.is_none());
        let others: Vec<f64> = counted.filter_map(|one| one.outcome.others).collect();
        let disturbed = others.iter().filter(|&&others| others > DISTURBING).count();
        (disturbed > 0).then(|| {
            format!(
                "the machine was not quiet: others kept more than {DISTURBING} processors busy during {disturbed} of {} measurements, {} at most",
                others.len(),
                number(others.iter().copied().fold(0.0, f64::max))
            )
        })
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let at = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[at]),
        _ => Some((sorted[at - 1] + sorted[at]) / 2.0),
    }
}

impl Machine {
    /// This one; `dir` tells the file system.
    pub fn here(dir: &Path) -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let line = |text: &str, name: &str| -> String {
            let line = text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once(':'));
            line.map_or("?".to_owned(), |(_, value)| value.trim().to_owned())
        };
        let kib = line(&text("/proc/meminfo"), "MemTotal");
        Machine {
            processor: line(&text("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kib.trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024,
            kernel: format!(
                "{} {}",
                text("/proc/sys/kernel/ostype").trim(),
                text("/proc/sys/kernel/osrelease").trim()
            ),
            file_system: file_system(dir, &text("/proc/mounts")),
            rustc: env!("RUSTC_VERSION").to_owned(),
            load_average: text("/proc/loadavg").split(' ').next().unwrap_or("?").to_owned(),
        }
    }

    /// In a line.
    pub fn describe(&self) -> String {
        format!(
            "{}, {} cores, {}, {}, {}, {}",
            self.processor,
            self.cores,
            crate::format::bytes(self.memory_bytes as f64),
            self.kernel,
            self.file_system,
            self.rustc
        )
    }
}

/// The type of the deepest mount point above `dir`.
fn file_system(dir: &Path, mounts: &str) -> String {
    let dir = dir.canonicalize().unwrap_or_default();
    let mounts = mounts.lines().filter_map(|line| {
        let mut columns = line.split(' ').skip(1);
        Some((columns.next()?, columns.next()?))
    });
    let above = mounts.filter(|(point, _)| dir.starts_with(point));
    above.max_by_key(|(point, _)| point.len()).map_or("?".to_owned(), |(_, kind)| kind.to_owned())
}

//! A worker process's task and answer.

use crate::engine::{EngineFacts, EngineKind};
use crate::limit::{Cgroup, CgroupUsage};
use crate::settings::BenchSettings;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A worker's task.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorkerTask {
    /// The engine to measure.
    pub engine: EngineKind,
    /// The name of a workload.
    pub workload: String,
    /// Directory of the store.
    pub dir: PathBuf,
    /// Sizes, counts and the seed.
    pub settings: BenchSettings,
    /// Keys that YCSB inserted in earlier tasks.
    pub added: u64,
    /// The generation of the values that this task writes. All values in the store have a smaller one.
    pub generation: u64,
    /// The control group to join, for a workload in limited memory.
    pub group: Option<Cgroup>,
}

/// A worker's answer: its figures.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct WorkerOutcome {
    /// Calls made (keys for multireadrandom, rows for a scan).
    pub ops: u64,
    /// Calls per second.
    pub ops_per_second: f64,
    /// Mean nanoseconds of a call; for an opening, from its start to the last answer. With several threads,
    /// total time per call.
    pub mean_ns: f64,
    /// Median of a call's time divided by its keys, in nanoseconds. Other percentiles likewise.
    pub p50_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
    /// 99.9th percentile.
    pub p999_ns: f64,
    /// Quantiles (0 to 1) and nanoseconds.
    pub curve: Vec<(f64, f64)>,
    /// CPU nanoseconds of the process per op.
    pub cpu_ns_per_op: f64,
    /// Reads completed by the disk per op, for the whole machine.
    pub disk_reads_per_op: Option<f64>,
    /// Accesses to mapped pages that waited for the disk, per op.
    #[serde(default)]
    pub major_faults_per_op: f64,
    /// Bytes read from disk on behalf of the process per op.
    pub disk_bytes_per_op: f64,
    /// Bytes written per byte that the user wrote, including the compactions that follow.
    pub write_amplification: Option<f64>,
    /// Resident anonymous memory at the end, in bytes.
    pub memory_bytes: u64,
    /// Resident pages of mapped files at the end, in bytes, the program's code included.
    pub mapped_bytes: u64,
    /// The store's files in the page cache at the end, mapped or not, in bytes.
    #[serde(default)]
    pub page_cache_bytes: Option<u64>,
    /// Disk space of the store, in bytes.
    pub disk_bytes: u64,
    /// Seconds from the last write until nothing was left to compact.
    pub settle_seconds: Option<f64>,
    /// Rows loaded per second until nothing was left to compact.
    #[serde(default)]
    pub settled_per_second: Option<f64>,
    /// CPU seconds of a load until nothing was left to compact, without generating the rows.
    #[serde(default)]
    pub load_cpu_seconds: Option<f64>,
    /// Nanoseconds to open the store.
    pub open_ns: f64,
    /// Nanoseconds from the start of opening to the first answer.
    pub first_answer_ns: Option<f64>,
    /// Puts per second of the writer in readwhilewriting.
    pub beside_per_second: Option<f64>,
    /// The engine's own statistics.
    pub facts: EngineFacts,
    /// Those before the calls, of a store that was just written.
    #[serde(default)]
    pub at_start: Option<EngineFacts>,
    /// Keys that YCSB inserted.
    pub inserted: u64,
    /// In limited memory: the control group's counters after the calls.
    #[serde(default)]
    pub limited: Option<CgroupUsage>,
    /// CPUs that other processes kept busy during the task; `None` if it was too short to tell.
    #[serde(default)]
    pub others: Option<f64>,
    /// Why the figures are rejected, if they are.
    pub rejected: Option<String>,
}

impl WorkerOutcome {
    /// Resident memory: anonymous pages, and pages of mapped files.
    pub fn resident_bytes(&self) -> u64 {
        self.memory_bytes + self.mapped_bytes
    }

    /// All memory that holds the store: anonymous pages, and its files in the page cache, mapped or not.
    pub fn all_memory_bytes(&self) -> Option<f64> {
        self.page_cache_bytes.map(|cached| (self.memory_bytes + cached) as f64)
    }

    /// Size of the filters, if the engine has any.
    pub fn filter_bytes(&self) -> Option<f64> {
        self.facts.filter_bytes.filter(|&n| n > 0).map(|n| n as f64)
    }

    /// Filter bits per key of a store of this many keys, if the engine has filters.
    pub fn filter_bits_per_key(&self, keys: u64) -> Option<f64> {
        Some(8.0 * self.filter_bytes()? / keys as f64)
    }
}

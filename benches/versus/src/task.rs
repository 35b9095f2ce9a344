//! What a worker process is told, and what it answers.

use crate::engine::{EngineFacts, EngineKind};
use crate::limit::{Cgroup, CgroupUsage};
use crate::settings::RunSettings;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a worker is to do.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorkerTask {
    /// On what.
    pub engine: EngineKind,
    /// A name of [`workload::WORKLOADS`].
    pub workload: String,
    /// Where the store is.
    pub dir: PathBuf,
    /// Sizes and counts.
    pub settings: RunSettings,
    /// Keys that YCSB inserted in earlier tasks.
    pub added: u64,
    /// Of what this task writes; all that is there has a smaller one.
    pub generation: u64,
    /// The group to join, for a workload in limited memory.
    pub group: Option<Cgroup>,
}

/// How it went.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct WorkerOutcome {
    /// Calls made (keys for multireadrandom, rows for a scan).
    pub ops: u64,
    /// In a second.
    pub ops_per_second: f64,
    /// Of a call, in nanoseconds; for open, until the first answer.
    pub mean_ns: f64,
    /// Median; of a call's time by its keys, as are the others.
    pub p50_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
    /// 99.9th percentile.
    pub p999_ns: f64,
    /// Quantiles (0 to 1) and nanoseconds.
    pub curve: Vec<(f64, f64)>,
    /// Processor nanoseconds of the process for each op.
    pub cpu_ns_per_op: f64,
    /// Reads that the disk completed for each op; the whole machine's.
    pub disk_reads_per_op: Option<f64>,
    /// Bytes that the process made the disk read for each op.
    pub disk_bytes_per_op: f64,
    /// Bytes written, the settling after it included, for each byte that the user wrote.
    pub write_amplification: Option<f64>,
    /// Resident memory at the end, in bytes: the process's own.
    pub memory_bytes: u64,
    /// Resident pages of mapped files, in bytes.
    pub mapped_bytes: u64,
    /// What the store occupies on disk.
    pub disk_bytes: u64,
    /// From the last write until nothing was left to compact.
    pub settle_seconds: Option<f64>,
    /// Until the store was open, in nanoseconds.
    pub open_ns: f64,
    /// From the start of opening to the first answer, in nanoseconds.
    pub first_answer_ns: Option<f64>,
    /// Puts in a second beside readwhilewriting.
    pub beside_per_second: Option<f64>,
    /// What the engine says of itself.
    pub facts: EngineFacts,
    /// Keys that YCSB inserted.
    pub inserted: u64,
    /// In limited memory: what the group counted, when the calls were made.
    #[serde(default)]
    pub limited: Option<CgroupUsage>,
    /// Processors that others kept busy meanwhile; `None` when it took too short a time to say.
    #[serde(default)]
    pub others: Option<f64>,
    /// Why the figures do not count.
    pub rejected: Option<String>,
}

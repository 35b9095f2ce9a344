//! What was measured.

use super::kind::StoreKind;
use super::store::Held;
use super::stream::Stream;
use crate::kernel::ResourceCounters;
use crate::machine::Machine;
use crate::settings::BenchSettings;
use serde::{Deserialize, Serialize};

/// The record of an execution.
#[derive(Debug, Serialize)]
pub struct WindowRecord {
    /// When it began.
    pub date: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// Sizes and counts.
    pub settings: WindowSettings,
    /// Each store.
    pub stores: Vec<StoreResult>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Sizes and counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WindowSettings {
    /// The ids.
    pub stream: Stream,
    /// Threads that share it.
    pub threads: usize,
    /// Sizes of caches and memtables.
    pub bench: BenchSettings,
}

/// The figures of one store.
#[derive(Debug, Serialize)]
pub struct StoreResult {
    /// Which store.
    pub store: StoreKind,
    /// Its configuration, in words.
    pub description: String,
    /// What was measured.
    pub figures: Option<WindowFigures>,
}

/// A stream through a store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WindowFigures {
    /// Nanoseconds of the whole stream.
    pub stream_ns: u64,
    /// Nanoseconds of the positions after the first window.
    pub full_ns: u64,
    /// Nanoseconds after the stream until nothing was left to flush or compact.
    pub settle_ns: u64,
    /// Ids that were new.
    pub inserted: u64,
    /// Wrong answers: ids called new that were remembered, and the reverse.
    pub wrongly_new: u64,
    pub wrongly_seen: u64,
    /// Nanoseconds of a call after the first window: median, 99.9th and 99.99th percentile; `None` for
    /// pipelines.
    pub latencies: Option<[u64; 3]>,
    /// Resources of the whole stream, until nothing was left to flush or compact.
    pub used: ResourceCounters,
    /// Disk space after the first window, in bytes: the mean and the most of samples.
    pub disk_bytes_mean: u64,
    pub disk_bytes_max: u64,
    /// What the store held at the end of the stream.
    pub held: Held,
    /// Anonymous memory of the process then, in bytes.
    pub memory_bytes: u64,
}

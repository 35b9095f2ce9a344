//! What was measured.

use super::kind::StoreKind;
use crate::machine::Machine;
use crate::settings::BenchSettings;
use serde::{Deserialize, Serialize};

/// The record of an execution.
#[derive(Debug, Serialize)]
pub struct KeyspacesRecord {
    /// When it began.
    pub date: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// Sizes and counts.
    pub settings: KeyspaceSettings,
    /// Each store.
    pub stores: Vec<StoreResult>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Sizes and counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeyspaceSettings {
    /// Rows of each of the three large keyspaces.
    pub num: u64,
    /// Lookups of each kind in each of them, in a round.
    pub reads: u64,
    /// Batches of a row for each of them, in a round.
    pub batches: u64,
    /// Small keyspaces.
    pub small: u64,
    /// Size of the keys and values of the keyspace that is dropped.
    pub drop_bytes: u64,
    /// Rounds.
    pub rounds: u64,
    /// Whether the large keyspaces are compacted after the load.
    pub compact: bool,
    /// Sizes of caches and memtables, and the seed.
    pub bench: BenchSettings,
}

/// The figures of one store.
#[derive(Debug, Serialize)]
pub struct StoreResult {
    /// Which store.
    pub store: StoreKind,
    /// Its configuration, in words.
    pub description: String,
    /// The load of the large keyspaces.
    pub load: Option<LoadFigures>,
    /// What the check of all rows counted.
    pub checked: Option<CheckFigures>,
    /// The lookups of each round.
    pub lookups: Vec<LookupFigures>,
    /// The batches of each round.
    pub batches: Vec<BatchFigures>,
    /// The small keyspaces of each round.
    pub small: Vec<SmallFigures>,
    /// Their creation with one call, in each round.
    pub together: Vec<CreateFigures>,
    /// Their opening in each round.
    pub opened: Vec<OpenFigures>,
    /// The drop of each round.
    pub dropped: Vec<DropFigures>,
}

impl StoreResult {
    /// The result of a store before anything is measured.
    pub fn new(store: StoreKind, description: String) -> Self {
        StoreResult {
            store,
            description,
            load: None,
            checked: None,
            lookups: Vec::new(),
            batches: Vec::new(),
            small: Vec::new(),
            together: Vec::new(),
            opened: Vec::new(),
            dropped: Vec::new(),
        }
    }
}

/// A load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadFigures {
    /// Nanoseconds of all writes.
    pub put_ns: u64,
    /// Nanoseconds until nothing was left to compact.
    pub settle_ns: u64,
    /// Size of all filters in bytes; `None` without filters.
    pub filter_bytes: Option<u64>,
    /// Disk space of the store, in bytes.
    pub disk_bytes: u64,
}

/// Right answers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CheckFigures {
    /// Keys that were found with the right value.
    pub found: u64,
    /// Keys that were missing, as they must be.
    pub missing: u64,
}

/// Lookups in the three large keyspaces.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LookupFigures {
    /// Nanoseconds to open the store.
    pub open_ns: u64,
    /// Mean nanoseconds of a get of a present key, in each keyspace.
    pub found_ns: [f64; 3],
    /// Mean nanoseconds of a get of a missing key, in each keyspace.
    pub missing_ns: [f64; 3],
    /// Growth of anonymous memory since before opening, in bytes.
    pub memory_bytes: u64,
    /// The store's files in the page cache, mapped or not, in bytes.
    pub page_cache_bytes: u64,
}

/// Batches of a row for each large keyspace.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BatchFigures {
    /// Rows per second of the writes.
    pub rows_per_second: f64,
    /// Rows per second until nothing was left to compact.
    pub settled_per_second: f64,
}

/// Small keyspaces.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SmallFigures {
    /// Nanoseconds to create all of them, one by one.
    pub create_ns: u64,
    /// Nanoseconds to write their rows.
    pub put_ns: u64,
    /// Nanoseconds until nothing was left to flush or compact.
    pub settle_ns: u64,
    /// Nanoseconds to close the store then.
    pub close_ns: u64,
    /// Anonymous memory of the process before closing, in bytes.
    pub memory_bytes: u64,
    /// Files of the closed store.
    pub files: u64,
    /// Disk space of the closed store, in bytes.
    pub disk_bytes: u64,
}

/// Small keyspaces that are created with one call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CreateFigures {
    /// Nanoseconds.
    pub create_ns: u64,
}

/// A store with small keyspaces that was opened in a new process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpenFigures {
    /// Nanoseconds until every keyspace was open.
    pub open_ns: u64,
    /// Growth of anonymous memory, in bytes.
    pub memory_bytes: u64,
    /// Growth of resident mapped files, in bytes.
    pub mapped_bytes: u64,
}

/// A drop.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DropFigures {
    /// Nanoseconds of the call.
    pub drop_ns: u64,
    /// Bytes read from the disk during the call.
    pub read_bytes: u64,
    /// Bytes that the process asked to read during the call.
    pub read_call_bytes: u64,
    /// Bytes dirtied during the call.
    pub write_bytes: u64,
    /// Disk space before.
    pub disk_bytes_before: u64,
    /// Disk space once it stayed the same.
    pub disk_bytes_after: u64,
    /// Seconds from the end of the call until disk space stayed the same.
    pub freed_seconds: f64,
    /// Bytes read from the disk until then.
    pub read_bytes_until_freed: u64,
    /// Bytes dirtied until then.
    pub write_bytes_until_freed: u64,
}

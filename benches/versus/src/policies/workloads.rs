//! The workloads, and their engine.

use crate::engine::EngineKind;

/// The engine whose filter is replaced.
pub const ENGINE: EngineKind = EngineKind::Rocksdb;
/// The workload that loads a store.
pub const LOAD: &str = "load";
/// The workloads of a round.
pub const WORKLOADS: [&str; 4] = [MISSING, MULTI_MISSING, FOUND, COLD];
/// A missing key.
pub const MISSING: &str = "readmissing";
/// 32 missing keys at once.
pub const MULTI_MISSING: &str = "multireadmissing";
/// A present key.
pub const FOUND: &str = "readrandom";
/// A missing key, with the files out of the page cache.
pub const COLD: &str = "readmissing-cold";
/// The generation of the loaded values. It seeds the keys of a workload, and later generations count from it.
pub const LOADED: u64 = 1;

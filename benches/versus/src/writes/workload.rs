//! What is timed in rounds.

use super::kind::StoreKind;
use serde::{Deserialize, Serialize};

/// Threads of the workloads that have several.
pub const THREADS: u64 = 8;
/// Rows of a batch.
pub const BATCH: u64 = 100;

/// A workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Puts of new keys, which nothing is read for.
    Put,
    /// Inserts of new keys.
    InsertNew,
    /// Inserts of keys of which half are there.
    InsertHalf,
    /// Inserts of new keys, 100 at once.
    InsertMany,
    /// Inserts of new keys, with the store's files out of the page cache.
    InsertCold,
    /// Transactions of random keys on one thread.
    Uniform1,
    /// Transactions of random keys on eight threads.
    Uniform8,
    /// Transactions of keys of which some are popular on one thread.
    Zipf1,
    /// Transactions of keys of which some are popular on eight threads.
    Zipf8,
}

impl Workload {
    /// All of them. The cold ones have rounds of their own, which come first.
    pub const ALL: [Workload; 9] = [
        Workload::Put,
        Workload::InsertNew,
        Workload::InsertHalf,
        Workload::InsertMany,
        Workload::InsertCold,
        Workload::Uniform1,
        Workload::Uniform8,
        Workload::Zipf1,
        Workload::Zipf8,
    ];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Put => "put, new keys",
            Workload::InsertNew => "insert_new, new keys",
            Workload::InsertHalf => "insert_new, half are duplicates",
            Workload::InsertMany => "insert_new_many, 100 new keys",
            Workload::InsertCold => "insert_new, new keys, cold",
            Workload::Uniform1 => "transactions, 1 thread",
            Workload::Uniform8 => "transactions, 8 threads",
            Workload::Zipf1 => "transactions, zipf, 1 thread",
            Workload::Zipf8 => "transactions, zipf, 8 threads",
        }
    }

    /// Whether it makes transactions.
    pub fn is_transactional(self) -> bool {
        matches!(self, Workload::Uniform1 | Workload::Uniform8 | Workload::Zipf1 | Workload::Zipf8)
    }

    /// Whether the store's files are out of the page cache.
    pub fn is_cold(self) -> bool {
        self == Workload::InsertCold
    }

    /// Its threads.
    pub fn threads(self) -> u64 {
        if matches!(self, Workload::Uniform8 | Workload::Zipf8) { THREADS } else { 1 }
    }

    /// Whether some keys are popular.
    pub fn is_zipf(self) -> bool {
        matches!(self, Workload::Zipf1 | Workload::Zipf8)
    }

    /// Whether a store can run it.
    pub fn suits(self, kind: StoreKind) -> bool {
        match self {
            Workload::InsertMany => kind.has_batches(),
            workload => !workload.is_transactional() || kind.has_transactions(),
        }
    }
}

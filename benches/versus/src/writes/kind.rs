//! The compared stores.

use crate::engine::EngineKind;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::Path;

/// A store to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    /// sidebloom.
    #[value(name = "sidebloom")]
    Ours,
    /// RocksDB's `DB`, by a get and a put, which are not atomic.
    #[value(name = "rocksdb")]
    Rocks,
    /// RocksDB's `OptimisticTransactionDB`.
    #[value(name = "rocksdb-optimistic")]
    RocksOptimistic,
    /// fjall's `OptimisticTxDatabase`.
    FjallOptimistic,
    /// fjall's `SingleWriterTxDatabase`.
    FjallSingle,
    /// redb.
    Redb,
    /// LMDB.
    Lmdb,
    /// CandyStore, a hash table in files.
    #[value(name = "candystore")]
    Candy,
}

impl StoreKind {
    /// Those that a user chose, or all in this build, sidebloom first.
    pub fn or_all(chosen: &[StoreKind]) -> Vec<StoreKind> {
        let all = [
            StoreKind::Ours,
            StoreKind::Rocks,
            StoreKind::RocksOptimistic,
            StoreKind::FjallOptimistic,
            StoreKind::FjallSingle,
            StoreKind::Redb,
            StoreKind::Lmdb,
            StoreKind::Candy,
        ];
        let is_here = |kind: &StoreKind| cfg!(feature = "rocksdb") || !kind.is_rocks();
        if chosen.is_empty() { all.into_iter().filter(is_here).collect() } else { chosen.to_vec() }
    }

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            StoreKind::Ours => "sidebloom",
            StoreKind::Rocks => "RocksDB, get and put",
            StoreKind::RocksOptimistic => "RocksDB, optimistic",
            StoreKind::FjallOptimistic => "fjall, optimistic",
            StoreKind::FjallSingle => "fjall, one writer",
            StoreKind::Redb => "redb",
            StoreKind::Lmdb => "LMDB",
            StoreKind::Candy => "CandyStore",
        }
    }

    /// The name of the directory.
    pub fn directory(self) -> &'static str {
        match self {
            StoreKind::Ours => "sidebloom",
            StoreKind::Rocks => "rocksdb",
            StoreKind::RocksOptimistic => "rocksdb-optimistic",
            StoreKind::FjallOptimistic => "fjall-optimistic",
            StoreKind::FjallSingle => "fjall-single",
            StoreKind::Redb => "redb",
            StoreKind::Lmdb => "lmdb",
            StoreKind::Candy => "candystore",
        }
    }

    /// Whether it is RocksDB.
    pub fn is_rocks(self) -> bool {
        matches!(self, StoreKind::Rocks | StoreKind::RocksOptimistic)
    }

    /// Whether several keys can be inserted at once.
    pub fn has_batches(self) -> bool {
        self != StoreKind::Candy
    }

    /// Whether it has transactions.
    pub fn has_transactions(self) -> bool {
        !matches!(self, StoreKind::Rocks | StoreKind::Candy)
    }

    /// Whether others may write during a transaction. The others have one writer, who waits for the end of
    /// the transaction before.
    pub fn is_optimistic(self) -> bool {
        matches!(self, StoreKind::Ours | StoreKind::RocksOptimistic | StoreKind::FjallOptimistic)
    }

    /// Whether the store keeps this file mapped in memory by design. A cold pass leaves it there.
    pub fn stays_in_memory(self, file: &Path) -> bool {
        match self {
            StoreKind::Ours => EngineKind::Sidebloom.stays_in_memory(file),
            StoreKind::Candy => EngineKind::Candystore.stays_in_memory(file),
            _ => false,
        }
    }

    /// The error of a call that it does not have.
    pub fn lacks(self, what: &str) -> Box<dyn Error + Send + Sync> {
        format!("{} has no {what}", self.name()).into()
    }
}

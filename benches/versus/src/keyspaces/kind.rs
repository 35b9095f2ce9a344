//! The compared stores.

use serde::{Deserialize, Serialize};

/// A store to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    /// sidebloom's keyspaces.
    #[value(name = "sidebloom")]
    Ours,
    /// RocksDB's column families.
    #[value(name = "rocksdb")]
    Rocks,
    /// fjall's keyspaces.
    Fjall,
    /// redb's tables.
    Redb,
    /// LMDB's named databases.
    Lmdb,
}

impl StoreKind {
    /// Those that a user chose, or all in this build, sidebloom first.
    pub fn or_all(chosen: &[StoreKind]) -> Vec<StoreKind> {
        let all = [StoreKind::Ours, StoreKind::Rocks, StoreKind::Fjall, StoreKind::Redb, StoreKind::Lmdb];
        let is_here = |kind: &StoreKind| cfg!(feature = "rocksdb") || *kind != StoreKind::Rocks;
        if chosen.is_empty() { all.into_iter().filter(is_here).collect() } else { chosen.to_vec() }
    }

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            StoreKind::Ours => "sidebloom",
            StoreKind::Rocks => "RocksDB",
            StoreKind::Fjall => "fjall",
            StoreKind::Redb => "redb",
            StoreKind::Lmdb => "LMDB",
        }
    }

    /// The name of the directory.
    pub fn directory(self) -> &'static str {
        match self {
            StoreKind::Ours => "sidebloom",
            StoreKind::Rocks => "rocksdb",
            StoreKind::Fjall => "fjall",
            StoreKind::Redb => "redb",
            StoreKind::Lmdb => "lmdb",
        }
    }

    /// Whether one call creates many keyspaces.
    pub fn creates_together(self) -> bool {
        matches!(self, StoreKind::Rocks | StoreKind::Redb | StoreKind::Lmdb)
    }
}

/// The error of an answer that ends the run.
pub fn wrong(kind: StoreKind, what: &str) -> Box<dyn std::error::Error + Send + Sync> {
    format!("WRONG ANSWER: {}: {what}", kind.name()).into()
}

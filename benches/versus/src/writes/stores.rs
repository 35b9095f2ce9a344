//! Opens the compared stores.

use super::candy_store::CandyKeys;
use super::fjall_optimistic::FjallOptimisticStore;
use super::fjall_single::FjallSingleStore;
use super::kind::StoreKind;
use super::lmdb_store::LmdbStore;
use super::redb_store::RedbStore;
#[cfg(feature = "rocksdb")]
use super::rocks::RocksStore;
#[cfg(feature = "rocksdb")]
use super::rocks_optimistic::RocksOptimisticStore;
use super::sidebloom_store::SidebloomStore;
use super::store::WriteStore;
use crate::engine::EngineKind;
use crate::engines;
use crate::error::Result;
use crate::settings::BenchSettings;
use std::path::Path;

/// Opens or creates a store. `count` turns on RocksDB's statistics, which cost time.
pub fn open(
    kind: StoreKind,
    dir: &Path,
    settings: &BenchSettings,
    count: bool,
) -> Result<Box<dyn WriteStore>> {
    std::fs::create_dir_all(dir)?;
    Ok(match kind {
        StoreKind::Ours => Box::new(SidebloomStore::open(dir, settings)?),
        #[cfg(feature = "rocksdb")]
        StoreKind::Rocks => Box::new(RocksStore::open(dir, settings)?),
        #[cfg(feature = "rocksdb")]
        StoreKind::RocksOptimistic => Box::new(RocksOptimisticStore::open(dir, settings, count)?),
        #[cfg(not(feature = "rocksdb"))]
        StoreKind::Rocks | StoreKind::RocksOptimistic => {
            let _ = count;
            return Err(kind.lacks("code in this build: build with --features rocksdb"));
        }
        StoreKind::FjallOptimistic => Box::new(FjallOptimisticStore::open(dir, settings)?),
        StoreKind::FjallSingle => Box::new(FjallSingleStore::open(dir, settings)?),
        StoreKind::Redb => Box::new(RedbStore::open(dir, settings)?),
        StoreKind::Lmdb => Box::new(LmdbStore::open(dir, settings)?),
        StoreKind::Candy => Box::new(CandyKeys::open(dir, settings)?),
    })
}

/// The configuration of a store, in words.
pub fn describe(kind: StoreKind, settings: &BenchSettings) -> String {
    let (engine, calls) = match kind {
        StoreKind::Ours => (
            EngineKind::Sidebloom,
            "insert_new, insert_new_many; Db::transaction with Isolation::Serializable",
        ),
        StoreKind::Rocks => (
            EngineKind::RocksdbBloom,
            "Get, or MultiGet for a batch, then Put or a WriteBatch: not atomic, so another writer could come in between",
        ),
        StoreKind::RocksOptimistic => (
            EngineKind::RocksdbBloom,
            "OptimisticTransactionDB with its defaults (parallel validation, a history of two memtables); GetForUpdate of all keys, Put, Commit",
        ),
        StoreKind::FjallOptimistic => {
            (EngineKind::Fjall, "OptimisticTxDatabase: a write_tx for each call, also for a put")
        }
        StoreKind::FjallSingle => {
            (EngineKind::Fjall, "SingleWriterTxDatabase: a write_tx for each call, also for a put")
        }
        StoreKind::Redb => {
            (EngineKind::Redb, "Table::entry in a write transaction, which is aborted if the key is there")
        }
        StoreKind::Lmdb => {
            (EngineKind::Lmdb, "NOOVERWRITE in a write transaction, which is aborted if the key is there")
        }
        StoreKind::Candy => (EngineKind::Candystore, "get_or_create"),
    };
    format!("{}; {calls}", engines::describe(engine, settings))
}

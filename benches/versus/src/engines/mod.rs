//! The engines of the comparison, one file each.

pub mod candystore;
pub mod fjall;
#[cfg(feature = "libmdbx")]
pub mod libmdbx;
pub mod lmdb;
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
pub mod sidebloom;

use crate::engine::{Engine, EngineKind};
use crate::error::Result;
use crate::settings::BenchSettings;
use std::path::Path;

/// Opens the store in `dir`, creating it if it is missing. `count` turns on RocksDB's statistics, which cost
/// time, for [`EngineFacts`](crate::engine::EngineFacts).
pub fn open(kind: EngineKind, dir: &Path, settings: &BenchSettings, count: bool) -> Result<Box<dyn Engine>> {
    std::fs::create_dir_all(dir)?;
    Ok(match kind {
        #[cfg(feature = "rocksdb")]
        EngineKind::Rocksdb | EngineKind::RocksdbBloom | EngineKind::RocksdbRibbon => {
            Box::new(rocksdb::RocksEngine::open(kind, dir, settings, count)?)
        }
        #[cfg(not(feature = "rocksdb"))]
        EngineKind::Rocksdb | EngineKind::RocksdbBloom | EngineKind::RocksdbRibbon => {
            let _ = count;
            return Err("this build has no RocksDB: build with --features rocksdb".into());
        }
        EngineKind::Sidebloom | EngineKind::SidebloomPlain | EngineKind::SidebloomNofilter => {
            Box::new(sidebloom::SidebloomEngine::open(kind, dir, settings)?)
        }
        EngineKind::Fjall => Box::new(fjall::FjallEngine::open(dir, settings)?),
        EngineKind::Redb => Box::new(redb::RedbEngine::open(dir, settings)?),
        EngineKind::Lmdb => Box::new(lmdb::LmdbEngine::open(dir, settings)?),
        #[cfg(feature = "libmdbx")]
        EngineKind::Libmdbx => Box::new(libmdbx::MdbxEngine::open(dir, settings)?),
        #[cfg(not(feature = "libmdbx"))]
        EngineKind::Libmdbx => return Err("this build has no libmdbx: build with --features libmdbx".into()),
        EngineKind::Candystore => Box::new(candystore::CandyEngine::open(dir, settings)?),
    })
}

/// The engine's configuration, in words. It is printed with every result.
pub fn describe(kind: EngineKind, settings: &BenchSettings) -> String {
    match kind {
        #[cfg(feature = "rocksdb")]
        EngineKind::Rocksdb | EngineKind::RocksdbBloom | EngineKind::RocksdbRibbon => {
            rocksdb::describe(kind, settings)
        }
        #[cfg(not(feature = "rocksdb"))]
        EngineKind::Rocksdb | EngineKind::RocksdbBloom | EngineKind::RocksdbRibbon => {
            "not in this build".to_owned()
        }
        EngineKind::Sidebloom | EngineKind::SidebloomPlain | EngineKind::SidebloomNofilter => {
            sidebloom::describe(kind, settings)
        }
        EngineKind::Fjall => fjall::describe(settings),
        EngineKind::Redb => redb::describe(settings),
        EngineKind::Lmdb => lmdb::describe(),
        #[cfg(feature = "libmdbx")]
        EngineKind::Libmdbx => libmdbx::describe().to_owned(),
        #[cfg(not(feature = "libmdbx"))]
        EngineKind::Libmdbx => "not in this build".to_owned(),
        EngineKind::Candystore => candystore::describe().to_owned(),
    }
}

//! Opens and describes each of the compared stores.

use super::kind::StoreKind;
use super::store::{KeyspaceStore, OpenSpec, SpaceSpec};
use crate::error::Result;
use crate::settings::BenchSettings;
use std::path::Path;

/// Opens or creates a store with these keyspaces. Those that are missing are created, at once if it can.
pub fn open(
    kind: StoreKind,
    dir: &Path,
    how: OpenSpec<'_>,
    specs: &[SpaceSpec],
) -> Result<Box<dyn KeyspaceStore>> {
    std::fs::create_dir_all(dir)?;
    Ok(match kind {
        StoreKind::Ours => Box::new(super::sidebloom_store::SidebloomStore::open(dir, how, specs)?),
        #[cfg(feature = "rocksdb")]
        StoreKind::Rocks => Box::new(super::rocks::RocksStore::open(dir, how, specs)?),
        #[cfg(not(feature = "rocksdb"))]
        StoreKind::Rocks => return Err("this build has no RocksDB: build with --features rocksdb".into()),
        StoreKind::Fjall => Box::new(super::fjall_store::FjallStore::open(dir, how, specs)?),
        StoreKind::Redb => Box::new(super::redb_store::RedbStore::open(dir, how, specs)?),
        StoreKind::Lmdb => Box::new(super::lmdb_store::LmdbStore::open(dir, how, specs)?),
    })
}

/// The configuration of a store, in words.
pub fn describe(kind: StoreKind, settings: &BenchSettings) -> String {
    match kind {
        StoreKind::Ours => super::sidebloom_store::describe(settings),
        #[cfg(feature = "rocksdb")]
        StoreKind::Rocks => super::rocks::describe(settings),
        #[cfg(not(feature = "rocksdb"))]
        StoreKind::Rocks => "not in this build".to_owned(),
        StoreKind::Fjall => super::fjall_store::describe(settings),
        StoreKind::Redb => super::redb_store::describe(settings),
        StoreKind::Lmdb => super::lmdb_store::describe(),
    }
}

//! Creates and describes each of the compared stores.

use super::kind::StoreKind;
use super::store::{OpenSpec, WindowStore};
use crate::error::Result;
use crate::settings::BenchSettings;

/// Creates a store for so many threads.
pub fn open(kind: StoreKind, how: &OpenSpec<'_>, threads: usize) -> Result<Box<dyn WindowStore>> {
    std::fs::create_dir_all(how.dir)?;
    Ok(match kind {
        #[cfg(feature = "rocksdb")]
        _ if kind.is_rocks() => Box::new(super::rocks::RocksStore::open(kind, how)?),
        #[cfg(not(feature = "rocksdb"))]
        _ if kind.is_rocks() => return Err("this build has no RocksDB: build with --features rocksdb".into()),
        StoreKind::Fjall => Box::new(super::fjall_store::FjallStore::open(how)?),
        #[cfg(feature = "slatedb")]
        StoreKind::SlateDb => Box::new(super::slatedb_store::SlateStore::open(how)?),
        #[cfg(not(feature = "slatedb"))]
        StoreKind::SlateDb => return Err("this build has no SlateDB: build with --features slatedb".into()),
        StoreKind::Redis => Box::new(super::redis_store::RedisStore::start(how, threads)?),
        StoreKind::RedisBloom => Box::new(super::redisbloom_store::RedisBloomStore::start(how, threads)?),
        _ => Box::new(super::sidebloom_store::SidebloomStore::open(kind, how)?),
    })
}

/// The configuration of a store, in words.
pub fn describe(kind: StoreKind, settings: &BenchSettings) -> String {
    match kind {
        #[cfg(feature = "rocksdb")]
        _ if kind.is_rocks() => super::rocks::describe(kind, settings),
        #[cfg(not(feature = "rocksdb"))]
        _ if kind.is_rocks() => "not in this build".to_owned(),
        StoreKind::Fjall => super::fjall_store::describe(settings),
        #[cfg(feature = "slatedb")]
        StoreKind::SlateDb => super::slatedb_store::describe(settings),
        #[cfg(not(feature = "slatedb"))]
        StoreKind::SlateDb => "not in this build".to_owned(),
        StoreKind::Redis => super::redis_store::describe(),
        StoreKind::RedisBloom => super::redisbloom_store::describe(),
        _ => super::sidebloom_store::describe(kind, settings),
    }
}

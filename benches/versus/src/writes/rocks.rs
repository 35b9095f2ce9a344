//! RocksDB's `DB`: a get and a put, which are not atomic.

use super::kind::StoreKind;
use super::store::{Row, WriteStore};
use crate::engine::{Engine, EngineKind};
use crate::engines::rocksdb::RocksEngine;
use crate::error::Result;
use crate::settings::BenchSettings;
use std::path::Path;

/// An open store.
pub struct RocksStore(RocksEngine);

impl RocksStore {
    /// Opens or creates the store.
    pub fn open(dir: &Path, settings: &BenchSettings) -> Result<Self> {
        Ok(RocksStore(RocksEngine::open(EngineKind::RocksdbBloom, dir, settings, false)?))
    }
}

impl WriteStore for RocksStore {
    fn kind(&self) -> StoreKind {
        StoreKind::Rocks
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value)
    }

    fn put_all(&self, rows: &[Row]) -> Result<()> {
        self.0.put_all(rows)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.0.get(key, value)
    }

    fn insert_new(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let is_new = !self.0.contains(key)?;
        if is_new {
            self.0.put(key, value)?;
        }
        Ok(is_new)
    }

    fn insert_new_many(&self, rows: &[Row]) -> Result<Vec<bool>> {
        let are_there = self.0.contain(rows.iter().map(|(key, _)| key.as_slice()))?;
        let new = rows.iter().zip(&are_there).filter(|(_, is_there)| !**is_there).map(|(row, _)| row);
        self.0.write_rows(new)?;
        Ok(are_there.into_iter().map(|is_there| !is_there).collect())
    }

    fn flush(&self) -> Result<()> {
        self.0.flush()
    }

    fn finish(&self) -> Result<()> {
        self.0.finish_compactions()
    }
}

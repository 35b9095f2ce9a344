//! CandyStore: a hash table in files. It has no transactions and no batches.

use super::kind::StoreKind;
use super::store::{Row, WriteStore};
use crate::engine::Engine;
use crate::engines::candystore::CandyEngine;
use crate::error::Result;
use crate::settings::BenchSettings;
use std::path::Path;

/// An open store.
pub struct CandyKeys(CandyEngine);

impl CandyKeys {
    /// Opens or creates the store.
    pub fn open(dir: &Path, settings: &BenchSettings) -> Result<Self> {
        Ok(CandyKeys(CandyEngine::open(dir, settings)?))
    }
}

impl WriteStore for CandyKeys {
    fn kind(&self) -> StoreKind {
        StoreKind::Candy
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
        Ok(self.0.0.get_or_create(key, value)?.was_created())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        self.0.finish_compactions()
    }
}

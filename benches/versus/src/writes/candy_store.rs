//! CandyStore: a hash table in files. It has no transactions and no batches.

use super::kind::StoreKind;
use super::store::{Row, WriteStore};
use crate::error::Result;
use crate::settings::BenchSettings;
use candystore::{CandyStore, Config};
use std::path::Path;

/// An open store.
pub struct CandyKeys(CandyStore);

/// Its configuration, in words.
pub fn describe() -> &'static str {
    "CandyStore 1.2: get_or_create; capacity for all keys; checkpoints, which call fdatasync, only when a pass ends; otherwise its defaults; \
     cached by the page cache, no compression (unsupported)"
}

impl CandyKeys {
    /// Opens or creates the store.
    pub fn open(dir: &Path, settings: &BenchSettings) -> Result<Self> {
        let config = Config {
            initial_capacity: settings.num as usize,
            checkpoint_interval: None,
            checkpoint_delta_bytes: None,
            ..Config::default()
        };
        Ok(CandyKeys(CandyStore::open(dir, config)?))
    }
}

impl WriteStore for CandyKeys {
    fn kind(&self) -> StoreKind {
        StoreKind::Candy
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.set(key, value)?;
        Ok(())
    }

    fn put_all(&self, rows: &[Row]) -> Result<()> {
        rows.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.0.get(key)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn insert_new(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.0.get_or_create(key, value)?.was_created())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        Ok(self.0.checkpoint()?)
    }
}

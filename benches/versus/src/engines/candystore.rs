//! CandyStore, a hash table in files. Its keys have no order.

use crate::engine::{Engine, EngineFacts};
use crate::error::Result;
use crate::settings::BenchSettings;
use candystore::{CandyStore, Config};
use std::path::Path;

/// An open store.
pub struct CandyEngine(pub CandyStore);

/// The engine's configuration, in words.
pub fn describe() -> &'static str {
    "CandyStore 1.2: capacity for all keys; checkpoints, which call fdatasync, only when a pass ends; otherwise its defaults; \
     cached by the page cache, no compression (unsupported)"
}

impl CandyEngine {
    /// Opens or creates the store.
    pub fn open(dir: &Path, settings: &BenchSettings) -> Result<Self> {
        let config = Config {
            initial_capacity: settings.num as usize,
            checkpoint_interval: None,
            checkpoint_delta_bytes: None,
            ..Config::default()
        };
        Ok(CandyEngine(CandyStore::open(dir, config)?))
    }
}

impl Engine for CandyEngine {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.set(key, value)?;
        Ok(())
    }

    /// It has no batches.
    fn put_all(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        pairs.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.0.get(key)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn scan(&self, _: &[u8], _: usize, _: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        Err("CandyStore's keys have no order".into())
    }

    /// Its compaction of updated rows, at 4 MiB a second in the background, is not waited for.
    fn finish_compactions(&self) -> Result<()> {
        Ok(self.0.checkpoint()?)
    }

    fn busy(&self) -> bool {
        false
    }

    fn facts(&self) -> Result<EngineFacts> {
        Ok(EngineFacts::default())
    }
}

//! sidebloom.

use super::change::Change;
use super::kind::StoreKind;
use super::optimistic;
use super::store::{OpenTransaction, Outcome, ReadCounts, Row, WriteStore};
use crate::engine::{Engine, EngineKind};
use crate::engines::sidebloom::SidebloomEngine;
use crate::error::Result;
use crate::settings::BenchSettings;
use sidebloom::{Error, Transaction};
use std::path::Path;

/// An open store.
pub struct SidebloomStore(SidebloomEngine);

impl SidebloomStore {
    /// Opens or creates the store.
    pub fn open(dir: &Path, settings: &BenchSettings) -> Result<Self> {
        Ok(SidebloomStore(SidebloomEngine::open(EngineKind::Sidebloom, dir, settings)?))
    }
}

impl OpenTransaction for Transaction {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = Transaction::get(self, key)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(Transaction::put(self, key, value)?)
    }

    fn commit(self: Box<Self>) -> Result<Outcome> {
        match Transaction::commit(*self) {
            Ok(()) => Ok(Outcome::Committed),
            Err(Error::Conflict { .. }) => Ok(Outcome::Conflict),
            Err(error) => Err(error.into()),
        }
    }
}

impl WriteStore for SidebloomStore {
    fn kind(&self) -> StoreKind {
        StoreKind::Ours
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
        Ok(self.0.0.insert_new(key, value)?)
    }

    fn insert_new_many(&self, rows: &[Row]) -> Result<Vec<bool>> {
        Ok(self.0.0.insert_new_many(rows)?)
    }

    fn transact(&self, change: &mut Change<'_>) -> Result<Outcome> {
        optimistic::attempt(self.kind(), Box::new(self.0.0.transaction()), change)
    }

    fn begin(&self) -> Result<Box<dyn OpenTransaction + '_>> {
        Ok(Box::new(self.0.0.transaction()))
    }

    fn flush(&self) -> Result<()> {
        Ok(self.0.0.flush()?)
    }

    fn finish(&self) -> Result<()> {
        self.0.finish_compactions()
    }

    fn warm(&self) -> Result<()> {
        self.0.warm()
    }

    fn read_counts(&self) -> Option<ReadCounts> {
        let stats = self.0.0.stats();
        Some(ReadCounts {
            block_reads: stats.block_reads,
            cache_hits: stats.block_cache_hits,
            false_positives: stats.filter_false_positives,
        })
    }

    fn flushed_bytes(&self) -> Option<u64> {
        Some(self.0.0.stats().flush_bytes)
    }
}

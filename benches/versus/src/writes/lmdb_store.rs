//! LMDB, which has one writer, and a flag for puts of absent keys.

use super::change::Change;
use super::kind::StoreKind;
use super::store::{Outcome, Row, WriteStore};
use crate::engine::Engine;
use crate::engines::lmdb::LmdbEngine;
use crate::error::Result;
use crate::settings::BenchSettings;
use heed::{Error, MdbError, PutFlags, RwTxn};
use std::path::Path;

/// An open store.
pub struct LmdbStore(LmdbEngine);

impl LmdbStore {
    /// Opens or creates the store.
    pub fn open(dir: &Path, settings: &BenchSettings) -> Result<Self> {
        Ok(LmdbStore(LmdbEngine::open(dir, settings)?))
    }

    fn insert_in(&self, transaction: &mut RwTxn<'_>, key: &[u8], value: &[u8]) -> Result<bool> {
        match self.0.table.put_with_flags(transaction, PutFlags::NO_OVERWRITE, key, value) {
            Ok(()) => Ok(true),
            Err(Error::Mdb(MdbError::KeyExist)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl WriteStore for LmdbStore {
    fn kind(&self) -> StoreKind {
        StoreKind::Lmdb
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
        let mut transaction = self.0.env.write_txn()?;
        let is_new = self.insert_in(&mut transaction, key, value)?;
        if is_new {
            transaction.commit()?;
        }
        Ok(is_new)
    }

    fn insert_new_many(&self, rows: &[Row]) -> Result<Vec<bool>> {
        let mut transaction = self.0.env.write_txn()?;
        let insert = |(key, value): &Row| self.insert_in(&mut transaction, key, value);
        let are_new = rows.iter().map(insert).collect::<Result<Vec<bool>>>()?;
        transaction.commit()?;
        Ok(are_new)
    }

    fn transact(&self, change: &mut Change<'_>) -> Result<Outcome> {
        let mut transaction = self.0.env.write_txn()?;
        for (at, key) in change.keys().iter().enumerate() {
            let found = self.0.table.get(&transaction, key)?;
            change.see(self.kind(), at, found)?;
        }
        for (key, value) in change.writes() {
            self.0.table.put(&mut transaction, key, value)?;
        }
        transaction.commit()?;
        Ok(Outcome::Committed)
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        self.0.finish_compactions()
    }
}

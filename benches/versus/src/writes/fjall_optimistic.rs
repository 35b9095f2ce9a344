//! fjall's `OptimisticTxDatabase`.

use super::change::Change;
use super::kind::StoreKind;
use super::optimistic;
use super::store::{OpenTransaction, Outcome, Row, WriteStore};
use crate::engines::fjall::{finish_compactions, keyspace_options};
use crate::error::Result;
use crate::settings::BenchSettings;
use fjall::{OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx, Readable};
use std::path::Path;

/// An open store.
pub struct FjallOptimisticStore {
    db: OptimisticTxDatabase,
    keys: OptimisticTxKeyspace,
}

impl FjallOptimisticStore {
    /// Opens or creates the store.
    pub fn open(dir: &Path, settings: &BenchSettings) -> Result<Self> {
        let db =
            OptimisticTxDatabase::builder(dir).cache_size(settings.cache_bytes()).worker_threads(2).open()?;
        let keys = db.keyspace("keys", || keyspace_options(settings))?;
        Ok(FjallOptimisticStore { db, keys })
    }

    /// Runs a transaction until it has no conflict.
    fn until_committed<T>(&self, mut work: impl FnMut(&mut OptimisticWriteTx) -> Result<T>) -> Result<T> {
        loop {
            let mut transaction = self.db.write_tx()?;
            let result = work(&mut transaction)?;
            if transaction.commit()?.is_ok() {
                return Ok(result);
            }
        }
    }

    fn insert_in(&self, transaction: &mut OptimisticWriteTx, key: &[u8], value: &[u8]) -> Result<bool> {
        let is_new = !transaction.contains_key(&self.keys, key)?;
        if is_new {
            transaction.insert(&self.keys, key, value);
        }
        Ok(is_new)
    }

    fn open_transaction(&self) -> Result<Box<FjallTransaction<'_>>> {
        Ok(Box::new(FjallTransaction { transaction: self.db.write_tx()?, keys: &self.keys }))
    }
}

struct FjallTransaction<'a> {
    transaction: OptimisticWriteTx,
    keys: &'a OptimisticTxKeyspace,
}

impl OpenTransaction for FjallTransaction<'_> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.transaction.get(self.keys, key)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.transaction.insert(self.keys, key, value);
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<Outcome> {
        Ok(match self.transaction.commit()? {
            Ok(()) => Outcome::Committed,
            Err(_) => Outcome::Conflict,
        })
    }
}

impl WriteStore for FjallOptimisticStore {
    fn kind(&self) -> StoreKind {
        StoreKind::FjallOptimistic
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.keys.insert(key, value)?)
    }

    fn put_all(&self, rows: &[Row]) -> Result<()> {
        self.until_committed(|transaction| {
            rows.iter().for_each(|(key, value)| {
                transaction.insert(&self.keys, key.as_slice(), value.as_slice());
            });
            Ok(())
        })
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.keys.get(key)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn insert_new(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.until_committed(|transaction| self.insert_in(transaction, key, value))
    }

    fn insert_new_many(&self, rows: &[Row]) -> Result<Vec<bool>> {
        self.until_committed(|transaction| {
            rows.iter().map(|(key, value)| self.insert_in(transaction, key, value)).collect()
        })
    }

    fn transact(&self, change: &mut Change<'_>) -> Result<Outcome> {
        optimistic::attempt(self.kind(), self.open_transaction()?, change)
    }

    fn begin(&self) -> Result<Box<dyn OpenTransaction + '_>> {
        Ok(self.open_transaction()?)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.keys.inner().rotate_memtable_and_wait()?)
    }

    fn finish(&self) -> Result<()> {
        finish_compactions(self.db.inner(), self.keys.inner())
    }
}

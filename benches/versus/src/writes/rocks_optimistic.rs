//! RocksDB's `OptimisticTransactionDB`.

use super::change::Change;
use super::kind::StoreKind;
use super::optimistic;
use super::store::{OpenTransaction, Outcome, Row, WriteStore};
use crate::engine::EngineKind;
use crate::engines::rocksdb::options;
use crate::error::Result;
use crate::settings::BenchSettings;
use rocksdb::statistics::Ticker;
use rocksdb::{
    ErrorKind, OptimisticTransactionDB, Options, Transaction, WaitForCompactOptions,
    WriteBatchWithTransaction,
};
use std::path::Path;

/// An open store.
pub struct RocksOptimisticStore {
    db: OptimisticTransactionDB,
    options: Options,
}

type RocksTransaction<'a> = Transaction<'a, OptimisticTransactionDB>;

impl RocksOptimisticStore {
    /// Opens or creates the store. `count` turns on statistics.
    pub fn open(dir: &Path, settings: &BenchSettings, count: bool) -> Result<Self> {
        let mut options = options(EngineKind::RocksdbBloom, settings)?;
        if count {
            options.enable_statistics();
        }
        Ok(RocksOptimisticStore { db: OptimisticTransactionDB::open(&options, dir)?, options })
    }

    /// Runs a transaction until it has no conflict.
    fn until_committed<T>(&self, mut work: impl FnMut(&RocksTransaction<'_>) -> Result<T>) -> Result<T> {
        loop {
            let transaction = self.db.transaction();
            let result = work(&transaction)?;
            if outcome(transaction.commit())? == Outcome::Committed {
                return Ok(result);
            }
        }
    }
}

fn outcome(committed: Result<(), rocksdb::Error>) -> Result<Outcome> {
    match committed {
        Ok(()) => Ok(Outcome::Committed),
        Err(error) if error.kind() == ErrorKind::Busy => Ok(Outcome::Busy),
        Err(error) if error.kind() == ErrorKind::TryAgain => Ok(Outcome::TryAgain),
        Err(error) => Err(error.into()),
    }
}

fn insert_in(transaction: &RocksTransaction<'_>, key: &[u8], value: &[u8]) -> Result<bool> {
    let is_new = transaction.get_pinned_for_update(key, true)?.is_none();
    if is_new {
        transaction.put(key, value)?;
    }
    Ok(is_new)
}

impl OpenTransaction for RocksTransaction<'_> {
    /// By `GetForUpdate`: what `Get` reads is not validated.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.get_pinned_for_update(key, true)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(Transaction::put(self, key, value)?)
    }

    fn commit(self: Box<Self>) -> Result<Outcome> {
        outcome(Transaction::commit(*self))
    }
}

impl WriteStore for RocksOptimisticStore {
    fn kind(&self) -> StoreKind {
        StoreKind::RocksOptimistic
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.db.put(key, value)?)
    }

    fn put_all(&self, rows: &[Row]) -> Result<()> {
        let mut batch = WriteBatchWithTransaction::<true>::default();
        rows.iter().for_each(|(key, value)| batch.put(key, value));
        Ok(self.db.write(batch)?)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.db.get_pinned(key)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn insert_new(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.until_committed(|transaction| insert_in(transaction, key, value))
    }

    fn insert_new_many(&self, rows: &[Row]) -> Result<Vec<bool>> {
        self.until_committed(|transaction| {
            rows.iter().map(|(key, value)| insert_in(transaction, key, value)).collect()
        })
    }

    fn transact(&self, change: &mut Change<'_>) -> Result<Outcome> {
        optimistic::attempt(self.kind(), Box::new(self.db.transaction()), change)
    }

    fn begin(&self) -> Result<Box<dyn OpenTransaction + '_>> {
        Ok(Box::new(self.db.transaction()))
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db.flush()?)
    }

    fn finish(&self) -> Result<()> {
        self.db.flush()?;
        Ok(self.db.wait_for_compact(&WaitForCompactOptions::default())?)
    }

    fn flushed_bytes(&self) -> Option<u64> {
        let counts = self.options.get_statistics().is_some();
        counts.then(|| self.options.get_ticker_count(Ticker::FlushWriteBytes))
    }
}

//! fjall's `SingleWriterTxDatabase`.

use super::change::Change;
use super::kind::StoreKind;
use super::store::{Outcome, Row, WriteStore};
use crate::engines::fjall::{finish_compactions, keyspace_options};
use crate::error::Result;
use crate::settings::BenchSettings;
use fjall::{Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace, SingleWriterWriteTx};
use std::path::Path;

/// An open store.
pub struct FjallSingleStore {
    db: SingleWriterTxDatabase,
    keys: SingleWriterTxKeyspace,
}

impl FjallSingleStore {
    /// Opens or creates the store.
    pub fn open(dir: &Path, settings: &BenchSettings) -> Result<Self> {
        let db = SingleWriterTxDatabase::builder(dir)
            .cache_size(settings.cache_bytes())
            .worker_threads(2)
            .open()?;
        let keys = db.keyspace("keys", || keyspace_options(settings))?;
        Ok(FjallSingleStore { db, keys })
    }

    fn insert_in(&self, transaction: &mut SingleWriterWriteTx<'_>, key: &[u8], value: &[u8]) -> Result<bool> {
        let is_new = !transaction.contains_key(&self.keys, key)?;
        if is_new {
            transaction.insert(&self.keys, key, value);
        }
        Ok(is_new)
    }
}

impl WriteStore for FjallSingleStore {
    fn kind(&self) -> StoreKind {
        StoreKind::FjallSingle
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.keys.insert(key, value)?)
    }

    fn put_all(&self, rows: &[Row]) -> Result<()> {
        let mut transaction = self.db.write_tx();
        rows.iter().for_each(|(key, value)| {
            transaction.insert(&self.keys, key.as_slice(), value.as_slice());
        });
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.keys.get(key)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn insert_new(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let mut transaction = self.db.write_tx();
        let is_new = self.insert_in(&mut transaction, key, value)?;
        transaction.commit()?;
        Ok(is_new)
    }

    fn insert_new_many(&self, rows: &[Row]) -> Result<Vec<bool>> {
        let mut transaction = self.db.write_tx();
        let insert = |(key, value): &Row| self.insert_in(&mut transaction, key, value);
        let are_new = rows.iter().map(insert).collect::<Result<Vec<bool>>>()?;
        transaction.commit()?;
        Ok(are_new)
    }

    fn transact(&self, change: &mut Change<'_>) -> Result<Outcome> {
        let mut transaction = self.db.write_tx();
        for (at, key) in change.keys().iter().enumerate() {
            let found = transaction.get(&self.keys, key)?;
            change.see(self.kind(), at, found.as_deref())?;
        }
        change.writes().for_each(|(key, value)| transaction.insert(&self.keys, key, value));
        transaction.commit()?;
        Ok(Outcome::Committed)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.keys.inner().rotate_memtable_and_wait()?)
    }

    fn finish(&self) -> Result<()> {
        finish_compactions(self.db.inner(), self.keys.inner())
    }
}

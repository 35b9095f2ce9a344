//! LMDB, a copy-on-write B-tree in a mapped file, through heed.

use crate::engine::{Engine, EngineFacts};
use crate::error::Result;
use crate::settings::BenchSettings;
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn};
use std::ops::Bound;
use std::path::Path;

/// Keys and values.
pub type LmdbTable = Database<'static, Bytes, Bytes>;

/// An open store.
pub struct LmdbEngine {
    /// Its environment.
    pub env: Env,
    /// The table of all keys.
    pub table: LmdbTable,
}

/// The engine's configuration, in words.
pub fn describe() -> String {
    "LMDB (heed 0.23): a transaction per call, NOSYNC (with NORDAHEAD in limited memory), cached by the page cache, no compression (unsupported)".to_owned()
}

impl LmdbEngine {
    /// Opens or creates the store.
    pub fn open(dir: &Path, settings: &BenchSettings) -> Result<Self> {
        let row = (settings.key_bytes + settings.value_bytes + 64) as usize;
        let map_bytes = (1 << 30) + row * settings.num as usize * 8;
        // SAFETY: no other process opens this directory at the same time, and a benchmark can afford to lose
        // the store in a power failure (NOSYNC).
        let env = unsafe {
            let mut options = EnvOpenOptions::new();
            // In limited memory, read-ahead evicts pages that are in use.
            let ahead = if settings.limited { EnvFlags::NO_READ_AHEAD } else { EnvFlags::empty() };
            options.map_size(map_bytes.next_multiple_of(1 << 20)).flags(EnvFlags::NO_SYNC | ahead);
            options.open(dir)?
        };
        let transaction = env.write_txn()?;
        let table = env
            .create_databases_and_commit(transaction, |options, transaction| {
                options.create_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
            })?
            .unwrap_commit();
        Ok(LmdbEngine { env, table })
    }

    fn get_in(&self, transaction: &RoTxn<'_>, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.table.get(transaction, key)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }
}

impl Engine for LmdbEngine {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        self.table.put(&mut transaction, key, value)?;
        transaction.commit()?;
        Ok(())
    }

    fn put_all(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for (key, value) in pairs {
            self.table.put(&mut transaction, key, value)?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.get_in(&*self.env.read_txn()?, key, value)
    }

    fn multi_get(&self, keys: &[Vec<u8>], values: &mut [(bool, Vec<u8>)]) -> Result<()> {
        let transaction = self.env.read_txn()?;
        for (key, (found, value)) in keys.iter().zip(values) {
            *found = self.get_in(&transaction, key, value)?;
        }
        Ok(())
    }

    fn scan(&self, from: &[u8], skip: usize, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let transaction = self.env.read_txn()?;
        let rows = self.table.range(&transaction, &(Bound::Included(from), Bound::Unbounded))?;
        for pair in rows.skip(skip) {
            let (key, value) = pair?;
            if !row(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn finish_compactions(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    fn busy(&self) -> bool {
        false
    }

    fn facts(&self) -> Result<EngineFacts> {
        Ok(EngineFacts::default())
    }
}

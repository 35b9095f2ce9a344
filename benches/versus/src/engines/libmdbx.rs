//! libmdbx, a copy-on-write B-tree in a mapped file that descends from LMDB, through signet-libmdbx.

use crate::engine::{Engine, EngineFacts};
use crate::error::Result;
use crate::settings::BenchSettings;
use signet_libmdbx::tx::aliases::{RoTxUnsync, RwTxUnsync};
use signet_libmdbx::{
    Database, DatabaseFlags, Environment, EnvironmentFlags, Geometry, Mode, SyncMode, WriteFlags,
};
use std::borrow::Cow;
use std::path::Path;

/// Bytes by which the file grows, as much as a memtable.
const GROWTH_BYTES: isize = 64 << 20;

/// An open store.
pub struct MdbxEngine {
    env: Environment,
    table: Database,
}

/// The engine's configuration, in words.
pub fn describe() -> &'static str {
    "libmdbx 0.13 (signet-libmdbx 0.8): a transaction per call, UTTERLY_NOSYNC as LMDB's NOSYNC (with NORDAHEAD in limited memory), \
     otherwise its defaults; cached by the page cache, no compression (unsupported)"
}

impl MdbxEngine {
    /// Opens or creates the store.
    pub fn open(dir: &Path, settings: &BenchSettings) -> Result<Self> {
        let row = (settings.key_bytes + settings.value_bytes + 64) as usize;
        let map_bytes = ((1 << 30) + row * settings.num as usize * 8).next_multiple_of(1 << 20);
        let flags = EnvironmentFlags {
            mode: Mode::ReadWrite { sync_mode: SyncMode::UtterlyNoSync },
            // In limited memory, read-ahead evicts pages that are in use.
            no_rdahead: settings.limited,
            ..EnvironmentFlags::default()
        };
        let geometry =
            Geometry { size: Some(0..map_bytes), growth_step: Some(GROWTH_BYTES), ..Geometry::default() };
        let env = Environment::builder().set_flags(flags).set_geometry(geometry).open(dir)?;
        let transaction = env.begin_rw_unsync()?;
        let table = transaction.create_db(None, DatabaseFlags::empty())?;
        transaction.commit()?;
        Ok(MdbxEngine { env, table })
    }

    fn get_in(&self, transaction: &RoTxUnsync, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found: Option<Cow<'_, [u8]>> = transaction.get(self.table.dbi(), key)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn put_in(&self, transaction: &RwTxUnsync, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(transaction.put(self.table, key, value, WriteFlags::UPSERT)?)
    }
}

impl Engine for MdbxEngine {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let transaction = self.env.begin_rw_unsync()?;
        self.put_in(&transaction, key, value)?;
        Ok(transaction.commit()?)
    }

    fn put_all(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let transaction = self.env.begin_rw_unsync()?;
        pairs.iter().try_for_each(|(key, value)| self.put_in(&transaction, key, value))?;
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.get_in(&self.env.begin_ro_unsync()?, key, value)
    }

    fn multi_get(&self, keys: &[Vec<u8>], values: &mut [(bool, Vec<u8>)]) -> Result<()> {
        let transaction = self.env.begin_ro_unsync()?;
        for (key, (found, value)) in keys.iter().zip(values) {
            *found = self.get_in(&transaction, key, value)?;
        }
        Ok(())
    }

    fn scan(&self, from: &[u8], skip: usize, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let transaction = self.env.begin_ro_unsync()?;
        let mut cursor = transaction.cursor(self.table)?;
        let mut rows = cursor.iter_from::<Cow<'_, [u8]>, Cow<'_, [u8]>>(from)?;
        for _ in 0..skip {
            rows.borrow_next()?;
        }
        while let Some((key, value)) = rows.borrow_next()? {
            if !row(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn finish_compactions(&self) -> Result<()> {
        self.env.sync(true)?;
        Ok(())
    }

    fn busy(&self) -> bool {
        false
    }

    fn facts(&self) -> Result<EngineFacts> {
        Ok(EngineFacts::default())
    }
}

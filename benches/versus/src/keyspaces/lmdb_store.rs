//! LMDB's named databases.

use super::rows::{AskedKey, KEY_BYTES, SpaceRow, VALUE_BYTES};
use super::store::{KeyspaceStore, OpenSpec, SpaceSpec};
use crate::engines::lmdb::{LmdbTable, describe as describe_engine};
use crate::error::Result;
use heed::types::Bytes;
use heed::{CommitOrAbort, CommitToken, Database, Env, EnvFlags, EnvOpenOptions, OnCommit};
use std::path::Path;

/// Named databases that can be created after opening.
const MORE_DATABASES: u32 = 8;

/// An open store.
pub struct LmdbStore {
    env: Env,
    spaces: Vec<LmdbTable>,
}

/// The configuration, in words.
pub fn describe() -> String {
    format!("{}; a named database for each keyspace; dropping one is followed by a sync", describe_engine())
}

/// Databases that a transaction opens.
struct Opened<'e>(Vec<Database<'e, Bytes, Bytes>>);

impl OnCommit for Opened<'_> {
    type Committed = Vec<LmdbTable>;

    fn on_commit(self, token: &CommitToken) -> Vec<LmdbTable> {
        self.0.into_iter().map(|database| database.on_commit(token)).collect()
    }
}

impl LmdbStore {
    /// Opens or creates the store.
    pub fn open(dir: &Path, how: OpenSpec<'_>, specs: &[SpaceSpec]) -> Result<Self> {
        let row = KEY_BYTES + VALUE_BYTES + 64;
        let map_bytes = (1 << 30) + row * how.rows as usize * 8;
        let mut options = EnvOpenOptions::new();
        options.map_size(map_bytes.next_multiple_of(1 << 20));
        // Each transaction allocates memory for this many.
        options.max_dbs(how.small.map_or(specs.len(), |small| small as usize) as u32 + MORE_DATABASES);
        // SAFETY: no other process opens this directory at the same time, and a benchmark can afford to lose
        // the store in a power failure (NOSYNC).
        let env = unsafe {
            options.flags(EnvFlags::NO_SYNC);
            options.open(dir)?
        };
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        let mut store = LmdbStore { env, spaces: Vec::new() };
        store.create_all(&names)?;
        Ok(store)
    }

    fn create_all(&mut self, names: &[&str]) -> Result<()> {
        let transaction = self.env.write_txn()?;
        let created = self.env.create_databases_and_commit(transaction, |opener, transaction| {
            let create = |name: &&str| opener.create_database(transaction, Some(name));
            let opened: heed::Result<Vec<_>> = names.iter().map(create).collect();
            opened.map(|opened| CommitOrAbort::<_, ()>::Commit(Opened(opened)))
        })?;
        self.spaces.extend(created.unwrap_commit());
        Ok(())
    }
}

impl KeyspaceStore for LmdbStore {
    fn create(&mut self, spec: &SpaceSpec) -> Result<()> {
        self.create_all(&[&spec.name])
    }

    fn put_all(&mut self, rows: &[SpaceRow]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for row in rows {
            self.spaces[row.space].put(&mut transaction, &row.key, &row.value)?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn get_each(
        &self,
        space: usize,
        asked: &[AskedKey],
        answer: &mut dyn FnMut(&AskedKey, Option<&[u8]>),
    ) -> Result<()> {
        let space = &self.spaces[space];
        for asked in asked {
            let transaction = self.env.read_txn()?;
            answer(asked, space.get(&transaction, &asked.key)?);
        }
        Ok(())
    }

    fn drop_last(&mut self) -> Result<()> {
        let dropped = self.spaces.pop().ok_or("no database to drop")?;
        let mut transaction = self.env.write_txn()?;
        // SAFETY: this was the only handle of the database, and no other transaction is open.
        unsafe { dropped.remove(&mut transaction)? };
        transaction.commit()?;
        Ok(self.env.force_sync()?)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    /// Its pages are free for later writes; the file does not shrink.
    fn compact(&mut self) -> Result<()> {
        self.finish()
    }
}

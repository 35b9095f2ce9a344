//! redb's tables.

use super::rows::{AskedKey, SpaceRow};
use super::store::{KeyspaceStore, OpenSpec, SpaceSpec};
use crate::engines::redb::{DURABLE_EVERY, describe as describe_engine};
use crate::error::Result;
use crate::settings::BenchSettings;
use redb::{Database, Durability, ReadableDatabase, TableDefinition, WriteTransaction};
use std::path::Path;

/// An open store.
pub struct RedbStore {
    db: Database,
    names: Vec<String>,
    commits: u64,
}

/// The configuration, in words.
pub fn describe(settings: &BenchSettings) -> String {
    format!("{}; a table for each keyspace; dropping one is durable", describe_engine(settings))
}

fn table(name: &str) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}

impl RedbStore {
    /// Opens or creates the store. Tables are opened by each transaction.
    pub fn open(dir: &Path, how: OpenSpec<'_>, specs: &[SpaceSpec]) -> Result<Self> {
        let mut builder = Database::builder();
        let db = builder.set_cache_size(how.settings.cache_bytes() as usize).create(dir.join("redb"))?;
        let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
        let mut store = RedbStore { db, names: Vec::new(), commits: 0 };
        let reading = store.db.begin_read()?;
        let is_complete = names.iter().all(|name| reading.open_table(table(name)).is_ok());
        drop(reading);
        if !is_complete {
            store.write(|transaction| {
                names.iter().try_for_each(|name| Ok(transaction.open_table(table(name)).map(drop)?))
            })?;
        }
        store.names = names;
        Ok(store)
    }

    fn write(&mut self, work: impl FnOnce(&WriteTransaction) -> Result<()>) -> Result<()> {
        self.commits += 1;
        let is_durable = self.commits.is_multiple_of(DURABLE_EVERY);
        self.write_with(if is_durable { Durability::Immediate } else { Durability::None }, work)
    }

    fn write_with(
        &self,
        durability: Durability,
        work: impl FnOnce(&WriteTransaction) -> Result<()>,
    ) -> Result<()> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(durability)?;
        work(&transaction)?;
        Ok(transaction.commit()?)
    }
}

impl KeyspaceStore for RedbStore {
    fn create(&mut self, spec: &SpaceSpec) -> Result<()> {
        self.write(|transaction| Ok(transaction.open_table(table(&spec.name)).map(drop)?))?;
        self.names.push(spec.name.clone());
        Ok(())
    }

    fn put_all(&mut self, rows: &[SpaceRow]) -> Result<()> {
        let names = std::mem::take(&mut self.names);
        let written = self.write(|transaction| {
            for rows in rows.chunk_by(|one, other| one.space == other.space) {
                let mut table = transaction.open_table(table(&names[rows[0].space]))?;
                for row in rows {
                    table.insert(row.key.as_slice(), row.value.as_slice())?;
                }
            }
            Ok(())
        });
        self.names = names;
        written
    }

    fn get_each(
        &self,
        space: usize,
        asked: &[AskedKey],
        answer: &mut dyn FnMut(&AskedKey, Option<&[u8]>),
    ) -> Result<()> {
        let table = table(&self.names[space]);
        for asked in asked {
            let found = self.db.begin_read()?.open_table(table)?.get(asked.key.as_slice())?;
            answer(asked, found.as_ref().map(|found| found.value()));
        }
        Ok(())
    }

    fn drop_last(&mut self) -> Result<()> {
        let name = self.names.pop().ok_or("no table to drop")?;
        self.write_with(Durability::Immediate, |transaction| {
            Ok(transaction.delete_table(table(&name)).map(drop)?)
        })
    }

    fn finish(&mut self) -> Result<()> {
        self.write_with(Durability::Immediate, |_| Ok(()))
    }

    fn compact(&mut self) -> Result<()> {
        Ok(self.db.compact().map(drop)?)
    }
}

//! redb, which has one writer.

use super::change::Change;
use super::kind::StoreKind;
use super::store::{Outcome, Row, WriteStore};
use crate::engine::Engine;
use crate::engines::redb::{RedbEngine, RedbTable, TABLE};
use crate::error::Result;
use crate::settings::BenchSettings;
use redb::{Entry, ReadableTable};
use std::path::Path;

/// An open store.
pub struct RedbStore(RedbEngine);

impl RedbStore {
    /// Opens or creates the store.
    pub fn open(dir: &Path, settings: &BenchSettings) -> Result<Self> {
        Ok(RedbStore(RedbEngine::open(dir, settings)?))
    }

    /// Runs a transaction. It is committed if `has_written` says so, and aborted otherwise, which is faster.
    fn run<T>(
        &self,
        work: impl FnOnce(&mut RedbTable<'_>) -> Result<T>,
        has_written: impl FnOnce(&T) -> bool,
    ) -> Result<T> {
        let mut transaction = self.0.db.begin_write()?;
        transaction.set_durability(self.0.next_durability())?;
        let result = work(&mut transaction.open_table(TABLE)?)?;
        if has_written(&result) {
            transaction.commit()?;
        } else {
            transaction.abort()?;
        }
        Ok(result)
    }
}

fn insert_in(table: &mut RedbTable<'_>, key: &[u8], value: &[u8]) -> Result<bool> {
    Ok(match table.entry(key)? {
        Entry::Occupied(_) => false,
        Entry::Vacant(entry) => {
            entry.insert(value)?;
            true
        }
    })
}

impl WriteStore for RedbStore {
    fn kind(&self) -> StoreKind {
        StoreKind::Redb
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
        self.run(|table| insert_in(table, key, value), |is_new| *is_new)
    }

    fn insert_new_many(&self, rows: &[Row]) -> Result<Vec<bool>> {
        let insert = |table: &mut RedbTable<'_>| {
            rows.iter().map(|(key, value)| insert_in(table, key, value)).collect::<Result<Vec<bool>>>()
        };
        self.run(insert, |are_new| are_new.contains(&true))
    }

    fn transact(&self, change: &mut Change<'_>) -> Result<Outcome> {
        let work = |table: &mut RedbTable<'_>| {
            for (at, key) in change.keys().iter().enumerate() {
                let found = table.get(key.as_slice())?;
                change.see(StoreKind::Redb, at, found.as_ref().map(|found| found.value()))?;
            }
            for (key, value) in change.writes() {
                table.insert(key, value)?;
            }
            Ok(Outcome::Committed)
        };
        self.run(work, |_| true)
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        self.0.finish_compactions()
    }
}

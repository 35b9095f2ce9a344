//! A RocksDB as the source of a guard's keys.

use rocksdb::{DB, IteratorMode, WriteBatch};
use sidebloom::guard::{Change, Source};
use sidebloom::{Error, Result};

/// The keys of a database.
pub struct RocksSource<'a>(pub &'a DB);

/// Names the database in an error of RocksDB.
pub fn database_error(db: &DB, error: rocksdb::Error) -> Error {
    Error::Database { name: format!("RocksDB {}", db.path().display()), what: error.into_string() }
}

impl Source for RocksSource<'_> {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let snapshot = self.0.snapshot();
        for row in snapshot.iterator(IteratorMode::Start) {
            let (key, _) = row.map_err(|error| database_error(self.0, error))?;
            visit(&key)?;
        }
        Ok(())
    }

    fn count(&mut self, key: &[u8]) -> Result<u64> {
        let found = self.0.get_pinned(key).map_err(|error| database_error(self.0, error))?;
        Ok(u64::from(found.is_some()))
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<()> {
        let mut batch = WriteBatch::default();
        for change in changes {
            match change {
                Change::Insert(key) => batch.put(key, []),
                Change::Remove(key) => batch.delete(key),
            }
        }
        self.0.write(batch).map_err(|error| database_error(self.0, error))
    }
}

//! redb, a copy-on-write B-tree in Rust.

use crate::engine::{Engine, EngineFacts};
use crate::error::Result;
use crate::settings::BenchSettings;
use redb::{Database, Durability, ReadableDatabase, TableDefinition};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The table of all keys.
pub const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("keys");
/// Commits between durable ones: only a durable commit frees old pages, or the file grows.
pub const DURABLE_EVERY: u64 = 8192;

/// The table in a transaction.
pub type RedbTable<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

/// An open store.
pub struct RedbEngine {
    /// The database.
    pub db: Database,
    commits: AtomicU64,
}

/// The engine's configuration, in words.
pub fn describe(settings: &BenchSettings) -> String {
    format!(
        "redb 4: a transaction per call, cache {} MiB, no compression (unsupported), Durability::None, every {DURABLE_EVERY}th commit Immediate",
        settings.cache_mib
    )
}

impl RedbEngine {
    /// Opens or creates the store.
    pub fn open(dir: &Path, settings: &BenchSettings) -> Result<Self> {
        let db =
            Database::builder().set_cache_size(settings.cache_bytes() as usize).create(dir.join("redb"))?;
        let redb = RedbEngine { db, commits: AtomicU64::new(0) };
        redb.write(Durability::Immediate, |_| Ok(()))?;
        Ok(redb)
    }

    fn write(
        &self,
        durability: Durability,
        fill: impl FnOnce(&mut RedbTable<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(durability)?;
        fill(&mut transaction.open_table(TABLE)?)?;
        Ok(transaction.commit()?)
    }

    /// The durability of the next commit.
    pub fn next_durability(&self) -> Durability {
        let due = self.commits.fetch_add(1, Relaxed) % DURABLE_EVERY == DURABLE_EVERY - 1;
        if due { Durability::Immediate } else { Durability::None }
    }
}

impl Engine for RedbEngine {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(self.next_durability(), |table| {
            table.insert(key, value)?;
            Ok(())
        })
    }

    fn put_all(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        self.write(self.next_durability(), |table| {
            for (key, value) in pairs {
                table.insert(key.as_slice(), value.as_slice())?;
            }
            Ok(())
        })
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.db.begin_read()?.open_table(TABLE)?.get(key)?;
        found.iter().for_each(|found| value.extend_from_slice(found.value()));
        Ok(found.is_some())
    }

    fn multi_get(&self, keys: &[Vec<u8>], values: &mut [(bool, Vec<u8>)]) -> Result<()> {
        let table = self.db.begin_read()?.open_table(TABLE)?;
        for (key, (found, value)) in keys.iter().zip(values) {
            value.clear();
            let got = table.get(key.as_slice())?;
            *found = got.is_some();
            got.iter().for_each(|got| value.extend_from_slice(got.value()));
        }
        Ok(())
    }

    fn scan(&self, from: &[u8], skip: usize, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        for pair in self.db.begin_read()?.open_table(TABLE)?.range(from..)?.skip(skip) {
            let (key, value) = pair?;
            if !row(key.value(), value.value()) {
                break;
            }
        }
        Ok(())
    }

    fn finish_compactions(&self) -> Result<()> {
        self.write(Durability::Immediate, |_| Ok(()))
    }

    fn busy(&self) -> bool {
        false
    }

    fn facts(&self) -> Result<EngineFacts> {
        Ok(EngineFacts::default())
    }
}

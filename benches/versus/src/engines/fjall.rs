//! fjall, an LSM-tree in Rust.

use crate::engine::{Engine, EngineFacts};
use crate::error::Result;
use crate::settings::BenchSettings;
use fjall::compaction::Leveled;
use fjall::config::{PartitioningPolicy, PinningPolicy};
use fjall::{AbstractTree, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::path::Path;
use std::sync::Arc;

/// fjall's default number of level-0 runs that triggers a compaction.
const LEVEL0_TRIGGER: u8 = 4;

/// An open store.
pub struct FjallEngine {
    db: Database,
    keys: Keyspace,
}

/// The engine's configuration, in words.
pub fn describe(settings: &BenchSettings) -> String {
    format!(
        "fjall 3: its own filter policy (Bloom, 0.01 % in level 0, 10 bits per key below), filters and indexes pinned and unpartitioned, \
         block cache {} MiB, {}, its own compression policy (none in levels 0 and 1, LZ4 below), each write handed to the operating system, \
         no fsync",
        settings.cache_mib,
        settings.describe_tables()
    )
}

/// The options of the keys' keyspace.
pub fn keyspace_options(settings: &BenchSettings) -> KeyspaceCreateOptions {
    let level0 = if settings.runs > 0 { u8::MAX } else { LEVEL0_TRIGGER };
    let leveled = Leveled::default().with_l0_threshold(level0);
    let leveled = match settings.table_bytes() {
        Some(bytes) => leveled.with_table_target_size(bytes),
        None => leveled,
    };
    KeyspaceCreateOptions::default()
        .max_memtable_size(settings.memtable_bytes())
        .compaction_strategy(Arc::new(leveled))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .index_block_pinning_policy(PinningPolicy::all(true))
        .filter_block_partitioning_policy(PartitioningPolicy::all(false))
        .index_block_partitioning_policy(PartitioningPolicy::all(false))
}

/// Whether a flush or a compaction is running or pending.
fn is_busy(db: &Database) -> bool {
    db.active_compactions() > 0 || db.outstanding_flushes() > 0
}

/// Flushes memory to tables, and waits until nothing is left to compact.
pub fn finish_compactions(db: &Database, keys: &Keyspace) -> Result<()> {
    keys.rotate_memtable_and_wait()?;
    db.persist(PersistMode::Buffer)?;
    wait_for_compactions(db);
    Ok(())
}

/// Waits until no compaction has run for a while: one may start another.
pub fn wait_for_compactions(db: &Database) {
    let mut quiet = 0;
    while quiet < 5 {
        quiet = if is_busy(db) { 0 } else { quiet + 1 };
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

impl FjallEngine {
    /// Opens or creates the store.
    pub fn open(dir: &Path, settings: &BenchSettings) -> Result<Self> {
        let db = Database::builder(dir).cache_size(settings.cache_bytes()).worker_threads(2).open()?;
        let keys = db.keyspace("keys", || keyspace_options(settings))?;
        Ok(FjallEngine { db, keys })
    }
}

impl Engine for FjallEngine {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.keys.insert(key, value)?)
    }

    fn put_all(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let mut batch = self.db.batch();
        pairs.iter().for_each(|(key, value)| batch.insert(&self.keys, key.as_slice(), value.as_slice()));
        Ok(batch.commit()?)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.keys.get(key)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn scan(&self, from: &[u8], skip: usize, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        for pair in self.keys.range(from..).skip(skip) {
            let (key, value) = pair.into_inner()?;
            if !row(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn scan_keys(&self, from: &[u8], row: &mut dyn FnMut(&[u8])) -> Result<()> {
        for pair in self.keys.range(from..) {
            row(&pair.key()?);
        }
        Ok(())
    }

    fn finish_compactions(&self) -> Result<()> {
        finish_compactions(&self.db, &self.keys)
    }

    fn busy(&self) -> bool {
        is_busy(&self.db)
    }

    fn facts(&self) -> Result<EngineFacts> {
        let tree = &self.keys.tree;
        let below =
            (1..7).map(|level| u64::from(tree.level_table_count(level).is_some_and(|tables| tables > 0)));
        Ok(EngineFacts {
            runs_by_level: Some(std::iter::once(tree.l0_run_count() as u64).chain(below).collect()),
            memtable_bytes: Some(self.db.write_buffer_size()),
            filter_bytes: Some(tree.filter_size()),
            false_positives: None,
            negatives: None,
        })
    }
}

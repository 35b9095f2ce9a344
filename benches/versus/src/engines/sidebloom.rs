//! sidebloom, the store of this repository.

use crate::engine::{Engine, EngineFacts, EngineKind};
use crate::error::Result;
use crate::settings::BenchSettings;
use sidebloom::{Batch, Compression, Db, Durability, FilterPolicy, Options};
use std::path::Path;

/// An open store.
pub struct SidebloomEngine(pub Db);

fn policy(kind: EngineKind) -> FilterPolicy {
    if kind == EngineKind::SidebloomNofilter { FilterPolicy::OFF } else { FilterPolicy::default() }
}

fn compression(kind: EngineKind) -> Compression {
    if kind == EngineKind::SidebloomPlain { Compression::None } else { Compression::default() }
}

/// The engine's configuration, in words.
pub fn describe(kind: EngineKind, settings: &BenchSettings) -> String {
    // All packages of the workspace share a version.
    format!(
        "sidebloom {}: {:?}; block cache {} MiB, {}, {:?}, Durability::Os, filters mapped and verified before reads",
        env!("CARGO_PKG_VERSION"),
        policy(kind),
        settings.cache_mib,
        settings.describe_tables(),
        compression(kind)
    )
}

impl SidebloomEngine {
    /// Opens or creates the store.
    pub fn open(kind: EngineKind, dir: &Path, settings: &BenchSettings) -> Result<Self> {
        let options = Options::new()
            .block_cache_bytes(settings.cache_bytes())
            .memtable_bytes(settings.memtable_bytes())
            .compression(compression(kind))
            .durability(Durability::Os)
            .filter_policy(policy(kind));
        let options = match settings.table_bytes() {
            Some(bytes) => options.segment_bytes(bytes),
            None => options,
        };
        let options = if settings.runs > 0 { options.hold_level0() } else { options };
        Ok(SidebloomEngine(options.open(dir)?))
    }
}

impl Engine for SidebloomEngine {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.0.put(key, value)?)
    }

    fn put_all(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let mut batch = Batch::new();
        pairs.iter().for_each(|(key, value)| batch.put(key, value));
        Ok(self.0.write(batch)?)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.0.get(key)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn multi_get(&self, keys: &[Vec<u8>], values: &mut [(bool, Vec<u8>)]) -> Result<()> {
        for (got, (found, value)) in self.0.multi_get(keys)?.into_iter().zip(values) {
            value.clear();
            *found = got.is_some();
            got.iter().for_each(|got| value.extend_from_slice(got));
        }
        Ok(())
    }

    fn scan(&self, from: &[u8], skip: usize, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let mut rows = self.0.range(from..);
        if let Some(last) = skip.checked_sub(1) {
            rows.nth(last).transpose()?;
        }
        while let Some((key, value)) = rows.next_row()? {
            if !row(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn scan_keys(&self, from: &[u8], row: &mut dyn FnMut(&[u8])) -> Result<()> {
        let mut keys = self.0.range(from..).keys();
        while let Some(key) = keys.next_key()? {
            row(key);
        }
        Ok(())
    }

    fn count(&self, from: &[u8]) -> Result<u64> {
        Ok(self.0.range(from..).count()?)
    }

    fn finish_compactions(&self) -> Result<()> {
        self.0.flush()?;
        self.0.wait_for_compaction()?;
        Ok(self.0.warm()?)
    }

    /// [`finish_compactions`](Engine::finish_compactions) has waited for compactions; a later one would show
    /// as bytes written.
    fn busy(&self) -> bool {
        false
    }

    fn warm(&self) -> Result<()> {
        Ok(self.0.warm()?)
    }

    fn facts(&self) -> Result<EngineFacts> {
        let stats = self.0.stats();
        Ok(EngineFacts {
            runs_by_level: Some(stats.levels.iter().map(|level| level.runs as u64).collect()),
            memtable_bytes: Some(stats.memtable_bytes),
            filter_bytes: Some(stats.levels.iter().map(|level| level.filter_bytes).sum()),
            false_positives: Some(stats.filter_false_positives),
            negatives: Some(stats.filter_negatives),
        })
    }
}

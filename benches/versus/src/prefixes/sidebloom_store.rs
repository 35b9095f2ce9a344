//! sidebloom, with and without prefixes in its filters.

use super::rows::PREFIX_BYTES;
use super::store::{CACHE_MIB, MEMTABLE_MIB, PrefixStore, StoreFacts, StoreKind};
use crate::error::Result;
use sidebloom::{Batch, Compression, Db, Durability, FilterPolicy, Options, PrefixExtractor};
use std::path::Path;

/// An open store.
pub struct SidebloomStore(Db);

/// The configuration of both stores, in words.
pub fn describe() -> String {
    // All packages of the workspace share a version.
    format!(
        "sidebloom {}: {:?}, with PrefixExtractor::fixed({PREFIX_BYTES}) or no prefixes; block cache {CACHE_MIB} MiB, memtable {MEMTABLE_MIB} MiB, \
         LZ4, filters mapped and verified before reads",
        env!("CARGO_PKG_VERSION"),
        FilterPolicy::default(),
    )
}

impl SidebloomStore {
    /// Opens or creates the store.
    pub fn open(kind: StoreKind, dir: &Path, memtable_mib: u64) -> Result<Self> {
        let prefixes = kind.has_prefixes().then_some(PrefixExtractor::fixed(PREFIX_BYTES));
        let options = Options::new()
            .block_cache_bytes(CACHE_MIB << 20)
            .memtable_bytes(memtable_mib << 20)
            .compression(Compression::Lz4)
            .durability(Durability::Os)
            .prefixes(prefixes)
            .hold_level0();
        Ok(SidebloomStore(options.open(dir)?))
    }
}

impl PrefixStore for SidebloomStore {
    fn put_all(&self, rows: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let mut batch = Batch::new();
        rows.iter().for_each(|(key, value)| batch.put(key, value));
        Ok(self.0.write(batch)?)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.0.flush()?)
    }

    fn compact_all(&self) -> Result<()> {
        Ok(self.0.compact()?)
    }

    fn warm(&self) -> Result<()> {
        Ok(self.0.warm()?)
    }

    fn rows(&self, prefix: &[u8], most: u64) -> Result<u64> {
        let mut walk = self.0.prefix(prefix);
        let mut rows = 0;
        while rows < most && walk.next_row()?.is_some_and(|(key, _)| key.starts_with(prefix)) {
            rows += 1;
        }
        Ok(rows)
    }

    fn found_by_one_iterator(&self, prefixes: &[Vec<u8>]) -> Result<u64> {
        let mut cursor = self.0.cursor();
        let mut found = 0;
        for prefix in prefixes {
            let is_found = cursor.seek(prefix)? && cursor.key().is_some_and(|key| key.starts_with(prefix));
            found += u64::from(is_found);
        }
        Ok(found)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.0.get(key)?.is_some())
    }

    fn facts(&self) -> Result<StoreFacts> {
        let stats = self.0.stats();
        Ok(StoreFacts {
            runs: stats.levels.iter().map(|level| level.runs as u64).sum(),
            filter_bytes: stats.levels.iter().map(|level| level.filter_bytes).sum(),
        })
    }

    fn block_accesses(&self) -> u64 {
        let stats = self.0.stats();
        stats.block_reads + stats.block_cache_hits
    }
}

//! RocksDB, whose Bloom filters have keys, prefixes, or both.

use super::rows::PREFIX_BYTES;
use super::store::{CACHE_MIB, MEMTABLE_MIB, PrefixStore, StoreFacts, StoreKind};
use crate::engines::rocksdb::{
    compact_all, filter_bytes, keep_runs, runs_by_level, set_common, table_options, write_all,
};
use crate::error::Result;
use crate::rocks_settings::RocksSettings;
use rocksdb::statistics::Ticker;
use rocksdb::{DB, Options, PrefixRange, ReadOptions, SliceTransform};
use std::path::Path;

/// Bits per key and per prefix.
const BITS: f64 = 10.0;

/// An open store.
pub struct RocksStore {
    db: DB,
    options: Options,
    has_prefixes: bool,
}

/// The configuration of all stores, in words.
pub fn describe(rocks: &RocksSettings) -> String {
    format!(
        "RocksDB {}: {}; Bloom {BITS} bits; keys and prefixes: prefix_extractor fixed {PREFIX_BYTES}, prefix_same_as_start; prefixes alone: \
         whole_key_filtering off; keys alone: no prefix_extractor, walks end at iterate_upper_bound; {}; cache {CACHE_MIB} MiB, memtable \
         {MEMTABLE_MIB} MiB, LZ4, max_open_files -1",
        env!("ROCKSDB_VERSION"),
        env!("ROCKSDB_BLOOM_CODE"),
        rocks.describe(),
    )
}

fn options(kind: StoreKind, rocks: &RocksSettings, memtable_mib: u64) -> Options {
    let mut table = table_options(rocks, (CACHE_MIB << 20) as usize);
    table.set_bloom_filter(BITS, false);
    table.set_whole_key_filtering(kind.has_keys());
    let mut options = Options::default();
    options.set_block_based_table_factory(&table);
    if kind.has_prefixes() {
        options.set_prefix_extractor(SliceTransform::create_fixed_prefix(PREFIX_BYTES));
    }
    set_common(&mut options, memtable_mib << 20);
    keep_runs(&mut options);
    options
}

impl RocksStore {
    /// Opens or creates the store. `count` turns on statistics.
    pub fn open(
        kind: StoreKind,
        dir: &Path,
        rocks: &RocksSettings,
        memtable_mib: u64,
        count: bool,
    ) -> Result<Self> {
        let mut options = options(kind, rocks, memtable_mib);
        if count {
            options.enable_statistics();
        }
        Ok(RocksStore { db: DB::open(&options, dir)?, options, has_prefixes: kind.has_prefixes() })
    }

    fn same_prefix() -> ReadOptions {
        let mut read = ReadOptions::default();
        read.set_prefix_same_as_start(true);
        read
    }
}

impl PrefixStore for RocksStore {
    fn put_all(&self, rows: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        write_all(&self.db, rows)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db.flush()?)
    }

    fn compact_all(&self) -> Result<()> {
        compact_all(&self.db)
    }

    /// Opening has read filters and indexes.
    fn warm(&self) -> Result<()> {
        Ok(())
    }

    fn rows(&self, prefix: &[u8], most: u64) -> Result<u64> {
        let read = if self.has_prefixes {
            Self::same_prefix()
        } else {
            let mut read = ReadOptions::default();
            read.set_iterate_range(PrefixRange(prefix));
            read
        };
        let mut iterator = self.db.raw_iterator_opt(read);
        iterator.seek(prefix);
        let mut rows = 0;
        while rows < most && iterator.key().is_some_and(|key| key.starts_with(prefix)) {
            rows += 1;
            iterator.next();
        }
        iterator.status()?;
        Ok(rows)
    }

    fn found_by_one_iterator(&self, prefixes: &[Vec<u8>]) -> Result<u64> {
        let read = if self.has_prefixes { Self::same_prefix() } else { ReadOptions::default() };
        let mut iterator = self.db.raw_iterator_opt(read);
        let mut found = 0;
        for prefix in prefixes {
            iterator.seek(prefix);
            found += u64::from(iterator.key().is_some_and(|key| key.starts_with(prefix)));
            iterator.status()?;
        }
        Ok(found)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.db.get_pinned(key)?.is_some())
    }

    fn facts(&self) -> Result<StoreFacts> {
        let filter_bytes = filter_bytes(&self.db)?.ok_or("RocksDB without the size of its filters")?;
        Ok(StoreFacts { runs: runs_by_level(&self.db).into_iter().sum(), filter_bytes })
    }

    fn block_accesses(&self) -> u64 {
        [Ticker::BlockCacheDataHit, Ticker::BlockCacheDataMiss]
            .into_iter()
            .map(|ticker| self.options.get_ticker_count(ticker))
            .sum()
    }
}

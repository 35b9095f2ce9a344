//! RocksDB with its defaults (the baseline), with its Bloom filter, and with its Ribbon filter.

use crate::engine::{Engine, EngineFacts, EngineKind};
use crate::error::Result;
use crate::rocks_settings::{RocksCache, RocksMetadata};
use crate::settings::RunSettings;
use rocksdb::statistics::Ticker;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, BlockBasedTablePinningTier, Cache, ColumnFamilyDescriptor, DB,
    DBCompressionType, DEFAULT_COLUMN_FAMILY_NAME, Options, ReadOptions, WaitForCompactOptions, WriteBatch,
};
use std::path::Path;

/// An open store.
pub struct RocksEngine {
    db: DB,
    options: Options,
    /// Automatic compactions are disabled, so one stays pending forever.
    compactions_disabled: bool,
}

/// The engine's configuration, in words.
pub fn describe(kind: EngineKind, settings: &RunSettings) -> String {
    let filter = match kind {
        EngineKind::RocksdbBloom => {
            format!("Bloom {} bits per key and memtable whole-key Bloom", settings.bits_per_key)
        }
        EngineKind::RocksdbRibbon => {
            format!(
                "Ribbon with the false-positive rate of a {}-bit Bloom and memtable whole-key Bloom",
                settings.bits_per_key
            )
        }
        _ => "no filter (the default)".to_owned(),
    };
    format!(
        "RocksDB {}: {filter}; {}; {}; cache {} MiB, {}, LZ4, max_open_files -1, \
         2 background jobs, each write handed to the operating system, no fsync",
        env!("ROCKSDB_VERSION"),
        env!("ROCKSDB_BLOOM_CODE"),
        settings.rocks.describe(),
        settings.cache_mib,
        settings.describe_tables()
    )
}

/// Size of the filters of all tables, in bytes.
pub fn filter_bytes(db: &DB) -> Result<Option<u64>> {
    let text = db.property_value("rocksdb.aggregated-table-properties")?.unwrap_or_default();
    let value = text.split(';').find_map(|part| part.trim().strip_prefix("filter block size="));
    Ok(value.and_then(|digits| digits.trim().parse().ok()))
}

fn options(kind: EngineKind, settings: &RunSettings) -> Options {
    let mut table = BlockBasedOptions::default();
    let cache_bytes = settings.cache_bytes() as usize;
    table.set_block_cache(&match settings.rocks.cache {
        RocksCache::Lru => Cache::new_lru_cache(cache_bytes),
        RocksCache::HyperClock => Cache::new_hyper_clock_cache(cache_bytes, 0),
    });
    table.set_cache_index_and_filter_blocks(settings.rocks.metadata != RocksMetadata::Heap);
    if settings.rocks.metadata == RocksMetadata::Pinned {
        table.set_unpartitioned_pinning_tier(BlockBasedTablePinningTier::All);
        table.set_partition_pinning_tier(BlockBasedTablePinningTier::All);
    }
    if settings.rocks.partitioned {
        table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
        table.set_partition_filters(true);
    }
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_max_open_files(-1);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(settings.memtable_bytes() as usize);
    if let Some(bytes) = settings.table_bytes() {
        options.set_target_file_size_base(bytes);
        options.set_max_bytes_for_level_base(4 * bytes);
    }
    options.set_max_background_jobs(2);
    if settings.runs > 0 {
        options.set_disable_auto_compactions(true);
        options.set_level_zero_slowdown_writes_trigger(1000);
        options.set_level_zero_stop_writes_trigger(1000);
    }
    match kind {
        EngineKind::RocksdbBloom => table.set_bloom_filter(settings.bits_per_key, false),
        EngineKind::RocksdbRibbon => table.set_ribbon_filter(settings.bits_per_key),
        _ => {}
    }
    if kind != EngineKind::Rocksdb {
        options.set_memtable_whole_key_filtering(true);
        options.set_memtable_prefix_bloom_ratio(0.1);
    }
    options.set_block_based_table_factory(&table);
    options
}

impl RocksEngine {
    /// Opens or creates the store. `count` turns on statistics.
    pub fn open(kind: EngineKind, dir: &Path, settings: &RunSettings, count: bool) -> Result<Self> {
        let mut options = options(kind, settings);
        if count {
            options.enable_statistics();
        }
        // Opened by name, because batched_multi_get needs a handle.
        let family = ColumnFamilyDescriptor::new(DEFAULT_COLUMN_FAMILY_NAME, options.clone());
        let compactions_disabled = settings.runs > 0;
        Ok(RocksEngine {
            db: DB::open_cf_descriptors(&options, dir, [family])?,
            options,
            compactions_disabled,
        })
    }

    fn int(&self, property: &str) -> u64 {
        self.db.property_int_value(property).ok().flatten().unwrap_or(0)
    }
}

impl Engine for RocksEngine {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.db.put(key, value)?)
    }

    fn put_all(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let mut batch = WriteBatch::default();
        pairs.iter().for_each(|(key, value)| batch.put(key, value));
        Ok(self.db.write(batch)?)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.db.get_pinned(key)?;
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn multi_get(&self, keys: &[Vec<u8>], values: &mut [(bool, Vec<u8>)]) -> Result<()> {
        let family =
            self.db.cf_handle(DEFAULT_COLUMN_FAMILY_NAME).ok_or("RocksDB without a default column family")?;
        let got = self.db.batched_multi_get_cf(&family, keys, false);
        for (got, (found, value)) in got.into_iter().zip(values) {
            value.clear();
            let got = got?;
            *found = got.is_some();
            got.iter().for_each(|got| value.extend_from_slice(got));
        }
        Ok(())
    }

    fn scan(&self, from: &[u8], skip: usize, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let mut iterator = self.db.raw_iterator_opt(ReadOptions::default());
        iterator.seek(from);
        for _ in 0..skip {
            if !iterator.valid() {
                break;
            }
            iterator.next();
        }
        while let Some((key, value)) = iterator.item() {
            if !row(key, value) {
                break;
            }
            iterator.next();
        }
        Ok(iterator.status()?)
    }

    fn finish_compactions(&self) -> Result<()> {
        self.db.flush()?;
        Ok(self.db.wait_for_compact(&WaitForCompactOptions::default())?)
    }

    fn busy(&self) -> bool {
        ["num-running-compactions", "num-running-flushes", "mem-table-flush-pending", "compaction-pending"]
            .iter()
            .filter(|&&name| !(self.compactions_disabled && name == "compaction-pending"))
            .any(|name| self.int(&format!("rocksdb.{name}")) > 0)
    }

    fn facts(&self) -> Result<EngineFacts> {
        let files = |level: usize| self.int(&format!("rocksdb.num-files-at-level{level}"));
        let below = (1..7).map(|level| u64::from(files(level) > 0));
        let counted = self.options.get_statistics().is_some();
        let ticker = |ticker| counted.then(|| self.options.get_ticker_count(ticker));
        let maybes = ticker(Ticker::BloomFilterFullPositive);
        let right = ticker(Ticker::BloomFilterFullTruePositive);
        Ok(EngineFacts {
            runs_by_level: Some(std::iter::once(files(0)).chain(below).collect()),
            filter_bytes: filter_bytes(&self.db)?,
            false_positives: maybes.zip(right).map(|(maybes, right)| maybes.saturating_sub(right)),
            negatives: ticker(Ticker::BloomFilterUseful),
        })
    }
}

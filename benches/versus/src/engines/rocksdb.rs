//! RocksDB with its defaults (the baseline), its Bloom or Ribbon filter, or a policy of sidebloom's plug-in.

use crate::engine::{Engine, EngineFacts, EngineKind};
use crate::error::Result;
use crate::rocks_filter::RocksFilter;
use crate::rocks_settings::{RocksCache, RocksMetadata, RocksSettings};
use crate::settings::BenchSettings;
use rocksdb::statistics::Ticker;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, BlockBasedTablePinningTier, BottommostLevelCompaction, Cache,
    ColumnFamilyDescriptor, CompactOptions, DB, DBCompressionType, DEFAULT_COLUMN_FAMILY_NAME, Options,
    ReadOptions, WaitForCompactOptions, WriteBatch,
};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// An open store.
pub struct RocksEngine {
    db: DB,
    options: Options,
    /// Automatic compactions are disabled, so one stays pending forever.
    compactions_disabled: bool,
}

/// The engine's configuration, in words.
pub fn describe(kind: EngineKind, settings: &BenchSettings) -> String {
    let filter = filter(kind, settings).describe();
    format!("RocksDB {}: {filter}; {}", env!("ROCKSDB_VERSION"), describe_store(settings))
}

/// The configuration without the filter, in words.
pub fn describe_store(settings: &BenchSettings) -> String {
    format!(
        "{}; {}; cache {} MiB, {}, LZ4, max_open_files -1, 2 background jobs, \
         each write handed to the operating system, no fsync",
        env!("ROCKSDB_BLOOM_CODE"),
        settings.rocks.describe(),
        settings.cache_mib,
        settings.describe_tables()
    )
}

/// Size of the filters of all tables, in bytes.
pub fn filter_bytes(db: &DB) -> Result<Option<u64>> {
    let text = db.property_value("rocksdb.aggregated-table-properties")?.unwrap_or_default();
    Ok(table_property(&text, "filter block size"))
}

/// A number of RocksDB's `name=value; name=value; …`.
pub fn table_property(text: &str, name: &str) -> Option<u64> {
    let value = text.split(';').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
    value.and_then(|digits| digits.trim().parse().ok())
}

/// The sorted runs of each level.
pub fn runs_by_level(db: &DB) -> Vec<u64> {
    let files = |level: usize| int(db, &format!("rocksdb.num-files-at-level{level}"));
    let below = (1..7).map(|level| u64::from(files(level) > 0));
    std::iter::once(files(0)).chain(below).collect()
}

fn int(db: &DB, property: &str) -> u64 {
    db.property_int_value(property).ok().flatten().unwrap_or(0)
}

/// Writes all rows as one batch.
pub fn write_all<'r>(db: &DB, rows: impl IntoIterator<Item = &'r (Vec<u8>, Vec<u8>)>) -> Result<()> {
    let mut batch = WriteBatch::default();
    rows.into_iter().for_each(|(key, value)| batch.put(key, value));
    Ok(db.write(batch)?)
}

/// Rewrites every table, including those of the last level.
pub fn compact_all(db: &DB) -> Result<()> {
    let mut force = CompactOptions::default();
    force.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
    db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &force);
    Ok(db.wait_for_compact(&WaitForCompactOptions::default())?)
}

/// The filter of the settings, or of the engine if the settings leave it open.
fn filter(kind: EngineKind, settings: &BenchSettings) -> RocksFilter {
    let of_kind = || match kind {
        EngineKind::RocksdbBloom => RocksFilter::Bloom(settings.bits_per_key),
        EngineKind::RocksdbRibbon => RocksFilter::Ribbon(settings.bits_per_key),
        _ => RocksFilter::Off,
    };
    settings.rocks_filter.clone().unwrap_or_else(of_kind)
}

/// A block cache.
pub fn cache(rocks: &RocksSettings, bytes: usize) -> Cache {
    match rocks.cache {
        RocksCache::Lru => Cache::new_lru_cache(bytes),
        RocksCache::HyperClock => Cache::new_hyper_clock_cache(bytes, 0),
    }
}

/// Options of tables without a filter, with a cache of their own.
pub fn table_options(rocks: &RocksSettings, cache_bytes: usize) -> BlockBasedOptions {
    tables_in_cache(rocks, &cache(rocks, cache_bytes))
}

/// Options of tables without a filter.
pub fn tables_in_cache(rocks: &RocksSettings, cache: &Cache) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    table.set_cache_index_and_filter_blocks(rocks.metadata != RocksMetadata::Heap);
    if rocks.metadata == RocksMetadata::Pinned {
        table.set_unpartitioned_pinning_tier(BlockBasedTablePinningTier::All);
        table.set_partition_pinning_tier(BlockBasedTablePinningTier::All);
    }
    if rocks.partitioned {
        table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
        table.set_partition_filters(true);
    }
    table
}

/// Sets options shared by all stores.
pub fn set_common(options: &mut Options, memtable_bytes: u64) {
    options.create_if_missing(true);
    options.set_max_open_files(-1);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(memtable_bytes as usize);
    options.set_max_background_jobs(2);
}

/// Keeps compactions from changing the sorted runs.
pub fn keep_runs(options: &mut Options) {
    options.set_disable_auto_compactions(true);
    options.set_level_zero_slowdown_writes_trigger(1000);
    options.set_level_zero_stop_writes_trigger(1000);
}

/// All options of a store.
pub fn options(kind: EngineKind, settings: &BenchSettings) -> Result<Options> {
    let mut table = table_options(&settings.rocks, settings.cache_bytes() as usize);
    let filter = filter(kind, settings);
    match &filter {
        RocksFilter::Bloom(bits) => table.set_bloom_filter(*bits, false),
        RocksFilter::Ribbon(bits) => table.set_ribbon_filter(*bits),
        RocksFilter::Plugin(_) | RocksFilter::Off => {}
    }
    let mut options = match &filter {
        RocksFilter::Plugin(policy) => sidebloom_rocksdb::options(&table, policy.parse()?)?,
        _ => {
            let mut options = Options::default();
            options.set_block_based_table_factory(&table);
            options
        }
    };
    set_common(&mut options, settings.memtable_bytes());
    if let Some(bytes) = settings.table_bytes() {
        options.set_target_file_size_base(bytes);
        options.set_max_bytes_for_level_base(4 * bytes);
    }
    if settings.runs > 0 {
        keep_runs(&mut options);
    }
    if filter != RocksFilter::Off {
        options.set_memtable_whole_key_filtering(true);
        options.set_memtable_prefix_bloom_ratio(0.1);
    }
    Ok(options)
}

/// Memory of a store's filters.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RocksTables {
    /// Keys in all tables.
    pub entries: u64,
    /// Size of all filters in the files, in bytes.
    pub filter_bytes: u64,
    /// Size of the filters put in the block cache, in bytes; `None` without statistics.
    pub cached_filter_bytes: Option<u64>,
    /// Memory of open tables outside the block cache: all filters and indexes not in the cache, in bytes.
    pub readers_bytes: u64,
}

impl RocksEngine {
    /// Opens or creates the store. `count` turns on statistics.
    pub fn open(kind: EngineKind, dir: &Path, settings: &BenchSettings, count: bool) -> Result<Self> {
        let mut options = options(kind, settings)?;
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

    fn ticker(&self, ticker: Ticker) -> Option<u64> {
        self.options.get_statistics().is_some().then(|| self.options.get_ticker_count(ticker))
    }

    /// Memory of the filters.
    pub fn tables(&self) -> Result<RocksTables> {
        let text = self.db.property_value("rocksdb.aggregated-table-properties")?.unwrap_or_default();
        let missing = |name: &str| format!("RocksDB's table properties without {name}: {text}");
        let property = |name: &str| table_property(&text, name).ok_or_else(|| missing(name));
        Ok(RocksTables {
            entries: property("# entries")?,
            filter_bytes: property("filter block size")?,
            cached_filter_bytes: self.ticker(Ticker::BlockCacheFilterBytesInsert),
            readers_bytes: int(&self.db, "rocksdb.estimate-table-readers-mem"),
        })
    }

    /// Whether the store has a key. Its value is not copied.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.db.get_pinned(key)?.is_some())
    }

    /// Whether the store has each of many keys.
    pub fn contain<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> Result<Vec<bool>> {
        let family =
            self.db.cf_handle(DEFAULT_COLUMN_FAMILY_NAME).ok_or("RocksDB without a default column family")?;
        let keys: Vec<&[u8]> = keys.into_iter().collect();
        let got = self.db.batched_multi_get_cf(&family, &keys, false);
        got.into_iter().map(|got| Ok(got?.is_some())).collect()
    }

    /// Writes rows as one batch.
    pub fn write_rows<'r>(&self, rows: impl IntoIterator<Item = &'r (Vec<u8>, Vec<u8>)>) -> Result<()> {
        write_all(&self.db, rows)
    }

    /// Writes the memtable to a table.
    pub fn flush(&self) -> Result<()> {
        Ok(self.db.flush()?)
    }

    /// Rewrites every table, including those of the last level.
    pub fn compact_all(&self) -> Result<()> {
        compact_all(&self.db)?;
        self.finish_compactions()
    }
}

impl Engine for RocksEngine {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.db.put(key, value)?)
    }

    fn put_all(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        write_all(&self.db, pairs)
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
            .any(|name| int(&self.db, &format!("rocksdb.{name}")) > 0)
    }

    fn facts(&self) -> Result<EngineFacts> {
        let maybes = self.ticker(Ticker::BloomFilterFullPositive);
        let right = self.ticker(Ticker::BloomFilterFullTruePositive);
        Ok(EngineFacts {
            runs_by_level: Some(runs_by_level(&self.db)),
            memtable_bytes: Some(int(&self.db, "rocksdb.cur-size-all-mem-tables")),
            filter_bytes: filter_bytes(&self.db)?,
            false_positives: maybes.zip(right).map(|(maybes, right)| maybes.saturating_sub(right)),
            negatives: self.ticker(Ticker::BloomFilterUseful),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_properties_are_read_by_their_whole_name() {
        let text = "# data blocks=9; # entries=2000; # deletions=0; filter block size=2500; (estimated) table size=99; \
                    filter policy name=N/A; ";
        assert_eq!(table_property(text, "# entries"), Some(2000));
        assert_eq!(table_property(text, "filter block size"), Some(2500));
        assert_eq!(table_property(text, "filter block"), None);
        assert_eq!(table_property(text, "filter policy name"), None);
    }
}

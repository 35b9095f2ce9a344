//! RocksDB's column families.

use super::rows::{AskedKey, SpaceRow};
use super::store::{KeyspaceStore, OpenSpec, SpaceFilter, SpaceSpec};
use crate::engines::rocksdb::{cache, describe_store, set_common, table_property, tables_in_cache};
use crate::error::Result;
use crate::settings::BenchSettings;
use rocksdb::{
    BottommostLevelCompaction, Cache, ColumnFamily, ColumnFamilyDescriptor, CompactOptions, DB, FlushOptions,
    Options, WaitForCompactOptions, WriteBatch,
};
use std::path::Path;

/// Bits per key of a keyspace with default filters.
const DEFAULT_BITS: f64 = 10.0;
/// Memory that a memtable of one of many column families takes at once.
const MANY_ARENA_BYTES: usize = 16 << 10;

/// An open store.
pub struct RocksStore {
    db: DB,
    names: Vec<String>,
    settings: BenchSettings,
    many: bool,
    cache: Cache,
}

/// The configuration, in words.
pub fn describe(settings: &BenchSettings) -> String {
    format!(
        "RocksDB {}: column families with Bloom filters of the bits per key that the table names, otherwise 10, and memtable \
         whole-key Bloom; {}; one cache; for many column families, one limit of {} MiB for all memtables \
         (db_write_buffer_size), arenas of {} KiB, and no memtable Bloom",
        env!("ROCKSDB_VERSION"),
        describe_store(settings),
        settings.memtable_mib,
        MANY_ARENA_BYTES >> 10,
    )
}

fn family_options(spec: &SpaceSpec, settings: &BenchSettings, many: bool, cache: &Cache) -> Options {
    let mut table = tables_in_cache(&settings.rocks, cache);
    let bits = match spec.filter {
        SpaceFilter::Off => None,
        SpaceFilter::Bits(bits) => Some(bits),
        SpaceFilter::Default => Some(DEFAULT_BITS),
    };
    let mut options = Options::default();
    if let Some(bits) = bits {
        table.set_bloom_filter(bits, false);
        if !many {
            options.set_memtable_whole_key_filtering(true);
            options.set_memtable_prefix_bloom_ratio(0.1);
        }
    }
    options.set_block_based_table_factory(&table);
    set_common(&mut options, settings.memtable_bytes());
    if let Some(bytes) = settings.table_bytes() {
        options.set_target_file_size_base(bytes);
        options.set_max_bytes_for_level_base(4 * bytes);
    }
    if many {
        options.set_arena_block_size(MANY_ARENA_BYTES);
    }
    options
}

impl RocksStore {
    /// Opens or creates the store.
    pub fn open(dir: &Path, how: OpenSpec<'_>, specs: &[SpaceSpec]) -> Result<Self> {
        let cache = cache(&how.settings.rocks, how.settings.cache_bytes() as usize);
        let many = how.small.is_some();
        let mut options = family_options(&SpaceSpec::plain("default"), how.settings, many, &cache);
        options.create_missing_column_families(true);
        if many {
            options.set_db_write_buffer_size(how.settings.memtable_bytes() as usize);
        }
        let families = specs.iter().map(|spec| {
            ColumnFamilyDescriptor::new(&spec.name, family_options(spec, how.settings, many, &cache))
        });
        Ok(RocksStore {
            db: DB::open_cf_descriptors(&options, dir, families)?,
            names: specs.iter().map(|spec| spec.name.clone()).collect(),
            settings: how.settings.clone(),
            many,
            cache,
        })
    }

    fn family(&self, space: usize) -> Result<&ColumnFamily> {
        let family = self.names.get(space).and_then(|name| self.db.cf_handle(name));
        family.ok_or_else(|| "RocksDB without a column family".into())
    }

    fn families(&self) -> Result<Vec<&ColumnFamily>> {
        (0..self.names.len()).map(|space| self.family(space)).collect()
    }
}

impl KeyspaceStore for RocksStore {
    fn create(&mut self, spec: &SpaceSpec) -> Result<()> {
        self.db.create_cf(&spec.name, &family_options(spec, &self.settings, self.many, &self.cache))?;
        self.names.push(spec.name.clone());
        Ok(())
    }

    fn put_all(&mut self, rows: &[SpaceRow]) -> Result<()> {
        let mut batch = WriteBatch::default();
        for rows in rows.chunk_by(|one, other| one.space == other.space) {
            let family = self.family(rows[0].space)?;
            rows.iter().for_each(|row| batch.put_cf(family, &row.key, &row.value));
        }
        Ok(self.db.write(batch)?)
    }

    fn get_each(
        &self,
        space: usize,
        asked: &[AskedKey],
        answer: &mut dyn FnMut(&AskedKey, Option<&[u8]>),
    ) -> Result<()> {
        let family = self.family(space)?;
        for asked in asked {
            answer(asked, self.db.get_pinned_cf(family, asked.key)?.as_deref());
        }
        Ok(())
    }

    fn drop_last(&mut self) -> Result<()> {
        let name = self.names.pop().ok_or("no column family to drop")?;
        Ok(self.db.drop_cf(&name)?)
    }

    fn finish(&mut self) -> Result<()> {
        self.db.flush_cfs_opt(&self.families()?, &FlushOptions::default())?;
        Ok(self.db.wait_for_compact(&WaitForCompactOptions::default())?)
    }

    fn compact(&mut self) -> Result<()> {
        let mut force = CompactOptions::default();
        force.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        for family in self.families()? {
            self.db.compact_range_cf_opt(family, None::<&[u8]>, None::<&[u8]>, &force);
        }
        Ok(self.db.wait_for_compact(&WaitForCompactOptions::default())?)
    }

    fn filter_bytes(&self) -> Result<Option<u64>> {
        let mut bytes = 0;
        for family in self.families()? {
            let text = self.db.property_value_cf(family, "rocksdb.aggregated-table-properties")?;
            bytes += table_property(&text.unwrap_or_default(), "filter block size").unwrap_or(0);
        }
        Ok(Some(bytes))
    }
}

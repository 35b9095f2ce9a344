//! Databases of numbered keys, and their filter statistics.

use rocksdb::statistics::Ticker;
use rocksdb::{BlockBasedOptions, DB, DBCompressionType, Options};
use std::path::Path;

pub const PARITY: &str = "sidebloom.parity:8";

/// The options of a database: its table's, with this filter policy; empty for none.
pub fn options_of(table: &BlockBasedOptions, policy: &str) -> Options {
    sidebloom_rocksdb::register().unwrap();
    let mut base = Options::default();
    base.set_block_based_table_factory(table);
    let policy = if policy.is_empty() { "nullptr" } else { policy };
    let mut options = base
        .get_options_from_string(format!("block_based_table_factory={{filter_policy={policy}}}"))
        .unwrap();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::None);
    options.enable_statistics();
    options
}

/// A database, and its options, which have the statistics.
pub struct Store {
    pub db: DB,
    options: Options,
}

impl Store {
    pub fn open(dir: &Path, policy: &str) -> Store {
        Store::with_table(dir, &BlockBasedOptions::default(), policy)
    }

    pub fn with_table(dir: &Path, table: &BlockBasedOptions, policy: &str) -> Store {
        Store::with_options(dir, options_of(table, policy))
    }

    pub fn with_options(dir: &Path, options: Options) -> Store {
        // By name, so that the batched calls, which need a column family, can use it.
        let db = DB::open_cf_with_opts(&options, dir, [("default", options.clone())]).unwrap();
        Store { db, options }
    }

    /// Puts the even ones of these numbers as keys, and flushes them.
    pub fn put(&self, numbers: std::ops::Range<u32>) {
        for number in numbers.filter(|number| number % 2 == 0) {
            self.db.put(key(number), number.to_be_bytes()).unwrap();
        }
        self.db.flush().unwrap();
    }

    /// Checks that even numbers are found and odd ones are not, one by one and in batches.
    pub fn check(&self, numbers: std::ops::Range<u32>) {
        for number in numbers.clone() {
            assert_eq!(self.db.get(key(number)).unwrap(), value(number), "{number}");
        }
        let numbers: Vec<u32> = numbers.collect();
        for numbers in numbers.chunks(70) {
            let keys: Vec<_> = numbers.iter().map(|&number| key(number)).collect();
            let column = self.db.cf_handle("default").unwrap();
            let found = self.db.batched_multi_get_cf(column, &keys, false);
            for (found, &number) in found.into_iter().zip(numbers) {
                assert_eq!(found.unwrap().map(|value| value.to_vec()), value(number), "{number}");
            }
        }
    }

    pub fn compact(&self) {
        let mut options = rocksdb::CompactOptions::default();
        options.set_bottommost_level_compaction(rocksdb::BottommostLevelCompaction::Force);
        self.db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
    }

    /// Looks up odd numbers only. Returns how many filters were probed, and how many of them said "maybe".
    pub fn misses(&self, numbers: std::ops::Range<u32>) -> (u64, u64) {
        let before = self.filter_tickers();
        for number in numbers.filter(|number| number % 2 == 1) {
            assert_eq!(self.db.get(key(number)).unwrap(), None);
        }
        let after = self.filter_tickers();
        let (denied, maybe) = (after.0 - before.0, after.1 - before.1);
        (denied + maybe, maybe)
    }

    /// How often filters denied a key, and how often not.
    fn filter_tickers(&self) -> (u64, u64) {
        let ticker = |ticker| self.options.get_ticker_count(ticker);
        (ticker(Ticker::BloomFilterUseful), ticker(Ticker::BloomFilterFullPositive))
    }

    pub fn ticker(&self, ticker: Ticker) -> u64 {
        self.options.get_ticker_count(ticker)
    }

    /// Filter bits for each of these keys, in all SST files.
    pub fn bits_per_key(&self, keys: u32) -> f64 {
        self.table_property("filter block size") as f64 * 8.0 / f64::from(keys)
    }

    /// A sum over all SST files.
    pub fn table_property(&self, name: &str) -> u64 {
        let all = self.db.property_value("rocksdb.aggregated-table-properties").unwrap().unwrap();
        let found = all.split("; ").find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        found.unwrap().parse().unwrap()
    }
}

pub fn key(number: u32) -> [u8; 16] {
    let mut key = *b"key-000000000000";
    key[8..12].copy_from_slice(&(number / 100).to_be_bytes());
    key[12..].copy_from_slice(&number.to_be_bytes());
    key
}

pub fn value(number: u32) -> Option<Vec<u8>> {
    number.is_multiple_of(2).then(|| number.to_be_bytes().to_vec())
}

/// Every SST file of a database.
pub fn sst_files(dir: &Path) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "sst")).collect();
    files.sort();
    files
}

//! The compared stores on disk: opening, loading, and what all passes share.

use super::kind::StoreKind;
use super::record::WritesRecord;
use super::rows::{PlannedRow, RowGenerator, Written};
use super::store::WriteStore;
use super::stores;
use crate::error::Result;
use crate::kernel;
use crate::keys::SplitMix64;
use crate::output::StoreDirs;
use crate::quiet::{self, CpuSample};
use crate::settings::BenchSettings;
use crate::terminal::progress;
use std::path::{Path, PathBuf};

/// Seed of the keys and values.
pub const SEED: u64 = 1;
/// Rows of a batch while loading.
const LOAD_BATCH: u64 = 100;
/// Gets that fill a store's cache before a pass in memory.
const WARMING: u64 = 200_000;

/// An execution in progress. Its stores are removed at its end, also after an error.
pub struct Comparison {
    /// What has been measured so far.
    pub record: WritesRecord,
    /// The rows.
    pub rows: RowGenerator,
    /// How often each key was written by the transactions of earlier passes.
    pub written: Written,
    /// The index of the next new key. It is the same in all stores.
    pub next_new: u64,
    dirs: StoreDirs,
    settings: BenchSettings,
}

impl Comparison {
    /// An execution whose stores are in subdirectories of `dir`.
    pub fn new(record: WritesRecord, dir: &Path, settings: BenchSettings) -> Result<Self> {
        let names = record.stores.iter().map(|of| of.store.directory().to_owned());
        let dirs = StoreDirs::none_there(dir, names)?;
        let num = record.settings.keys;
        let rows = RowGenerator::new(num, SEED);
        Ok(Comparison { record, rows, written: Written::new(), next_new: num, dirs, settings })
    }

    /// The stores, in the order of their turns.
    pub fn kinds(&self) -> Vec<StoreKind> {
        self.record.stores.iter().map(|of| of.store).collect()
    }

    /// The directory of a store.
    pub fn directory(&self, kind: StoreKind) -> PathBuf {
        self.dirs.dir(kind.directory())
    }

    /// Whether nothing is read from a disk here.
    pub fn is_in_memory(&self) -> bool {
        kernel::is_memory(&self.dirs.root)
    }

    /// Opens or creates a store. `count` turns on RocksDB's statistics.
    pub fn open(&self, kind: StoreKind, count: bool) -> Result<Box<dyn WriteStore>> {
        stores::open(kind, &self.directory(kind), &self.settings, count)
    }

    /// Loads all stores, with keys in random order.
    pub fn load(&mut self) -> Result<()> {
        let mut rows = Vec::new();
        for kind in self.kinds() {
            progress(&format!("loading {}", kind.name()));
            let store = self.open(kind, false)?;
            for first in (0..self.rows.num).step_by(LOAD_BATCH as usize) {
                let indexes = first..self.rows.num.min(first + LOAD_BATCH);
                let planned: Vec<_> = indexes.map(|index| PlannedRow { index, is_new: true }).collect();
                self.rows.fill(&planned, &mut rows);
                store.put_all(&rows)?;
            }
            self.close(store)?;
        }
        Ok(())
    }

    /// Finishes what a store has to do, and writes its files back, so that the next store's pass does not
    /// wait for that.
    pub fn close(&self, store: Box<dyn WriteStore>) -> Result<()> {
        let kind = store.kind();
        store.finish()?;
        drop(store);
        Ok(kernel::write_back(&kernel::files(&self.directory(kind)))?)
    }

    /// Opens a store and brings its files and its cache into memory.
    pub fn open_warm(&self, kind: StoreKind, seed: u64) -> Result<Box<dyn WriteStore>> {
        kernel::fill_page_cache(&kernel::files(&self.directory(kind)))?;
        let store = self.open(kind, false)?;
        store.warm()?;
        let (mut rng, mut value) = (SplitMix64::new(seed), Vec::new());
        for _ in 0..WARMING.min(self.rows.num) {
            let index = rng.below(self.rows.num);
            if !store.get(&self.rows.key(index), &mut value)? {
                return Err(wrong(kind, "a loaded key is missing"));
            }
        }
        Ok(store)
    }

    /// Notes how busy other processes kept the machine.
    pub fn note_others(&mut self, during: &str, begin: &CpuSample) {
        self.record.notes.extend(quiet::note_of_others(during, begin));
    }
}

/// The error of an answer that ends the run.
pub fn wrong(kind: StoreKind, what: &str) -> Box<dyn std::error::Error + Send + Sync> {
    format!("WRONG ANSWER: {}: {what}", kind.name()).into()
}

//! The comparison: loading, counting, and timing.

use super::record::{AbsentCounts, PrefixSettings, PrefixesRecord};
use super::rocks::RocksStore;
use super::rows::RowGenerator;
use super::sidebloom_store::SidebloomStore;
use super::store::{MEMTABLE_MIB, PrefixStore, StoreKind};
use crate::error::Result;
use crate::format::number;
use crate::kernel::{self, ResourceCounters};
use crate::output::StoreDirs;
use crate::quiet::{self, CpuSample};
use crate::rocks_settings::RocksSettings;
use crate::settings::RUN_MEMTABLE_MIB;
use crate::shape;
use crate::terminal::progress;
use std::path::{Path, PathBuf};
use std::time::Instant;

const SEED: u64 = 1;
/// Prefixes per batch.
const BATCH: u64 = 10;
/// Pages of a store in the page cache above which a cold round would measure memory.
const CACHED_MAX: f64 = 0.01;

/// An execution in progress. Its stores are removed at its end, also after an error.
pub struct Comparison {
    /// What has been measured so far.
    pub record: PrefixesRecord,
    dirs: StoreDirs,
    rocks: RocksSettings,
    rows: RowGenerator,
}

impl Comparison {
    /// An execution whose stores are in subdirectories of `stores`.
    pub fn new(record: PrefixesRecord, stores: &Path, rocks: RocksSettings) -> Result<Self> {
        let names = StoreKind::ALL.map(|kind| kind.directory().to_owned());
        let dirs = StoreDirs::none_there(stores, names)?;
        let rows = RowGenerator::new(record.settings.prefixes, record.settings.rows, SEED);
        Ok(Comparison { record, dirs, rocks, rows })
    }

    fn directory(&self, kind: StoreKind) -> PathBuf {
        self.dirs.dir(kind.directory())
    }

    /// Opens or creates a store without automatic compactions. `count` turns on RocksDB's statistics.
    fn open_with(&self, kind: StoreKind, memtable_mib: u64, count: bool) -> Result<Box<dyn PrefixStore>> {
        let dir = self.directory(kind);
        Ok(if kind.is_ours() {
            Box::new(SidebloomStore::open(kind, &dir, memtable_mib)?)
        } else {
            Box::new(RocksStore::open(kind, &dir, &self.rocks, memtable_mib, count)?)
        })
    }

    /// Opens a store to read it, with filters and indexes in memory.
    fn open(&self, kind: StoreKind, count: bool) -> Result<Box<dyn PrefixStore>> {
        let store = self.open_with(kind, MEMTABLE_MIB, count)?;
        store.warm()?;
        Ok(store)
    }

    /// Loads all stores: prefixes in random order, the rows of a prefix together.
    pub fn load(&self) -> Result<()> {
        for kind in StoreKind::ALL {
            progress(&format!("loading {}", kind.name()));
            let store = self.open_with(kind, RUN_MEMTABLE_MIB, false)?;
            for (at, run) in shape::runs(self.record.settings.prefixes).into_iter().enumerate() {
                for first in run.clone().step_by(BATCH as usize) {
                    let batch = first..run.end.min(first + BATCH);
                    store.put_all(&batch.flat_map(|index| self.rows.of_prefix(index)).collect::<Vec<_>>())?;
                }
                if at == 0 {
                    store.compact_all()?;
                }
                store.flush()?;
            }
            drop(store);
            kernel::write_back(&kernel::files(&self.directory(kind)))?;
        }
        Ok(())
    }

    /// Finds every written prefix, and counts what absent ones cost.
    pub fn count(&mut self) -> Result<()> {
        let PrefixSettings { prefixes, rows, reads, .. } = self.record.settings;
        for at in 0..self.record.stores.len() {
            let kind = self.record.stores[at].store;
            progress(&format!("every prefix of {}", kind.name()));
            let store = self.open(kind, true)?;
            let mut found = 0;
            for prefix in self.rows.present() {
                let has = store.rows(&prefix, u64::MAX)?;
                if has != rows {
                    return Err(wrong(kind, &format!("{has} of {rows} rows of {}", prefix.escape_ascii())));
                }
                found += 1;
            }
            let facts = store.facts()?;
            if found != prefixes || facts.runs != shape::RUNS {
                return Err(wrong(
                    kind,
                    &format!("{found} of {prefixes} prefixes, in {} sorted runs", facts.runs),
                ));
            }
            let absent = self.count_absent(kind, store.as_ref())?;
            // Without prefix filters, only a prefix outside every table accesses no block.
            if kind.has_prefixes() == (2 * absent.false_positives > reads) {
                let blocks = absent.false_positives;
                return Err(wrong(kind, &format!("{blocks} of {reads} absent prefixes accessed blocks")));
            }
            let result = &mut self.record.stores[at];
            result.prefixes_found = found;
            result.filter_bytes = facts.filter_bytes;
            result.absent = absent;
        }
        Ok(())
    }

    fn count_absent(&self, kind: StoreKind, store: &dyn PrefixStore) -> Result<AbsentCounts> {
        let absent = self.rows.absent(self.record.settings.reads, SEED);
        let mut counts = AbsentCounts { lookups: absent.len() as u64, ..AbsentCounts::default() };
        for prefix in &absent {
            let before = store.block_accesses();
            Question::Absent.ask(kind, store, std::slice::from_ref(prefix))?;
            let blocks = store.block_accesses() - before;
            counts.block_accesses += blocks;
            counts.false_positives += u64::from(blocks > 0);
        }
        Ok(counts)
    }

    /// Times lookups in memory. The first round, which fills the caches, does not count.
    pub fn time_warm(&mut self) -> Result<()> {
        let opened: Result<Vec<_>> = StoreKind::ALL.into_iter().map(|kind| self.open(kind, false)).collect();
        let opened = opened?;
        kernel::fill_page_cache(&kernel::files(&self.dirs.root))?;
        let (begin, rounds) = (CpuSample::now(), self.record.settings.rounds);
        for round in 0..=rounds {
            for question in [Question::Absent, Question::AbsentByOneIterator, Question::MissingKey] {
                progress(&format!("round {round}/{rounds}: {question:?}"));
                let asked = question.of_round(&self.rows, self.record.settings.reads, SEED + 1 + round);
                for (result, store) in self.record.stores.iter_mut().zip(&opened) {
                    let ns = question.ask(result.store, store.as_ref(), &asked)?;
                    if round > 0 {
                        match question {
                            Question::Absent => result.absent_ns.push(ns),
                            Question::AbsentByOneIterator => result.one_iterator_ns.push(ns),
                            Question::MissingKey => result.missing_key_ns.push(ns),
                        }
                    }
                }
            }
        }
        self.note_others("lookups in memory", &begin);
        Ok(())
    }

    /// Times absent prefixes from disk. Filters and indexes are in memory.
    pub fn time_cold(&mut self) -> Result<()> {
        if kernel::is_memory(&self.dirs.root) {
            self.record
                .notes
                .push("no cold lookups: the stores are in a memory-backed file system".to_owned());
            return Ok(());
        }
        let (begin, rounds) = (CpuSample::now(), self.record.settings.rounds);
        for round in 0..rounds {
            let asked = self.rows.absent(self.record.settings.cold_reads, SEED ^ (round + 1) << 32);
            for at in 0..self.record.stores.len() {
                let kind = self.record.stores[at].store;
                progress(&format!("round {}/{rounds}: cold, {}", round + 1, kind.name()));
                let (store, directory) = (self.open(kind, false)?, self.directory(kind));
                let mut files = kernel::files(&directory);
                files.retain(|file| !kind.stays_in_memory(file));
                kernel::drop_page_cache(&files)?;
                let cached = kernel::cached_share(&files)?;
                if cached > CACHED_MAX {
                    self.record.notes.push(format!(
                        "rejected: cold, {}, round {}: {} % of its pages stayed in the page cache",
                        kind.name(),
                        round + 1,
                        number(100.0 * cached)
                    ));
                    continue;
                }
                let before = ResourceCounters::now(&directory);
                let ns = Question::Absent.ask(kind, store.as_ref(), &asked)?;
                let used = ResourceCounters::now(&directory).since(before);
                let result = &mut self.record.stores[at];
                result.cold_ns.push(ns);
                result.cold_reads.extend(used.device_reads.map(|reads| reads as f64 / asked.len() as f64));
            }
        }
        self.note_others("lookups from disk", &begin);
        Ok(())
    }

    fn note_others(&mut self, during: &str, begin: &CpuSample) {
        self.record.notes.extend(quiet::note_of_others(during, begin));
    }
}

/// What a pass looks up.
#[derive(Debug, Clone, Copy)]
enum Question {
    /// Whether a prefix has rows, by its own iterator; none has.
    Absent,
    /// The same, by seeks of one iterator.
    AbsentByOneIterator,
    /// Whether a missing key is there. Its prefix has rows.
    MissingKey,
}

impl Question {
    fn of_round(self, rows: &RowGenerator, count: u64, seed: u64) -> Vec<Vec<u8>> {
        match self {
            Question::MissingKey => rows.missing_keys(count, seed),
            _ => rows.absent(count, seed),
        }
    }

    /// Mean nanoseconds of an answer. A wrong one is an error.
    fn ask(self, kind: StoreKind, store: &dyn PrefixStore, asked: &[Vec<u8>]) -> Result<f64> {
        let begin = Instant::now();
        let mut found = 0;
        match self {
            Question::Absent => {
                for prefix in asked {
                    found += store.rows(prefix, 1)?;
                }
            }
            Question::AbsentByOneIterator => found = store.found_by_one_iterator(asked)?,
            Question::MissingKey => {
                for key in asked {
                    found += u64::from(store.contains(key)?);
                }
            }
        }
        let elapsed = begin.elapsed();
        if found > 0 {
            return Err(wrong(kind, &format!("{found} found that were never written ({self:?})")));
        }
        Ok(elapsed.as_nanos() as f64 / asked.len() as f64)
    }
}

fn wrong(kind: StoreKind, what: &str) -> Box<dyn std::error::Error + Send + Sync> {
    format!("WRONG ANSWER: {}: {what}", kind.name()).into()
}

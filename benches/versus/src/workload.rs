//! The workloads: their names, and the calls that each of them makes.

use crate::keys::{KeyGenerator, KeyPresence, SplitMix64, YcsbZipf};
use crate::settings::RunSettings;
use std::collections::BTreeSet;

/// Keys in a call of multireadrandom.
pub const MULTI: usize = 32;

/// What a workload does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadKind {
    /// Writes all keys in random order, in batches.
    Load,
    /// Writes keys to an empty store, one at a time.
    Fill { in_order: bool },
    /// Writes present keys.
    Overwrite,
    /// Gets keys, of which `missing` percent are missing.
    Get { missing: u64 },
    /// Gets keys below or above all present keys.
    GetOutside,
    /// Gets [`MULTI`] keys per call, of which `missing` percent are missing.
    MultiGet { missing: u64 },
    /// Gets present keys while another thread overwrites.
    GetWhileWriting,
    /// Seeks to a random position and reads a row.
    Seek,
    /// Reads all rows.
    Scan,
    /// A core workload of YCSB, by its letter.
    Ycsb(char),
    /// Opens the store and gets one key.
    Open,
    /// Counts the filters' answers for missing keys. Not timed.
    Count,
}

/// Where the data is when the calls begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheState {
    /// In memory.
    Warm,
    /// On disk: the page cache is dropped before.
    Cold,
    /// As much in memory as fits: the process is in a control group limited to [`limit_bytes`](RunSettings::limit_bytes), page cache
    /// included, and earlier calls have filled it.
    Limited,
}

/// A workload.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadSpec {
    /// The name in tables and in `--workloads`.
    pub name: &'static str,
    /// What it does.
    pub kind: WorkloadKind,
    /// Where the data is.
    pub cache: CacheState,
}

const fn warm(name: &'static str, kind: WorkloadKind) -> WorkloadSpec {
    WorkloadSpec { name, kind, cache: CacheState::Warm }
}

const fn cold(name: &'static str, kind: WorkloadKind) -> WorkloadSpec {
    WorkloadSpec { name, kind, cache: CacheState::Cold }
}

const fn limited(name: &'static str, kind: WorkloadKind) -> WorkloadSpec {
    WorkloadSpec { name, kind, cache: CacheState::Limited }
}

/// All workloads, in the order of a round: those that write to the loaded store come last.
pub const WORKLOADS: [WorkloadSpec; 34] = [
    warm("load", WorkloadKind::Load),
    warm("count", WorkloadKind::Count),
    warm("fillseq", WorkloadKind::Fill { in_order: true }),
    warm("fillrandom", WorkloadKind::Fill { in_order: false }),
    warm("readrandom", WorkloadKind::Get { missing: 0 }),
    warm("mixed50", WorkloadKind::Get { missing: 50 }),
    warm("mixed90", WorkloadKind::Get { missing: 90 }),
    warm("mixed99", WorkloadKind::Get { missing: 99 }),
    warm("readmissing", WorkloadKind::Get { missing: 100 }),
    warm("readmissing-outside", WorkloadKind::GetOutside),
    warm("multireadrandom", WorkloadKind::MultiGet { missing: 0 }),
    warm("multireadmissing", WorkloadKind::MultiGet { missing: 100 }),
    warm("seekrandom", WorkloadKind::Seek),
    warm("scan", WorkloadKind::Scan),
    warm("open", WorkloadKind::Open),
    cold("readrandom-cold", WorkloadKind::Get { missing: 0 }),
    cold("mixed50-cold", WorkloadKind::Get { missing: 50 }),
    cold("mixed90-cold", WorkloadKind::Get { missing: 90 }),
    cold("mixed99-cold", WorkloadKind::Get { missing: 99 }),
    cold("readmissing-cold", WorkloadKind::Get { missing: 100 }),
    cold("multireadmissing-cold", WorkloadKind::MultiGet { missing: 100 }),
    cold("seekrandom-cold", WorkloadKind::Seek),
    cold("open-cold", WorkloadKind::Open),
    limited("readrandom-limited", WorkloadKind::Get { missing: 0 }),
    limited("mixed90-limited", WorkloadKind::Get { missing: 90 }),
    limited("readmissing-limited", WorkloadKind::Get { missing: 100 }),
    warm("readwhilewriting", WorkloadKind::GetWhileWriting),
    warm("overwrite", WorkloadKind::Overwrite),
    warm("ycsb-a", WorkloadKind::Ycsb('a')),
    warm("ycsb-b", WorkloadKind::Ycsb('b')),
    warm("ycsb-c", WorkloadKind::Ycsb('c')),
    warm("ycsb-d", WorkloadKind::Ycsb('d')),
    warm("ycsb-e", WorkloadKind::Ycsb('e')),
    warm("ycsb-f", WorkloadKind::Ycsb('f')),
];

/// The workload of a name.
pub fn by_name(name: &str) -> Option<WorkloadSpec> {
    WORKLOADS.into_iter().find(|workload| workload.name == name)
}

impl WorkloadSpec {
    /// Whether it leaves the store unchanged.
    pub fn only_reads(&self) -> bool {
        !matches!(
            self.kind,
            WorkloadKind::Load
                | WorkloadKind::Fill { .. }
                | WorkloadKind::Overwrite
                | WorkloadKind::GetWhileWriting
                | WorkloadKind::Ycsb('a' | 'b' | 'd' | 'e' | 'f')
        )
    }

    /// Whether it needs a new store each time.
    pub fn fresh_store(&self) -> bool {
        matches!(self.kind, WorkloadKind::Fill { .. })
    }

    /// The number of calls to make.
    pub fn calls(&self, settings: &RunSettings) -> u64 {
        match self.kind {
            WorkloadKind::Fill { .. } | WorkloadKind::Overwrite => settings.writes,
            WorkloadKind::MultiGet { .. } if self.cache == CacheState::Cold => {
                (settings.cold_reads / MULTI as u64).max(1)
            }
            WorkloadKind::MultiGet { .. } => (settings.reads / MULTI as u64).max(1),
            WorkloadKind::Ycsb('e') => (settings.scans / 4).max(1),
            WorkloadKind::Ycsb('a' | 'f') => settings.writes,
            WorkloadKind::Scan | WorkloadKind::Load => settings.num,
            _ if self.cache == CacheState::Cold => settings.cold_reads,
            _ if self.cache == CacheState::Limited => settings.limited_reads,
            WorkloadKind::Seek => settings.scans,
            WorkloadKind::Open => 1,
            _ => settings.reads,
        }
    }
}

/// The expected answer to a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedAnswer {
    /// No value.
    Nothing,
    /// The value of this generation.
    Exactly(u64),
    /// A value of an earlier generation.
    Before(u64),
}

/// A call to the store.
#[derive(Debug)]
pub enum StoreCall {
    /// Get a key.
    Get(KeyLookup),
    /// Write a key.
    Put { index: u64 },
    /// Get a key, then write it.
    Change(KeyLookup),
    /// Get many keys.
    MultiGet(Vec<KeyLookup>),
    /// Read rows from rank `from` on. `ranks` are the ranks of the expected rows.
    Scan { from: u64, ranks: Vec<u64> },
}

/// A lookup and its expected answer.
#[derive(Debug, Clone, Copy)]
pub struct KeyLookup {
    /// The index of the key.
    pub index: u64,
    /// Which key of the index.
    pub presence: KeyPresence,
    /// The expected answer.
    pub expect: ExpectedAnswer,
}

/// Generates the calls of a workload with their expected answers.
pub struct CallGenerator<'a> {
    kind: WorkloadKind,
    keys: &'a KeyGenerator,
    rng: SplitMix64,
    zipf: Option<YcsbZipf>,
    loaded: u64,
    /// Keys in the store now: those loaded, and those that YCSB inserted.
    present: u64,
    generation: u64,
    written: Vec<bool>,
    sorted: Vec<u64>,
    added: BTreeSet<u64>,
    order: Vec<u64>,
    made: u64,
}

impl<'a> CallGenerator<'a> {
    /// Calls for a store with `loaded` keys and `added` more. All of them were written before `generation`.
    pub fn new(
        kind: WorkloadKind,
        keys: &'a KeyGenerator,
        loaded: u64,
        added: u64,
        generation: u64,
        rng: SplitMix64,
    ) -> Self {
        let zipf = matches!(kind, WorkloadKind::Ycsb(_)).then(|| YcsbZipf::new(loaded));
        let ordered = matches!(kind, WorkloadKind::Seek | WorkloadKind::Ycsb('e'));
        let rank = |index| keys.rank(index, KeyPresence::Present);
        let order = match kind {
            WorkloadKind::Fill { in_order: true } => in_order(keys, loaded),
            _ => Vec::new(),
        };
        CallGenerator {
            sorted: if ordered { keys.sorted(loaded) } else { Vec::new() },
            added: if ordered { (loaded..loaded + added).map(rank).collect() } else { BTreeSet::new() },
            present: loaded + added,
            written: vec![false; loaded as usize],
            made: 0,
            kind,
            keys,
            rng,
            zipf,
            loaded,
            generation,
            order,
        }
    }

    /// The number of keys in the store after the calls so far.
    pub fn present(&self) -> u64 {
        self.present
    }

    /// The indexes of the keys written by the calls so far.
    pub fn written(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.loaded).filter(|&index| self.written[index as usize]).chain(self.loaded..self.present)
    }

    /// The next call.
    pub fn next_call(&mut self) -> StoreCall {
        self.made += 1;
        match self.kind {
            WorkloadKind::Get { missing } => StoreCall::Get(self.mixed(missing)),
            WorkloadKind::Count => StoreCall::Get(self.mixed(100)),
            WorkloadKind::MultiGet { missing } => {
                StoreCall::MultiGet((0..MULTI).map(|_| self.mixed(missing)).collect())
            }
            WorkloadKind::GetOutside => StoreCall::Get(self.absent(KeyPresence::Outside)),
            WorkloadKind::Fill { in_order: true } => {
                self.put(self.order[(self.made - 1) as usize % self.order.len()])
            }
            WorkloadKind::Fill { in_order: false } => self.put((self.made - 1) % self.loaded),
            WorkloadKind::Overwrite => {
                let index = self.rng.below(self.loaded);
                self.put(index)
            }
            WorkloadKind::Seek => self.scan(1),
            WorkloadKind::Ycsb(letter) => self.ycsb(letter),
            _ => StoreCall::Get(self.mixed(0)),
        }
    }

    fn mixed(&mut self, missing: u64) -> KeyLookup {
        if self.rng.below(100) < missing {
            return self.absent(KeyPresence::Missing);
        }
        let index = self.rng.below(self.loaded);
        self.there(index)
    }

    fn absent(&mut self, presence: KeyPresence) -> KeyLookup {
        KeyLookup { index: self.rng.next() >> 2, presence, expect: ExpectedAnswer::Nothing }
    }

    fn there(&self, index: u64) -> KeyLookup {
        let written = self.written.get(index as usize).copied().unwrap_or(false);
        let expect = match self.kind {
            WorkloadKind::GetWhileWriting => ExpectedAnswer::Before(self.generation + 1),
            _ if written => ExpectedAnswer::Exactly(self.generation),
            // Inserted by this task or an earlier one.
            _ if index >= self.loaded => ExpectedAnswer::Before(self.generation + 1),
            _ => ExpectedAnswer::Before(self.generation),
        };
        KeyLookup { index, presence: KeyPresence::Present, expect }
    }

    fn put(&mut self, index: u64) -> StoreCall {
        if let Some(written) = self.written.get_mut(index as usize) {
            *written = true;
        }
        StoreCall::Put { index }
    }

    fn insert(&mut self) -> StoreCall {
        let index = self.present;
        self.present += 1;
        if !self.sorted.is_empty() {
            self.added.insert(self.keys.rank(index, KeyPresence::Present));
        }
        StoreCall::Put { index }
    }

    fn scan(&mut self, rows: usize) -> StoreCall {
        let from = self.rng.next();
        let at = self.sorted.partition_point(|&rank| rank < from);
        let (mut loaded, mut added) =
            (self.sorted[at..].iter().peekable(), self.added.range(from..).peekable());
        let next = || match (loaded.peek(), added.peek()) {
            (Some(a), Some(b)) if a < b => loaded.next().copied(),
            (Some(_), None) => loaded.next().copied(),
            _ => added.next().copied(),
        };
        StoreCall::Scan { from, ranks: std::iter::from_fn(next).take(rows).collect() }
    }

    /// <https://github.com/brianfrankcooper/YCSB/wiki/Core-Workloads>
    fn ycsb(&mut self, letter: char) -> StoreCall {
        let Some(zipf) = &self.zipf else { return StoreCall::Get(self.mixed(0)) };
        let popular = zipf.scrambled(&mut self.rng);
        let recent = self.present - 1 - zipf.rank(&mut self.rng).min(self.present - 1);
        let percent = self.rng.below(100);
        match letter {
            'a' if percent < 50 => self.put(popular),
            'b' if percent < 5 => self.put(popular),
            'd' | 'e' if percent < 5 => self.insert(),
            'd' => StoreCall::Get(self.there(recent)),
            'e' => {
                let rows = 1 + self.rng.below(100) as usize;
                self.scan(rows)
            }
            'f' if percent < 50 => {
                let asked = self.there(popular);
                self.put(popular);
                StoreCall::Change(asked)
            }
            _ => StoreCall::Get(self.there(popular)),
        }
    }
}

/// The indexes of all keys, in the order of the keys.
fn in_order(keys: &KeyGenerator, count: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    order.sort_by_cached_key(|&index| keys.rank(index, KeyPresence::Present));
    order
}

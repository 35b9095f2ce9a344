//! The workloads: their names, and the calls that each of them makes.

mod calls;

pub use calls::{CallGenerator, ExpectedAnswer, KeyLookup, StoreCall};

use crate::settings::BenchSettings;

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
    /// Gets many keys per call, of which `missing` percent are missing.
    MultiGet { missing: u64, keys: usize },
    /// Gets present keys while another thread overwrites.
    GetWhileWriting,
    /// Seeks to a random position, skips rows, and reads the next ones.
    Range { skip: usize, rows: usize },
    /// Reads from the first row on: skips rows, and reads the next ones.
    First { skip: usize, rows: usize },
    /// Counts all rows in a pass over them.
    CountRows,
    /// Reads all rows.
    Scan,
    /// Reads the keys of all rows.
    ScanKeys,
    /// A core workload of YCSB, by its letter.
    Ycsb(char),
    /// Opens the store and gets one present key.
    Open,
    /// Opens the store and gets a missing key, or as many as a cold workload makes calls.
    OpenMissing { many: bool },
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
    /// As much in memory as fits: the process is in a control group limited to
    /// [`limit_bytes`](BenchSettings::limit_bytes), page cache included, which earlier calls have filled.
    Limited,
}

/// Which store a workload uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreRole {
    /// The store of all keys, loaded once.
    Main,
    /// A store of fewer and longer rows, loaded once, which fits the cache.
    Rows,
    /// A new store each time.
    Fresh,
    /// A new store each time, whose rows the worker has just written, and then each of them once more. What
    /// the engine has not flushed or compacted by itself is still to do.
    Written,
}

impl StoreRole {
    /// Whether the store is of one worker alone.
    pub fn is_new(self) -> bool {
        matches!(self, StoreRole::Fresh | StoreRole::Written)
    }
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
    /// The store it uses.
    pub store: StoreRole,
    /// Threads that make the calls.
    pub threads: u64,
    /// Whether it is run by default (without --quick).
    pub standard: bool,
}

const fn warm(name: &'static str, kind: WorkloadKind) -> WorkloadSpec {
    let (cache, store) = (CacheState::Warm, StoreRole::Main);
    WorkloadSpec { name, kind, cache, store, threads: 1, standard: false }
}

const fn cold(name: &'static str, kind: WorkloadKind) -> WorkloadSpec {
    WorkloadSpec { cache: CacheState::Cold, ..warm(name, kind) }
}

const fn limited(name: &'static str, kind: WorkloadKind) -> WorkloadSpec {
    WorkloadSpec { cache: CacheState::Limited, ..warm(name, kind) }
}

const fn fresh(name: &'static str, kind: WorkloadKind) -> WorkloadSpec {
    WorkloadSpec { store: StoreRole::Fresh, ..warm(name, kind) }
}

const fn rows(name: &'static str, kind: WorkloadKind) -> WorkloadSpec {
    WorkloadSpec { store: StoreRole::Rows, ..warm(name, kind) }
}

const fn written(name: &'static str, kind: WorkloadKind) -> WorkloadSpec {
    WorkloadSpec { store: StoreRole::Written, ..warm(name, kind) }
}

const fn multi(missing: u64) -> WorkloadKind {
    WorkloadKind::MultiGet { missing, keys: MULTI }
}

const WRITTEN_FIRST: WorkloadKind = WorkloadKind::First { skip: 0, rows: 100 };
const WRITTEN_SKIP: WorkloadKind = WorkloadKind::First { skip: 5_000, rows: 100 };
const WRITTEN_READ: WorkloadKind = WorkloadKind::MultiGet { missing: 0, keys: 1_000 };

/// All workloads, in the order of a round.
pub const WORKLOADS: [WorkloadSpec; 52] = [
    warm("load", WorkloadKind::Load).standard(),
    warm("count", WorkloadKind::Count).standard(),
    fresh("fillseq", WorkloadKind::Fill { in_order: true }),
    fresh("fillrandom", WorkloadKind::Fill { in_order: false }),
    warm("readrandom", WorkloadKind::Get { missing: 0 }).standard(),
    warm("mixed50", WorkloadKind::Get { missing: 50 }),
    warm("mixed90", WorkloadKind::Get { missing: 90 }).standard(),
    warm("mixed99", WorkloadKind::Get { missing: 99 }),
    warm("readmissing", WorkloadKind::Get { missing: 100 }).standard(),
    warm("readmissing-outside", WorkloadKind::GetOutside),
    warm("multireadrandom", multi(0)),
    warm("multireadmissing", multi(100)).standard(),
    warm("seekrandom", WorkloadKind::Range { skip: 0, rows: 1 }),
    warm("scan", WorkloadKind::Scan).standard(),
    warm("open", WorkloadKind::Open),
    cold("readrandom-cold", WorkloadKind::Get { missing: 0 }).standard(),
    cold("mixed50-cold", WorkloadKind::Get { missing: 50 }),
    cold("mixed90-cold", WorkloadKind::Get { missing: 90 }),
    cold("mixed99-cold", WorkloadKind::Get { missing: 99 }),
    cold("readmissing-cold", WorkloadKind::Get { missing: 100 }).standard(),
    cold("multireadrandom-cold", multi(0)).standard(),
    cold("multireadmissing-cold", multi(100)),
    cold("seekrandom-cold", WorkloadKind::Range { skip: 0, rows: 1 }),
    cold("open-cold", WorkloadKind::Open),
    cold("open-miss-cold", WorkloadKind::OpenMissing { many: false }).standard(),
    cold("open-misses-cold", WorkloadKind::OpenMissing { many: true }).standard(),
    rows("rows-load", WorkloadKind::Load).standard(),
    rows("rows-range", WorkloadKind::Range { skip: 0, rows: 100 }).standard(),
    rows("rows-range-skip", WorkloadKind::Range { skip: 5_000, rows: 100 }).standard(),
    rows("rows-scan", WorkloadKind::Scan).standard(),
    rows("rows-keys", WorkloadKind::ScanKeys).standard(),
    rows("rows-read-threads", WorkloadKind::Get { missing: 0 }).threads(8).standard(),
    written("written-first", WRITTEN_FIRST),
    written("written-first-threads", WRITTEN_FIRST).threads(8),
    written("written-first-skip", WRITTEN_SKIP),
    written("written-first-skip-threads", WRITTEN_SKIP).threads(8),
    written("written-count", WorkloadKind::CountRows),
    written("written-count-threads", WorkloadKind::CountRows).threads(8),
    written("written-multireadrandom", WRITTEN_READ),
    written("written-multireadrandom-threads", WRITTEN_READ).threads(8),
    limited("readrandom-limited", WorkloadKind::Get { missing: 0 }),
    limited("mixed90-limited", WorkloadKind::Get { missing: 90 }),
    limited("readmissing-limited", WorkloadKind::Get { missing: 100 }),
    rows("rows-put-threads", WorkloadKind::Overwrite).threads(8).standard(),
    warm("readwhilewriting", WorkloadKind::GetWhileWriting).standard(),
    warm("overwrite", WorkloadKind::Overwrite),
    warm("ycsb-a", WorkloadKind::Ycsb('a')),
    warm("ycsb-b", WorkloadKind::Ycsb('b')),
    warm("ycsb-c", WorkloadKind::Ycsb('c')),
    warm("ycsb-d", WorkloadKind::Ycsb('d')),
    warm("ycsb-e", WorkloadKind::Ycsb('e')),
    warm("ycsb-f", WorkloadKind::Ycsb('f')),
];

/// The names of all workloads, or of the default ones (without --quick).
pub fn names(only_standard: bool) -> Vec<String> {
    let wanted = WORKLOADS.iter().filter(|workload| workload.standard || !only_standard);
    wanted.map(|workload| workload.name.to_owned()).collect()
}

/// The workload of a name.
pub fn by_name(name: &str) -> Option<WorkloadSpec> {
    WORKLOADS.into_iter().find(|workload| workload.name == name)
}

impl WorkloadSpec {
    const fn standard(self) -> Self {
        WorkloadSpec { standard: true, ..self }
    }

    const fn threads(self, threads: u64) -> Self {
        WorkloadSpec { threads, ..self }
    }

    /// Whether it opens the store while the clock runs.
    pub fn opens(&self) -> bool {
        matches!(self.kind, WorkloadKind::Open | WorkloadKind::OpenMissing { .. })
    }

    /// Whether it needs the keys in order.
    pub fn needs_order(&self) -> bool {
        matches!(
            self.kind,
            WorkloadKind::Range { .. }
                | WorkloadKind::First { .. }
                | WorkloadKind::CountRows
                | WorkloadKind::Scan
                | WorkloadKind::ScanKeys
                | WorkloadKind::Ycsb('e')
        )
    }

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

    /// The number of calls to make.
    pub fn calls(&self, settings: &BenchSettings) -> u64 {
        match self.kind {
            WorkloadKind::Fill { .. } | WorkloadKind::Overwrite => settings.writes,
            WorkloadKind::MultiGet { keys, .. } if self.cache == CacheState::Cold => {
                (settings.cold_reads / keys as u64).max(1)
            }
            WorkloadKind::MultiGet { keys, .. } => (settings.reads / keys as u64).max(1),
            WorkloadKind::Ycsb('e') => (settings.scans / 4).max(1),
            WorkloadKind::Ycsb('a' | 'f') => settings.writes,
            WorkloadKind::First { skip: 0, .. } => 2 * settings.scans,
            WorkloadKind::First { .. } => (settings.scans / 10).max(1),
            WorkloadKind::CountRows => 16,
            WorkloadKind::Scan | WorkloadKind::ScanKeys | WorkloadKind::Load => settings.num,
            WorkloadKind::Open | WorkloadKind::OpenMissing { many: false } => 1,
            _ if self.cache == CacheState::Cold => settings.cold_reads,
            _ if self.cache == CacheState::Limited => settings.limited_reads,
            WorkloadKind::Range { skip: 0, .. } => settings.scans,
            WorkloadKind::Range { .. } => (settings.scans / 20).max(1),
            _ => settings.reads,
        }
    }
}

//! The workloads: names, and the calls each of them makes.

use crate::keys::{Keys, Kind, Rng, Zipf};
use crate::settings::Settings;
use std::collections::BTreeSet;

/// Keys in a call of multireadrandom.
pub const MULTI: usize = 32;

/// What a workload does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Writes all keys in random order, many at once.
    Load,
    /// Writes keys into an empty store, one at a time.
    Fill { in_order: bool },
    /// Writes keys that are there.
    Overwrite,
    /// Gets keys, so many in a hundred missing.
    Get { missing: u64 },
    /// Gets keys below or above all that are there.
    GetOutside,
    /// Gets [`MULTI`] keys in a call, all there or all missing.
    MultiGet { missing: u64 },
    /// Gets keys that are there while another thread overwrites.
    GetWhileWriting,
    /// Goes to a random place and reads a row.
    Seek,
    /// Reads all rows.
    Scan,
    /// One of YCSB's six.
    Ycsb(char),
    /// Opens the store and asks for one key.
    Open,
    /// Counts what filters answer to missing keys; not timed.
    Count,
}

/// Where the data is when the calls begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// All of it in memory.
    Warm,
    /// On disk: the page cache is emptied before.
    Cold,
    /// As much of it in memory as fits beside everything else: the process is in a group that may have
    /// [`limit_bytes`](Settings::limit_bytes), page cache included, and calls have filled that before.
    Limited,
}

/// A workload by name.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// As tables and `--workloads` show it.
    pub name: &'static str,
    /// What it does.
    pub what: What,
    /// Where the data is.
    pub memory: Memory,
}

const fn warm(name: &'static str, what: What) -> Workload {
    Workload { name, what, memory: Memory::Warm }
}

const fn cold(name: &'static str, what: What) -> Workload {
    Workload { name, what, memory: Memory::Cold }
}

const fn limited(name: &'static str, what: What) -> Workload {
    Workload { name, what, memory: Memory::Limited }
}

/// In the order in which a round runs them: first those that only read.
pub const WORKLOADS: [Workload; 34] = [
    warm("load", What::Load),
    warm("count", What::Count),
    warm("fillseq", What::Fill { in_order: true }),
    warm("fillrandom", What::Fill { in_order: false }),
    warm("readrandom", What::Get { missing: 0 }),
    warm("mixed50", What::Get { missing: 50 }),
    warm("mixed90", What::Get { missing: 90 }),
    warm("mixed99", What::Get { missing: 99 }),
    warm("readmissing", What::Get { missing: 100 }),
    warm("readmissing-outside", What::GetOutside),
    warm("multireadrandom", What::MultiGet { missing: 0 }),
    warm("multireadmissing", What::MultiGet { missing: 100 }),
    warm("seekrandom", What::Seek),
    warm("scan", What::Scan),
    warm("open", What::Open),
    cold("readrandom-cold", What::Get { missing: 0 }),
    cold("mixed50-cold", What::Get { missing: 50 }),
    cold("mixed90-cold", What::Get { missing: 90 }),
    cold("mixed99-cold", What::Get { missing: 99 }),
    cold("readmissing-cold", What::Get { missing: 100 }),
    cold("multireadmissing-cold", What::MultiGet { missing: 100 }),
    cold("seekrandom-cold", What::Seek),
    cold("open-cold", What::Open),
    limited("readrandom-limited", What::Get { missing: 0 }),
    limited("mixed90-limited", What::Get { missing: 90 }),
    limited("readmissing-limited", What::Get { missing: 100 }),
    warm("readwhilewriting", What::GetWhileWriting),
    warm("overwrite", What::Overwrite),
    warm("ycsb-a", What::Ycsb('a')),
    warm("ycsb-b", What::Ycsb('b')),
    warm("ycsb-c", What::Ycsb('c')),
    warm("ycsb-d", What::Ycsb('d')),
    warm("ycsb-e", What::Ycsb('e')),
    warm("ycsb-f", What::Ycsb('f')),
];

/// The workload of a name.
pub fn by_name(name: &str) -> Option<Workload> {
    WORKLOADS.into_iter().find(|workload| workload.name == name)
}

impl Workload {
    /// Whether it leaves the store as it was.
    pub fn only_reads(&self) -> bool {
        !matches!(
            self.what,
            What::Load
                | What::Fill { .. }
                | What::Overwrite
                | What::GetWhileWriting
                | What::Ycsb('a' | 'b' | 'd' | 'e' | 'f')
        )
    }

    /// Whether it has a store of its own, new each time.
    pub fn fresh_store(&self) -> bool {
        matches!(self.what, What::Fill { .. })
    }

    /// Calls to make.
    pub fn calls(&self, settings: &Settings) -> u64 {
        match self.what {
            What::Fill { .. } | What::Overwrite => settings.writes,
            What::MultiGet { .. } if self.memory == Memory::Cold => {
                (settings.cold_reads / MULTI as u64).max(1)
            }
            What::MultiGet { .. } => (settings.reads / MULTI as u64).max(1),
            What::Ycsb('e') => (settings.scans / 4).max(1),
            What::Ycsb('a' | 'f') => settings.writes,
            What::Scan | What::Load => settings.num,
            _ if self.memory == Memory::Cold => settings.cold_reads,
            _ if self.memory == Memory::Limited => settings.limited_reads,
            What::Seek => settings.scans,
            What::Open => 1,
            _ => settings.reads,
        }
    }
}

/// What a key should give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Nothing,
    /// The value of this generation.
    Exactly(u64),
    /// A value of an earlier generation.
    Before(u64),
}

/// One call.
#[derive(Debug)]
pub enum Call {
    /// Get a key.
    Get(Asked),
    /// Write a key.
    Put { index: u64 },
    /// Get a key, then write it.
    Change(Asked),
    /// Get many keys.
    MultiGet(Vec<Asked>),
    /// Read rows from a key on; their ranks.
    Scan { from: u64, ranks: Vec<u64> },
}

/// A key to get.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Of the key.
    pub index: u64,
    /// Which of this index.
    pub kind: Kind,
    /// What it should give.
    pub expect: Expect,
}

/// Draws the calls of a workload, and knows what each should give.
pub struct Source<'a> {
    what: What,
    keys: &'a Keys,
    rng: Rng,
    zipf: Option<Zipf>,
    loaded: u64,
    /// Keys there now: those loaded, and those that YCSB inserted.
    present: u64,
    generation: u64,
    written: Vec<bool>,
    sorted: Vec<u64>,
    added: BTreeSet<u64>,
    order: Vec<u64>,
    made: u64,
}

impl<'a> Source<'a> {
    /// For a store of `loaded` keys and `added` more; everything in it was written before `generation`.
    pub fn new(what: What, keys: &'a Keys, loaded: u64, added: u64, generation: u64, rng: Rng) -> Self {
        let zipf = matches!(what, What::Ycsb(_)).then(|| Zipf::new(loaded));
        let ordered = matches!(what, What::Seek | What::Ycsb('e'));
        let rank = |index| keys.rank(index, Kind::Present);
        let order = match what {
            What::Fill { in_order: true } => in_order(keys, loaded),
            _ => Vec::new(),
        };
        Source {
            sorted: if ordered { keys.sorted(loaded) } else { Vec::new() },
            added: if ordered { (loaded..loaded + added).map(rank).collect() } else { BTreeSet::new() },
            present: loaded + added,
            written: vec![false; loaded as usize],
            made: 0,
            what,
            keys,
            rng,
            zipf,
            loaded,
            generation,
            order,
        }
    }

    /// Keys that are there after the calls so far.
    pub fn present(&self) -> u64 {
        self.present
    }

    /// Indexes of keys that the calls so far wrote.
    pub fn written(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.loaded).filter(|&index| self.written[index as usize]).chain(self.loaded..self.present)
    }

    /// The next call.
    pub fn call(&mut self) -> Call {
        self.made += 1;
        match self.what {
            What::Get { missing } => Call::Get(self.mixed(missing)),
            What::Count => Call::Get(self.mixed(100)),
            What::MultiGet { missing } => Call::MultiGet((0..MULTI).map(|_| self.mixed(missing)).collect()),
            What::GetOutside => Call::Get(self.absent(Kind::Outside)),
            What::Fill { in_order: true } => {
                self.put(self.order[(self.made - 1) as usize % self.order.len()])
            }
            What::Fill { in_order: false } => self.put((self.made - 1) % self.loaded),
            What::Overwrite => {
                let index = self.rng.below(self.loaded);
                self.put(index)
            }
            What::Seek => self.scan(1),
            What::Ycsb(letter) => self.ycsb(letter),
            _ => Call::Get(self.mixed(0)),
        }
    }

    fn mixed(&mut self, missing: u64) -> Asked {
        if self.rng.below(100) < missing {
            return self.absent(Kind::Missing);
        }
        let index = self.rng.below(self.loaded);
        self.there(index)
    }

    fn absent(&mut self, kind: Kind) -> Asked {
        Asked { index: self.rng.next() >> 2, kind, expect: Expect::Nothing }
    }

    fn there(&self, index: u64) -> Asked {
        let written = self.written.get(index as usize).copied().unwrap_or(false);
        let expect = match self.what {
            What::GetWhileWriting => Expect::Before(self.generation + 1),
            _ if written => Expect::Exactly(self.generation),
            // What this run inserted, or an earlier one.
            _ if index >= self.loaded => Expect::Before(self.generation + 1),
            _ => Expect::Before(self.generation),
        };
        Asked { index, kind: Kind::Present, expect }
    }

    fn put(&mut self, index: u64) -> Call {
        if let Some(written) = self.written.get_mut(index as usize) {
            *written = true;
        }
        Call::Put { index }
    }

    fn insert(&mut self) -> Call {
        let index = self.present;
        self.present += 1;
        if !self.sorted.is_empty() {
            self.added.insert(self.keys.rank(index, Kind::Present));
        }
        Call::Put { index }
    }

    fn scan(&mut self, rows: usize) -> Call {
        let from = self.rng.next();
        let at = self.sorted.partition_point(|&rank| rank < from);
        let (mut loaded, mut added) =
            (self.sorted[at..].iter().peekable(), self.added.range(from..).peekable());
        let next = || match (loaded.peek(), added.peek()) {
            (Some(a), Some(b)) if a < b => loaded.next().copied(),
            (Some(_), None) => loaded.next().copied(),
            _ => added.next().copied(),
        };
        Call::Scan { from, ranks: std::iter::from_fn(next).take(rows).collect() }
    }

    /// https://github.com/brianfrankcooper/YCSB/wiki/Core-Workloads
    fn ycsb(&mut self, letter: char) -> Call {
        let Some(zipf) = &self.zipf else { return Call::Get(self.mixed(0)) };
        let popular = zipf.scrambled(&mut self.rng);
        let recent = self.present - 1 - zipf.rank(&mut self.rng).min(self.present - 1);
        let percent = self.rng.below(100);
        match letter {
            'a' if percent < 50 => self.put(popular),
            'b' if percent < 5 => self.put(popular),
            'd' | 'e' if percent < 5 => self.insert(),
            'd' => Call::Get(self.there(recent)),
            'e' => {
                let rows = 1 + self.rng.below(100) as usize;
                self.scan(rows)
            }
            'f' if percent < 50 => {
                let asked = self.there(popular);
                self.put(popular);
                Call::Change(asked)
            }
            _ => Call::Get(self.there(popular)),
        }
    }
}

/// The indexes of all keys, in the order of the keys.
fn in_order(keys: &Keys, count: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    order.sort_by_cached_key(|&index| keys.rank(index, Kind::Present));
    order
}

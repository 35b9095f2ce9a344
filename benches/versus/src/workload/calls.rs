//! The calls that a workload makes, with their expected answers.

use super::WorkloadKind;
use crate::keys::{KeyGenerator, KeyPresence, SplitMix64, YcsbZipf};
use std::collections::BTreeSet;

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

impl ExpectedAnswer {
    /// Whether this is the answer: `None` for no value, `Some(None)` for one that was never written.
    pub fn is(self, generation: Option<Option<u64>>) -> bool {
        match (self, generation) {
            (ExpectedAnswer::Nothing, None) => true,
            (ExpectedAnswer::Exactly(wanted), Some(Some(generation))) => generation == wanted,
            (ExpectedAnswer::Before(end), Some(Some(generation))) => generation < end,
            _ => false,
        }
    }
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
    /// Seek to rank `from`, skip rows, and read the next ones. `ranks` are the ranks of the expected rows,
    /// and each must have the expected value.
    Scan { from: u64, skip: usize, ranks: Vec<u64>, expect: ExpectedAnswer },
    /// Count all rows. There must be this many.
    Count { rows: u64 },
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
    /// Calls for a store with `loaded` keys and `added` more, all written before `generation`.
    pub fn new(
        kind: WorkloadKind,
        keys: &'a KeyGenerator,
        loaded: u64,
        added: u64,
        generation: u64,
        rng: SplitMix64,
    ) -> Self {
        let zipf = matches!(kind, WorkloadKind::Ycsb(_)).then(|| YcsbZipf::new(loaded));
        let ordered =
            matches!(kind, WorkloadKind::Range { .. } | WorkloadKind::First { .. } | WorkloadKind::Ycsb('e'));
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

    /// All rows of the store were written in the generation of the calls.
    pub fn all_written(mut self) -> Self {
        self.written.fill(true);
        self
    }

    /// How many calls may be made before their answers are checked. Calls that return many rows are made one
    /// at a time, so that all of them fill the same buffer, as in a program that works on it.
    pub fn calls_at_once(&self) -> u64 {
        let many = matches!(
            self.kind,
            WorkloadKind::First { .. }
                | WorkloadKind::CountRows
                | WorkloadKind::MultiGet { keys: 1000.., .. }
        );
        if many { 1 } else { 64 }
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
            WorkloadKind::MultiGet { missing, keys } => {
                StoreCall::MultiGet((0..keys).map(|_| self.mixed(missing)).collect())
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
            WorkloadKind::Range { skip, rows } => self.scan(skip, rows),
            WorkloadKind::First { skip, rows } => {
                let ranks = self.sorted.iter().copied().skip(skip).take(rows).collect();
                StoreCall::Scan { from: 0, skip, ranks, expect: ExpectedAnswer::Exactly(self.generation) }
            }
            WorkloadKind::CountRows => StoreCall::Count { rows: self.present },
            WorkloadKind::Ycsb(letter) => self.ycsb(letter),
            WorkloadKind::OpenMissing { .. } => StoreCall::Get(self.mixed(100)),
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

    fn scan(&mut self, skip: usize, rows: usize) -> StoreCall {
        let random = self.rng.next();
        let at = self.sorted.partition_point(|&rank| rank < random);
        // A call that skips rows starts early enough to find its rows.
        let at = if skip == 0 { at } else { at.min(self.sorted.len().saturating_sub(skip + rows)) };
        let from = self.sorted.get(at).map_or(random, |&rank| rank.min(random));
        let (mut loaded, mut added) =
            (self.sorted[at..].iter().peekable(), self.added.range(from..).peekable());
        let next = || match (loaded.peek(), added.peek()) {
            (Some(a), Some(b)) if a < b => loaded.next().copied(),
            (Some(_), None) => loaded.next().copied(),
            _ => added.next().copied(),
        };
        let ranks = std::iter::from_fn(next).skip(skip).take(rows).collect();
        StoreCall::Scan { from, skip, ranks, expect: ExpectedAnswer::Before(self.generation + 1) }
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
                self.scan(0, rows)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_skips_rows_begins_early_enough_to_find_all_its_rows() {
        let (keys, loaded) = (KeyGenerator::new(24, 1), 200);
        let sorted = keys.sorted(loaded);
        let kind = WorkloadKind::Range { skip: 150, rows: 40 };
        let mut calls = CallGenerator::new(kind, &keys, loaded, 0, 1, SplitMix64::new(1));
        for _ in 0..100 {
            let StoreCall::Scan { from, skip, ranks, .. } = calls.next_call() else { panic!("not a scan") };
            let first = sorted.partition_point(|&rank| rank < from) + skip;
            assert_eq!(ranks, sorted[first..first + 40]);
        }
    }
}

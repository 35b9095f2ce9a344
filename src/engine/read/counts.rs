//! Counts of the filters' answers, by level.

use crate::filter::Verdict;
use crate::key::Space;
use crate::live::LevelCounts;
use crate::manifest::LEVELS;
use crate::shards::{OwnShard, Shards};
use crate::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// In place of a level: quarantined segments belong to none.
pub(crate) const QUARANTINE: usize = LEVELS;
/// The levels, and quarantine.
const COUNTED: usize = LEVELS + 1;

/// The filter counters of the read path.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct FilterCounts {
    /// Probes of sidecars, by level, except those in `denials`.
    probes: [AtomicU64; COUNTED],
    /// How many of them returned "maybe".
    maybes: [AtomicU64; COUNTED],
    /// How many "maybe"s were wrong: the segment did not have the key.
    false_positives: [AtomicU64; COUNTED],
    /// The wrong "maybe"s of keyspaces other than the default one, since they were last taken.
    of_keyspaces: Mutex<BTreeMap<Space, u64>>,
    /// The latest probes that returned "absent", as [`LevelCounts`].
    denials: AtomicU64,
}

/// The calling thread's filter counters.
#[derive(Clone, Copy)]
pub(crate) struct FilterCounters<'m> {
    pub counts: &'m FilterCounts,
    /// Whether no other thread uses them.
    pub is_alone: bool,
}

impl<'m> From<OwnShard<'m, Arc<FilterCounts>>> for FilterCounters<'m> {
    #[inline(always)]
    fn from(mine: OwnShard<'m, Arc<FilterCounts>>) -> Self {
        FilterCounters { counts: mine.shard, is_alone: mine.is_alone }
    }
}

impl FilterCounters<'_> {
    /// Counts a probe of a filter in a level or in [`QUARANTINE`].
    pub fn probe(self, level: usize, verdict: Verdict) {
        self.count(&self.counts.probes, level, 1);
        if verdict == Verdict::Maybe {
            self.count(&self.counts.maybes, level, 1);
        }
    }

    /// Counts that the last "maybe" was wrong, for this stored key.
    pub fn false_positive(self, level: usize, key: &[u8]) {
        self.count(&self.counts.false_positives, level, 1);
        if let Some(space) = Space::of(key).filter(|space| *space != Space::DEFAULT) {
            // Not counted if another thread has the lock: no thread releases it in a forked process.
            if let Ok(mut of_keyspaces) = self.counts.of_keyspaces.try_lock() {
                *of_keyspaces.entry(space).or_default() += 1;
            }
        }
    }

    /// Counts probes that returned "absent": at most [`LevelCounts::MAX`] in each level.
    #[inline(always)]
    pub fn denials(self, counts: LevelCounts) {
        let denials = LevelCounts::from_bits(self.counts.denials.load(Relaxed)) + counts;
        if self.is_alone && !denials.is_full() {
            self.counts.denials.store(denials.to_bits(), Relaxed)
        } else {
            self.spread_denials(counts)
        }
    }

    /// Moves the denials into the counters of their levels. A shared shard keeps none.
    #[cold]
    fn spread_denials(self, counts: LevelCounts) {
        let before = if self.is_alone { self.counts.denials.swap(0, Relaxed) } else { 0 };
        let counts = counts + LevelCounts::from_bits(before);
        for level in 0..LEVELS {
            self.count(&self.counts.probes, level, counts.of(level));
        }
    }

    fn count(self, levels: &[AtomicU64; COUNTED], level: usize, n: u64) {
        if let Some(counter) = levels.get(level) {
            OwnShard { shard: self.counts, is_alone: self.is_alone }.add(counter, n);
        }
    }
}

/// Sums of [`FilterCounts`], by level, with quarantine last.
#[derive(Default)]
pub(crate) struct FilterSums {
    pub probes: [u64; COUNTED],
    pub maybes: [u64; COUNTED],
    pub false_positives: [u64; COUNTED],
}

/// Adds the wrong "maybe"s of keyspaces other than the default one, since they were last taken, to `sums`.
pub(crate) fn take_false_positives(counts: &Shards<Arc<FilterCounts>>, sums: &mut BTreeMap<Space, u64>) {
    for shard in counts.iter() {
        let taken = std::mem::take(&mut *lock(&shard.of_keyspaces));
        taken.into_iter().for_each(|(space, n)| *sums.entry(space).or_default() += n);
    }
}

impl FilterSums {
    /// The sums of the counters over all threads.
    pub fn of(counts: &Shards<Arc<FilterCounts>>) -> Self {
        let mut sums = FilterSums::default();
        for shard in counts.iter() {
            let denials = LevelCounts::from_bits(shard.denials.load(Relaxed));
            for level in 0..COUNTED {
                let denied = if level == QUARANTINE { 0 } else { denials.of(level) };
                sums.probes[level] += shard.probes[level].load(Relaxed) + denied;
                sums.maybes[level] += shard.maybes[level].load(Relaxed);
                sums.false_positives[level] += shard.false_positives[level].load(Relaxed);
            }
        }
        sums
    }
}

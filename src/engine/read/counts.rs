//! Counts of the filters' answers, by level.

use crate::filter::Verdict;
use crate::key::Space;
use crate::live::LevelCounts;
use crate::manifest::LEVELS;
use crate::shards::{OwnShard, Shards};
use crate::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

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
        if verdict == Verdict::Maybe {
            self.count(&self.counts.maybes, level, 1);
            fence(Release); // Whoever sees the probe also sees the "maybe": it is never taken for "absent".
        }
        self.count(&self.counts.probes, level, 1);
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
        fence(Release); // Whoever sees a probe from here on sees that the denials were taken.
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
    /// The sums of the counters over all threads. While others count, they may be too small, but none of
    /// them, nor the difference of probes and "maybe"s, is ever too large.
    pub fn of(counts: &Shards<Arc<FilterCounts>>) -> Self {
        let mut sums = FilterSums::default();
        for shard in counts.iter() {
            for level in 0..COUNTED {
                sums.false_positives[level] += shard.false_positives[level].load(Relaxed);
                sums.probes[level] += shard.probes[level].load(Relaxed);
            }
            fence(Acquire);
            let denials = LevelCounts::from_bits(shard.denials.load(Relaxed));
            for level in 0..COUNTED {
                sums.probes[level] += if level == QUARANTINE { 0 } else { denials.of(level) };
                sums.maybes[level] += shard.maybes[level].load(Relaxed);
            }
        }
        sums
    }
}

/// The greatest [`FilterSums`] that were shown. A sum may be smaller than the one before, while a thread
/// moves its denials to the counters of their levels, or has counted a "maybe" and not yet its probe. What is
/// shown only rises.
#[derive(Default)]
pub(crate) struct ShownAnswers {
    probes: [AtomicU64; COUNTED],
    negatives: [AtomicU64; COUNTED],
    false_positives: [AtomicU64; COUNTED],
}

/// What filters have answered, by level, with quarantine last.
#[derive(Default)]
pub(crate) struct FilterAnswers {
    pub probes: [u64; COUNTED],
    pub negatives: [u64; COUNTED],
    pub false_positives: [u64; COUNTED],
}

impl ShownAnswers {
    /// What to show now: not less than anybody was shown before.
    pub fn next(&self, counts: &Shards<Arc<FilterCounts>>) -> FilterAnswers {
        let (sums, mut answers) = (FilterSums::of(counts), FilterAnswers::default());
        let raised = |shown: &AtomicU64, sum: u64| shown.fetch_max(sum, Relaxed).max(sum);
        for level in 0..COUNTED {
            let negatives = sums.probes[level].saturating_sub(sums.maybes[level]);
            // In this order: a thread that is shown a negative is also shown its probe.
            answers.probes[level] = raised(&self.probes[level], sums.probes[level]);
            answers.negatives[level] = raised(&self.negatives[level], negatives).min(answers.probes[level]);
            answers.false_positives[level] =
                raised(&self.false_positives[level], sums.false_positives[level]);
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// What a thread has counted in one word moves to the counters of the levels now and then. Somebody who
    /// polls must see neither a moment without it nor one with twice as much.
    #[test]
    fn shown_answers_never_fall_while_several_threads_count() {
        let (counts, shown) = (Shards::<Arc<FilterCounts>>::default(), ShownAnswers::default());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mine = FilterCounters::from(counts.mine());
                    while !is_over.load(Relaxed) {
                        (0..64).for_each(|_| mine.denials(LevelCounts::one(0)));
                        mine.probe(1, Verdict::Maybe);
                    }
                });
            }
            let mut before = shown.next(&counts);
            for _ in 0..200_000 {
                let now = shown.next(&counts);
                let pairs = [
                    (before.probes, now.probes),
                    (before.negatives, now.negatives),
                    (before.false_positives, now.false_positives),
                ];
                let has_risen = pairs.iter().all(|(before, now)| before.iter().zip(now).all(|(b, n)| b <= n));
                let is_possible =
                    now.probes.iter().zip(&now.negatives).all(|(probes, absent)| absent <= probes);
                if !has_risen || !is_possible || now.negatives[1] > 0 {
                    is_over.store(true, Relaxed);
                    panic!("{pairs:?}");
                }
                before = now;
            }
            is_over.store(true, Relaxed);
        });
        let sums = FilterSums::of(&counts);
        assert_eq!(shown.next(&counts).probes, sums.probes);
    }
}

//! The filters of a [`View`](crate::engine::read::view::View), which say where a key may be: all that a
//! missing key needs. Their answers are counted by level.
//!
//! The loops over the runs call only the probes, so the CPU waits for several filter lines at once.

use super::prefixes::PrefixDenials;
use crate::filter::{ProbeHash, Verdict};
use crate::fs::any_fault;
use crate::live::{Fenced, GROUP_RUNS_MAX, LevelCounts, LiveSegment, LiveSet, Run, RunGroup};
use crate::manifest::LEVELS;
use crate::memtable::MemtableFilter;
use crate::shards::{OwnShard, Shards};
use crate::sidecar::Sidecar;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Keys whose filter lines are prefetched together: about the cache misses that a core can have in flight.
pub(crate) const KEYS_AHEAD: usize = 16;
const _: () = assert!(KEYS_AHEAD <= LevelCounts::MAX);

/// How a store uses filters.
#[derive(Clone, Copy)]
pub(crate) struct FilterUse {
    /// Whether filters are used. If not, a key may be anywhere.
    pub on: bool,
    /// The most segments of a view whose filters threads may keep after the view is dropped.
    pub kept_max: usize,
}

/// A key with its hash, which is computed once per operation.
#[derive(Clone, Copy)]
pub(crate) struct HashedKey<'a> {
    pub key: &'a [u8],
    pub hash: u64,
}

/// The filters of one view. They keep no memtable in memory and no segment on disk.
pub(crate) struct Filters {
    pub used: FilterUse,
    /// Of the memtables, newest first.
    memtables: Vec<Arc<MemtableFilter>>,
    groups: Arc<[RunGroup]>,
    any_quarantined: bool,
}

/// The number of a run: its group, and its place there. One word, so that a [`Route`] is returned in
/// registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct RunNumber(u32);

impl RunNumber {
    #[inline(always)]
    fn new(group: usize, run: usize) -> Self {
        RunNumber((group * GROUP_RUNS_MAX + run) as u32)
    }

    pub fn group(self) -> usize {
        self.0 as usize / GROUP_RUNS_MAX
    }

    pub fn in_group(self) -> usize {
        self.0 as usize % GROUP_RUNS_MAX
    }
}

/// The index, plus 1, of the first segment in its level that may have the key; 0 if not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FirstSegment(u32);

impl FirstSegment {
    pub const UNKNOWN: FirstSegment = FirstSegment(0);

    #[inline(always)]
    fn new(number: Option<usize>) -> Self {
        FirstSegment(number.and_then(|number| u32::try_from(number + 1).ok()).unwrap_or(0))
    }

    /// The run and the segment, in the live set whose filters were probed; `None` if unknown.
    #[inline]
    pub fn find(self, run: RunNumber, live: &LiveSet) -> Option<(&Run, &LiveSegment)> {
        let number = self.0.checked_sub(1)?;
        let run = live.run_groups().get(run.group())?.runs().get(run.in_group())?;
        Some((run, live.levels().get(run.level())?.segments().get(number as usize)?))
    }
}

/// Where a key may be, according to the filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// Anywhere. The runs were not probed, because a memtable may have the key.
    Memtables,
    /// In this run or a later one, or in quarantine.
    Runs(RunNumber),
    /// In quarantine.
    Quarantine,
    /// The key is missing.
    Nowhere,
}

impl Filters {
    /// The filters of these memtables and segments.
    pub fn new(used: FilterUse, memtables: Vec<Arc<MemtableFilter>>, live: &LiveSet) -> Self {
        let any_quarantined = !live.quarantined().is_empty();
        Filters { used, memtables, groups: Arc::clone(live.run_groups()), any_quarantined }
    }

    /// Whether threads may keep them after the view is dropped.
    pub fn may_be_kept(&self) -> bool {
        let segments: usize = self.groups.iter().flat_map(RunGroup::runs).map(Run::segments).sum();
        segments <= self.used.kept_max
    }

    /// Where a key may be.
    #[inline(always)]
    pub fn route(&self, key: HashedKey<'_>, counters: FilterCounters<'_>) -> (Route, FirstSegment) {
        if self.memtables_deny(key.hash) {
            self.route_in_segments(key, counters)
        } else {
            (Route::Memtables, FirstSegment::UNKNOWN)
        }
    }

    /// Whether no memtable has the key.
    #[inline(always)]
    pub fn memtables_deny(&self, hash: u64) -> bool {
        self.used.on && self.memtables.iter().all(|table| table.is_unused() || table.denies(hash))
    }

    /// Where a key may be, apart from the memtables.
    #[inline(always)]
    pub fn route_in_segments(
        &self,
        key: HashedKey<'_>,
        counters: FilterCounters<'_>,
    ) -> (Route, FirstSegment) {
        if !self.used.on {
            return (Route::Runs(RunNumber::default()), FirstSegment::UNKNOWN);
        }
        let maybe = self.first_maybe(key, counters);
        // Checked after the probes: missing lines read as zeros.
        if any_fault() {
            let maybe = self.first_faulted(key, maybe.map(|(run, _)| run));
            return (maybe.map_or(self.route_beyond_runs(), Route::Runs), FirstSegment::UNKNOWN);
        }
        match maybe {
            Some((run, segment)) => (Route::Runs(run), segment),
            None => (self.route_beyond_runs(), FirstSegment::UNKNOWN),
        }
    }

    /// The first run that does not deny a key, with its segment.
    #[inline(always)]
    fn first_maybe(
        &self,
        key: HashedKey<'_>,
        counters: FilterCounters<'_>,
    ) -> Option<(RunNumber, FirstSegment)> {
        let hash = ProbeHash::new(key.hash);
        for (number, group) in self.groups.iter().enumerate() {
            let Some(fence) = group.fence(key.key) else { continue };
            let mut denials = LevelCounts::default();
            for (run_number, run) in group.runs().iter().enumerate() {
                let Some(fenced) = run.find(fence, key.key) else { continue };
                if !fenced.denies(&hash) {
                    counters.denials(denials);
                    let segment = FirstSegment::new(run.position_of(fenced, fence, key.key));
                    return Some((RunNumber::new(number, run_number), segment));
                }
                denials += run.count();
            }
            counters.denials(denials);
        }
        None
    }

    #[inline(always)]
    fn route_beyond_runs(&self) -> Route {
        if self.any_quarantined { Route::Quarantine } else { Route::Nowhere }
    }

    /// Whether no memtable and no segment has a key with the prefix of `denials`.
    pub fn deny_prefix(&self, prefix: &[u8], denials: &PrefixDenials<'_>) -> bool {
        if !self.used.on || self.any_quarantined {
            return false;
        }
        if !self.memtables.iter().all(|table| table.is_unused() || denials.deny_memtable(table)) {
            return false;
        }
        let within = self.groups.iter().filter_map(|group| Some((group, group.fences(prefix)?)));
        let segments =
            within.flat_map(|(group, fences)| group.runs().iter().flat_map(move |run| run.within(fences)));
        denials.deny_all(segments.map(|fenced| fenced.sidecar.as_deref()))
    }

    /// The first run that does not deny a key, or whose denial does not count because its map has faulted.
    #[cold]
    fn first_faulted(&self, key: HashedKey<'_>, maybe: Option<RunNumber>) -> Option<RunNumber> {
        let faulted = self.groups.iter().enumerate().find_map(|(number, group)| {
            let fence = group.fence(key.key)?;
            let run = group.runs().iter().position(|run| {
                let sidecar = run.find(fence, key.key).and_then(|fenced| fenced.sidecar.as_deref());
                sidecar.is_some_and(Sidecar::has_faulted)
            })?;
            Some(RunNumber::new(number, run))
        });
        faulted.into_iter().chain(maybe).min()
    }

    /// [`route`](Self::route) for up to [`KEYS_AHEAD`] keys, run by run instead of key by key, so that the
    /// cache misses of all keys overlap.
    pub fn routes(&self, keys: &[HashedKey<'_>], counters: FilterCounters<'_>) -> [Route; KEYS_AHEAD] {
        let mut routes = [Route::Nowhere; KEYS_AHEAD];
        if !self.used.on {
            return [Route::Memtables; KEYS_AHEAD];
        }
        for table in self.memtables.iter().filter(|table| !table.is_unused()) {
            keys.iter().for_each(|key| table.prefetch(key.hash));
        }
        let mut hashes = [ProbeHash::new(0); KEYS_AHEAD];
        for ((route, hash), key) in routes.iter_mut().zip(&mut hashes).zip(keys) {
            *hash = ProbeHash::new(key.hash);
            if !self.memtables_deny(key.hash) {
                *route = Route::Memtables;
            }
        }
        for (number, group) in self.groups.iter().enumerate() {
            let mut fences: [Option<u64>; KEYS_AHEAD] = [None; KEYS_AHEAD];
            for ((fence, route), key) in fences.iter_mut().zip(&routes).zip(keys) {
                *fence = if *route == Route::Nowhere { group.fence(key.key) } else { None };
            }
            for (run_number, run) in group.runs().iter().enumerate() {
                let mut found: [Option<&Fenced>; KEYS_AHEAD] = [None; KEYS_AHEAD];
                for ((found, fence), key) in found.iter_mut().zip(&fences).zip(keys) {
                    *found = fence.and_then(|fence| run.find(fence, key.key));
                    if let Some(sidecar) = found.and_then(|fenced| fenced.sidecar.as_deref()) {
                        sidecar.prefetch(key.hash);
                    }
                }
                let mut denials = LevelCounts::default();
                for (((found, hash), route), fence) in
                    found.iter().zip(&hashes).zip(&mut routes).zip(&mut fences)
                {
                    let Some(fenced) = found else { continue };
                    if fenced.denies(hash) {
                        denials += run.count();
                    } else {
                        (*route, *fence) = (Route::Runs(RunNumber::new(number, run_number)), None);
                    }
                }
                counters.denials(denials);
            }
        }
        let faulted = any_fault(); // As in `route_in_segments`.
        for (route, key) in routes.iter_mut().zip(keys) {
            let maybe = match *route {
                Route::Runs(run) => Some(run),
                Route::Nowhere => None,
                Route::Memtables | Route::Quarantine => continue,
            };
            let maybe = if faulted { self.first_faulted(*key, maybe) } else { maybe };
            *route = maybe.map_or(self.route_beyond_runs(), Route::Runs);
        }
        routes
    }
}

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
    /// The latest probes that returned "absent", as [`LevelCounts`].
    denials: AtomicU64,
}

/// The calling thread's filter counters.
pub(crate) type FilterCounters<'m> = OwnShard<'m, FilterCounts>;

impl FilterCounters<'_> {
    /// Counts a probe of a filter in a level or in [`QUARANTINE`].
    pub fn probe(&self, level: usize, verdict: Verdict) {
        self.count(&self.shard.probes, level, 1);
        if verdict == Verdict::Maybe {
            self.count(&self.shard.maybes, level, 1);
        }
    }

    /// Counts that the last "maybe" was wrong.
    pub fn false_positive(&self, level: usize) {
        self.count(&self.shard.false_positives, level, 1);
    }

    /// Counts probes that returned "absent": at most [`LevelCounts::MAX`] in each level.
    #[inline]
    pub fn denials(&self, counts: LevelCounts) {
        let denials = LevelCounts::from_bits(self.shard.denials.load(Relaxed)) + counts;
        if self.is_alone && !denials.is_full() {
            self.shard.denials.store(denials.to_bits(), Relaxed)
        } else {
            self.spread_denials(counts)
        }
    }

    /// Moves the denials into the counters of their levels. A shared shard keeps none.
    #[cold]
    fn spread_denials(&self, counts: LevelCounts) {
        let before = if self.is_alone { self.shard.denials.swap(0, Relaxed) } else { 0 };
        let counts = counts + LevelCounts::from_bits(before);
        for level in 0..LEVELS {
            self.count(&self.shard.probes, level, counts.of(level));
        }
    }

    fn count(&self, levels: &[AtomicU64; COUNTED], level: usize, n: u64) {
        if let Some(counter) = levels.get(level) {
            self.add(counter, n);
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

impl FilterSums {
    /// The sums of the counters over all threads.
    pub fn of(counts: &Shards<FilterCounts>) -> Self {
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

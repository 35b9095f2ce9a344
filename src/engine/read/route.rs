//! The filters of a [`View`](crate::engine::read::view::View): all that a missing key needs. They tell where a key may be.
//!
//! The loops over the runs call nothing but the probes, so the CPU waits for the filter lines of several runs, and of several keys, at once.

use super::prefixes::PrefixDenials;
use crate::engine::metrics::FilterCounters;
use crate::filter::ProbeHash;
use crate::fs::any_fault;
use crate::live::{Fenced, GROUP_RUNS_MAX, LevelCounts, LiveSegment, LiveSet, Run, RunGroup};
use crate::memtable::MemtableFilter;
use crate::sidecar::Sidecar;
use std::sync::Arc;

/// Keys whose filter lines are prefetched together: about as many cache misses as a core can have outstanding.
pub(crate) const KEYS_AHEAD: usize = 16;
const _: () = assert!(KEYS_AHEAD <= LevelCounts::MAX);

/// How a store uses filters.
#[derive(Clone, Copy)]
pub(crate) struct FilterUse {
    /// Whether filters are used. If not, a key may always be anywhere.
    pub on: bool,
    /// The most segments of a view whose filters threads may keep when the view is gone.
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

/// The first segment that may have a key. Two words with the rest of a [`Route`], so that it is returned in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct FirstMaybe {
    /// The number of its run: that of the run's group, and its own in the group.
    run: u32,
    /// Its number in its level, plus 1; 0 if no filter was asked: then it is any segment of this run or of a later one.
    segment: u32,
}

impl FirstMaybe {
    #[inline(always)]
    fn new(group: usize, run: usize, segment: Option<usize>) -> Self {
        let run = (group * GROUP_RUNS_MAX + run) as u32;
        FirstMaybe { run, segment: segment.map_or(0, |segment| segment as u32 + 1) }
    }

    pub fn group(self) -> usize {
        self.run as usize / GROUP_RUNS_MAX
    }

    pub fn run_in_group(self) -> usize {
        self.run as usize % GROUP_RUNS_MAX
    }

    /// The run and the segment, in the live set whose filters were asked; `None` if none was.
    #[inline]
    pub fn find(self, live: &LiveSet) -> Option<(&Run, &LiveSegment)> {
        let run = live.run_groups().get(self.group())?.runs().get(self.run_in_group())?;
        let at = self.segment.checked_sub(1)?;
        Some((run, live.levels().get(run.level())?.segments().get(at as usize)?))
    }
}

/// Where a key may be, according to the filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// Anywhere. The runs have not been asked, because a memtable may have the key.
    Memtables,
    /// In this segment or in a later run, or in quarantine.
    Runs(FirstMaybe),
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

    /// Whether threads may keep them when the view is gone.
    pub fn may_be_kept(&self) -> bool {
        let segments: usize = self.groups.iter().flat_map(RunGroup::runs).map(Run::segments).sum();
        segments <= self.used.kept_max
    }

    /// Where a key may be.
    #[inline(always)]
    pub fn route(&self, key: HashedKey<'_>, counters: FilterCounters<'_>) -> Route {
        match self.memtables_deny(key.hash) {
            true => self.route_in_segments(key, counters),
            false => Route::Memtables,
        }
    }

    /// Whether no memtable has the key.
    #[inline(always)]
    pub fn memtables_deny(&self, hash: u64) -> bool {
        self.used.on && self.memtables.iter().all(|table| table.is_unused() || table.denies(hash))
    }

    /// Where a key may be, besides the memtables.
    #[inline(always)]
    pub fn route_in_segments(&self, key: HashedKey<'_>, counters: FilterCounters<'_>) -> Route {
        if !self.used.on {
            return Route::Runs(FirstMaybe::default());
        }
        let maybe = self.first_maybe(key, counters);
        // Checked after the probes: missing lines read as zeros.
        let maybe = if any_fault() { self.first_faulted(key, maybe) } else { maybe };
        maybe.map_or(self.route_beyond_runs(), Route::Runs)
    }

    /// The first segment that does not deny a key.
    #[inline(always)]
    fn first_maybe(&self, key: HashedKey<'_>, counters: FilterCounters<'_>) -> Option<FirstMaybe> {
        let hash = ProbeHash::new(key.hash);
        for (number, group) in self.groups.iter().enumerate() {
            let Some(fence) = group.fence(key.key) else { continue };
            let mut denials = LevelCounts::default();
            for (run_number, run) in group.runs().iter().enumerate() {
                let Some(fenced) = run.find(fence, key.key) else { continue };
                if !fenced.denies(&hash) {
                    counters.denials(denials);
                    let segment = run.position_of(fenced, fence, key.key);
                    return Some(FirstMaybe::new(number, run_number, segment));
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

    /// Whether no memtable and no segment has a key with the prefix that `denials` asks for.
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

    /// The first segment that does not deny a key, or whose denial does not count because the map of its filter has faulted.
    #[cold]
    fn first_faulted(&self, key: HashedKey<'_>, maybe: Option<FirstMaybe>) -> Option<FirstMaybe> {
        let faulted = self.groups.iter().enumerate().find_map(|(number, group)| {
            let fence = group.fence(key.key)?;
            group.runs().iter().enumerate().find_map(|(run_number, run)| {
                let fenced = run.find(fence, key.key)?;
                let has_faulted = fenced.sidecar.as_deref().is_some_and(Sidecar::has_faulted);
                let segment = run.position_of(fenced, fence, key.key);
                has_faulted.then(|| FirstMaybe::new(number, run_number, segment))
            })
        });
        faulted.into_iter().chain(maybe).min()
    }

    /// [`route`](Self::route) of up to [`KEYS_AHEAD`] keys, run by run instead of key by key, so that the cache misses of all keys overlap.
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
                for ((((found, hash), route), fence), key) in
                    found.iter().zip(&hashes).zip(&mut routes).zip(&mut fences).zip(keys)
                {
                    let (Some(fenced), Some(of_key)) = (found, *fence) else { continue };
                    if fenced.denies(hash) {
                        denials += run.count();
                    } else {
                        let segment = run.position_of(fenced, of_key, key.key);
                        (*route, *fence) = (Route::Runs(FirstMaybe::new(number, run_number, segment)), None);
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

//! The filters of a [`View`](crate::engine::read::view::View), which say where a key may be: all that a
//! missing key needs.
//!
//! 1. [`FirstProbes`], a loop compiled for each instruction set, makes the first probes of all runs of a
//!    group. Mostly all of them deny.
//! 2. Where one does not, or a fence is not enough to tell the segment, [`Filters::settle`] goes on.

use super::counts::FilterCounters;
use super::prefixes::PrefixDenials;
use super::route::{FirstSegment, HashedKey, QuickLook, Route, Routed, RunNumber};
use crate::filter::{Isa, ProbeHash, ProbeLoop, Probes};
use crate::fs::any_fault;
use crate::live::{Fenced, LevelCounts, LiveSet, Run, RunGroup, RunGroups, Sought};
use crate::memtable::{Memtable, MemtableFilter};
use crate::sidecar::Sidecar;
use std::iter;
use std::sync::Arc;

/// Keys whose filter lines are prefetched together: about the cache misses that a core can have in flight.
pub(crate) const KEYS_AHEAD: usize = 16;
const _: () = assert!(KEYS_AHEAD <= LevelCounts::MAX);

/// How a store uses filters.
#[derive(Clone, Copy)]
pub(crate) struct FilterUse {
    /// Whether filters are used. If not, a key may be anywhere.
    pub on: bool,
    /// The instruction set of the probes.
    pub isa: Isa,
    /// The most segments of a view whose filters threads may keep after the view is dropped.
    pub kept_max: usize,
}

/// The filters of one view. They keep no memtable in memory and no segment on disk.
pub(crate) struct Filters {
    pub used: FilterUse,
    /// Of the memtable that accepts writes.
    active: Arc<MemtableFilter>,
    /// Of the full memtables, newest first.
    full: Box<[Arc<MemtableFilter>]>,
    groups: Arc<RunGroups>,
    any_quarantined: bool,
}

impl Filters {
    /// The filters of these segments, the active memtable, and the full ones, newest first.
    pub fn new<'m>(
        used: FilterUse,
        active: &Memtable,
        full: impl Iterator<Item = &'m Arc<Memtable>>,
        live: &LiveSet,
    ) -> Self {
        Filters {
            used,
            active: Arc::clone(active.filter()),
            full: full.map(|table| Arc::clone(table.filter())).collect(),
            groups: Arc::clone(live.run_groups()),
            any_quarantined: !live.quarantined().is_empty(),
        }
    }

    /// The filters of the memtables that have entries.
    fn memtables(&self) -> impl Iterator<Item = &MemtableFilter> {
        let tables = iter::once(&self.active).chain(&self.full).map(|table| &**table);
        tables.filter(|table| !table.is_unused())
    }

    /// Whether threads may keep them after the view is dropped.
    pub fn may_be_kept(&self) -> bool {
        let segments: usize = self.groups.iter().flat_map(RunGroup::runs).map(Run::segments).sum();
        segments <= self.used.kept_max
    }

    /// Where a key may be.
    pub fn route(&self, key: HashedKey<'_>, counters: FilterCounters<'_>) -> (Route, FirstSegment) {
        self.routed(key.key, key.hash, counters).parts()
    }

    /// Where a key may be, apart from the memtables.
    pub fn route_in_segments(
        &self,
        key: HashedKey<'_>,
        counters: FilterCounters<'_>,
    ) -> (Route, FirstSegment) {
        if self.used.on {
            self.routed_in_segments(key.key, key.hash, counters).parts()
        } else {
            (Route::Runs(RunNumber::default()), FirstSegment::UNKNOWN)
        }
    }

    /// Whether no memtable has the key.
    #[inline(always)]
    pub fn memtables_deny(&self, hash: u64) -> bool {
        self.used.on && (self.active.is_unused() && self.full.is_empty() || self.used_memtables_deny(hash))
    }

    #[inline(never)]
    fn used_memtables_deny(&self, hash: u64) -> bool {
        self.memtables().all(|table| table.denies(hash))
    }

    /// [`route`](Self::route) in registers.
    fn routed(&self, key: &[u8], hash: u64, counters: FilterCounters<'_>) -> Routed {
        if self.memtables_deny(hash) {
            self.routed_in_segments(key, hash, counters)
        } else {
            Routed::MEMTABLES
        }
    }

    fn routed_in_segments(&self, key: &[u8], hash: u64, counters: FilterCounters<'_>) -> Routed {
        for (number, group) in self.groups.of(key, 0) {
            let Some(fence) = group.fence(key) else { continue };
            let (left, denials) = self.used.isa.run(FirstProbes { group, fence }, hash);
            counters.denials(denials);
            if left > 0 {
                return self.settle_in((number, group), left, key, hash, counters);
            }
        }
        self.beyond_runs(key)
    }

    /// Looks only for what is the most frequent: that the first probes of a single group deny the key.
    #[inline(always)]
    pub fn quick_look(&self, key: &[u8], hash: u64, counters: FilterCounters<'_>) -> QuickLook {
        let [group] = &**self.groups else { return QuickLook::UNTRIED };
        if !self.memtables_deny(hash) {
            return QuickLook::UNTRIED;
        }
        if let Some(fence) = group.fence(key) {
            let (left, denials) = self.used.isa.run(FirstProbes { group, fence }, hash);
            counters.denials(denials);
            if left > 0 {
                return QuickLook(left as u32);
            }
        }
        // Checked after the probes: see `beyond_runs`.
        if any_fault() || self.any_quarantined { QuickLook::BEYOND_RUNS } else { QuickLook::NOWHERE }
    }

    /// The route of a key after a quick look that did not find it to be missing.
    #[inline(always)]
    pub fn routed_after(
        &self,
        look: QuickLook,
        key: &[u8],
        hash: u64,
        counters: FilterCounters<'_>,
    ) -> Routed {
        let ([group], Some(left)) = (&**self.groups, look.left()) else {
            return self.routed_otherwise(look, key, hash, counters);
        };
        self.settle_in((0, group), left, key, hash, counters)
    }

    /// The route of a key that the first probes deny, but for the last `left` runs of a group.
    #[inline(always)]
    fn settle_in(
        &self,
        (number, group): (usize, &RunGroup),
        left: usize,
        key: &[u8],
        hash: u64,
        counters: FilterCounters<'_>,
    ) -> Routed {
        let at = group.runs().len().saturating_sub(left);
        if let Some(run) = group.runs().get(at)
            && let Some(fence) = group.fence(key)
            && let Some(fenced) = run.find(fence, key)
        {
            if fenced.denies_wholly(hash) {
                counters.denials(run.count());
            } else if any_fault() {
                return self.routed_despite_faults(key, Some(RunNumber::new(number, at)));
            } else {
                let first = FirstSegment::new(run.position_of(fenced, fence, key));
                return Routed::runs(RunNumber::new(number, at), first);
            }
        }
        self.settle(key, hash, RunNumber::new(number, at + 1), counters)
    }

    #[inline(never)]
    fn routed_otherwise(
        &self,
        look: QuickLook,
        key: &[u8],
        hash: u64,
        counters: FilterCounters<'_>,
    ) -> Routed {
        match look {
            QuickLook::NOWHERE => Routed::NOWHERE,
            QuickLook::BEYOND_RUNS => self.beyond_runs(key),
            _ => self.routed(key, hash, counters),
        }
    }

    /// The route of a key that all runs before this one deny.
    #[inline(never)]
    fn settle(&self, key: &[u8], hash: u64, from: RunNumber, counters: FilterCounters<'_>) -> Routed {
        let probe_hash = ProbeHash::new(hash);
        for (number, group) in self.groups.of(key, from.group()) {
            let skipped = if number == from.group() { from.in_group() } else { 0 };
            let Some(fence) = group.fence(key) else { continue };
            let mut denials = LevelCounts::default();
            for (run_number, run) in group.runs().iter().enumerate().skip(skipped) {
                let Some(fenced) = run.find(fence, key) else { continue };
                if !fenced.denies(&probe_hash) {
                    counters.denials(denials);
                    let run_number = RunNumber::new(number, run_number);
                    if any_fault() {
                        return self.routed_despite_faults(key, Some(run_number));
                    }
                    return Routed::runs(run_number, FirstSegment::new(run.position_of(fenced, fence, key)));
                }
                denials += run.count();
            }
            counters.denials(denials);
        }
        self.beyond_runs(key)
    }

    /// The route of a key that all runs deny.
    #[inline(never)]
    fn beyond_runs(&self, key: &[u8]) -> Routed {
        // Checked after the probes: missing lines read as zeros.
        if any_fault() { self.routed_despite_faults(key, None) } else { self.routed_beyond_runs() }
    }

    fn routed_beyond_runs(&self) -> Routed {
        if self.any_quarantined { Routed::QUARANTINE } else { Routed::NOWHERE }
    }

    /// The route of a key, given the first run that does not deny it.
    #[cold]
    fn routed_despite_faults(&self, key: &[u8], maybe: Option<RunNumber>) -> Routed {
        match self.first_faulted(key, maybe) {
            Some(run) => Routed::runs(run, FirstSegment::UNKNOWN),
            None => self.routed_beyond_runs(),
        }
    }

    /// Whether no memtable and no segment has a key with the prefix of `denials`.
    pub fn deny_prefix(&self, prefix: &[u8], denials: &PrefixDenials<'_>) -> bool {
        if !self.used.on || self.any_quarantined {
            return false;
        }
        if !self.memtables().all(|table| denials.deny_memtable(table)) {
            return false;
        }
        let within = self.groups.iter().filter_map(|group| Some((group, group.fences(prefix)?)));
        let segments =
            within.flat_map(|(group, fences)| group.runs().iter().flat_map(move |run| run.within(fences)));
        denials.deny_all(segments.map(|fenced| fenced.sidecar.as_deref()))
    }

    /// The first run that does not deny a key, or whose denial does not count because its map has faulted.
    #[cold]
    fn first_faulted(&self, key: &[u8], maybe: Option<RunNumber>) -> Option<RunNumber> {
        let faulted = self.groups.iter().enumerate().find_map(|(number, group)| {
            let fence = group.fence(key)?;
            let run = group.runs().iter().position(|run| {
                let sidecar = run.find(fence, key).and_then(|fenced| fenced.sidecar.as_deref());
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
        for table in self.memtables() {
            keys.iter().for_each(|key| table.prefetch(key.hash));
        }
        let mut hashes = [ProbeHash::new(0); KEYS_AHEAD];
        for ((route, hash), key) in routes.iter_mut().zip(&mut hashes).zip(keys) {
            *hash = ProbeHash::new(key.hash);
            if !self.memtables_deny(key.hash) {
                *route = Route::Memtables;
            }
        }
        for (number, group) in self.groups.of_any(keys.iter().map(|key| key.key)) {
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
            let maybe = if faulted { self.first_faulted(key.key, maybe) } else { maybe };
            *route = maybe.map_or(self.routed_beyond_runs().parts().0, Route::Runs);
        }
        routes
    }
}

/// Makes the first probes of a group's runs until one does not deny the hash, or the fence does not tell
/// which segment to probe. Returns the number of runs that are left from there on, and the denials before.
///
/// It calls nothing, so all is kept in registers, and the CPU waits for the lines of several runs at once.
struct FirstProbes<'a> {
    group: &'a RunGroup,
    fence: u64,
}

impl ProbeLoop for FirstProbes<'_> {
    type Output = (usize, LevelCounts);

    #[inline(always)]
    fn run<P: Probes>(self, probes: P, hash: u64) -> (usize, LevelCounts) {
        let hash = probes.hash(ProbeHash::new(hash));
        let (mut runs, mut denials) = (self.group.runs().iter(), LevelCounts::default());
        while let Some(run) = runs.next() {
            match run.seek(self.fence) {
                Sought::In(fenced) if fenced.denies_first(probes, &hash) => denials += run.count(),
                Sought::Nowhere => {}
                _ => return (runs.len() + 1, denials),
            }
        }
        (0, denials)
    }
}

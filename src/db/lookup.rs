//! The lookup of one key in a [`View`].
//!
//! 1. [`Lookup::route`] asks the filters: those of the memtables, then those of the segments whose key range includes the key, newest run
//!    first, down to the first "maybe". A key that all of them deny is missing. The loop over the runs calls nothing but the probes, so the
//!    CPU waits for the filter lines of several runs at once.
//! 2. If a memtable may have the key, the memtables are searched, newest first. The first entry found is the answer.
//! 3. Otherwise segments are read, from the run of the first "maybe" on.
//! 4. Segments in quarantine belong to no level, so they are searched last; the newest entry wins.

use super::metrics::FilterCounters;
use super::view::View;
use crate::error::Result;
use crate::filter::{ProbeHash, Verdict};
use crate::fs::any_fault;
use crate::key::{Entry, EntryKind, Seq, Value};
use crate::manifest::{LEVELS, LevelCounts, LiveSegment, Run};
use crate::memtable::Memtable;
use crate::sidecar::Sidecar;

/// A key with its hash, which is computed once per operation.
#[derive(Clone, Copy)]
pub(crate) struct HashedKey<'a> {
    pub key: &'a [u8],
    pub hash: u64,
}

/// A key to look up in a view, as of a sequence number.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub view: &'a View,
    pub seq: Seq,
    pub key: HashedKey<'a>,
    /// Whether filters are used.
    pub filters: bool,
    /// Where the answers of filters are counted.
    pub counters: FilterCounters<'a>,
}

/// A run, by the number of its group and its own in the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RunNumber {
    pub group: usize,
    pub run: usize,
}

/// Where a key may be, according to the filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// In a memtable. The runs have not been asked.
    Memtables,
    /// In this run or a later one.
    Runs(RunNumber),
    /// Not in a memtable, nor in a run.
    Nowhere,
}

impl Lookup<'_> {
    /// The newest value of the key.
    #[inline(always)]
    pub fn get(&self) -> Result<Option<Value>> {
        self.get_on(self.route())
    }

    /// The newest value of the key, given its route.
    #[inline(always)]
    pub fn get_on(&self, route: Route) -> Result<Option<Value>> {
        if route == Route::Nowhere && self.view.live.quarantined().is_empty() {
            return Ok(None);
        }
        let this = *self; // Only the copy needs memory.
        this.read(route)
    }

    #[inline(never)]
    fn read(&self, route: Route) -> Result<Option<Value>> {
        let in_memory = if route == Route::Memtables { self.get_from_memtables() } else { None };
        if in_memory.is_some() && !self.view.logs_reach_back {
            return Ok(in_memory.and_then(Entry::visible));
        }
        let from = if route == Route::Memtables { self.route_in_runs() } else { route };
        Ok(newer(self.newest_in_segments(from)?, in_memory).and_then(Entry::visible))
    }

    /// Asks the filters where the key may be.
    #[inline(always)]
    pub fn route(&self) -> Route {
        if self.memtables_deny() { self.route_in_runs() } else { Route::Memtables }
    }

    /// Whether no memtable has the key, according to their filters.
    #[inline(always)]
    pub fn memtables_deny(&self) -> bool {
        let View { active, immutable, .. } = self.view;
        let denied = |table: &Memtable| self.filters && table.denies(self.key.hash);
        (active.is_unused() || denied(active)) && immutable.iter().all(|table| denied(table))
    }

    fn get_from_memtables(&self) -> Option<Entry> {
        let HashedKey { key, hash } = self.key;
        let mut tables = std::iter::once(&self.view.active).chain(&self.view.immutable);
        match self.filters {
            true => tables.find_map(|table| table.get(key, hash, self.seq)),
            false => tables.find_map(|table| table.search(key, self.seq)),
        }
    }

    /// Asks the filters of the runs, newest first, down to the first run that may hold the key.
    #[inline(always)]
    fn route_in_runs(&self) -> Route {
        if !self.filters {
            return Route::Runs(RunNumber::default());
        }
        let (key, hash) = (self.key.key, ProbeHash::new(self.key.hash));
        for (number, group) in self.view.live.run_groups().iter().enumerate() {
            let Some(fence) = group.fence(key) else { continue };
            let mut denials = LevelCounts::default();
            for (run_number, run) in group.runs().iter().enumerate() {
                let Some(fenced) = run.find(fence, key) else { continue };
                if !fenced.denies(&hash) {
                    self.counters.denials(denials);
                    return Route::Runs(RunNumber { group: number, run: run_number });
                }
                denials += run.count();
            }
            self.counters.denials(denials);
        }
        // Checked after the probes: missing lines read as zeros.
        if any_fault() { self.first_faulted() } else { Route::Nowhere }
    }

    /// The first run whose filter may have denied the key because its map has faulted.
    #[cold]
    pub fn first_faulted(&self) -> Route {
        let is_bad = |run: &Run, fence| {
            let sidecar = run.find(fence, self.key.key).and_then(|fenced| fenced.sidecar.as_deref());
            sidecar.is_some_and(Sidecar::has_faulted)
        };
        let run = self.view.live.run_groups().iter().enumerate().find_map(|(number, group)| {
            let fence = group.fence(self.key.key)?;
            let run = group.runs().iter().position(|run| is_bad(run, fence))?;
            Some(RunNumber { group: number, run })
        });
        run.map_or(Route::Nowhere, Route::Runs)
    }

    /// The newest entry in a segment, given the first run that may hold the key.
    fn newest_in_segments(&self, from: Route) -> Result<Option<Entry>> {
        let mut best = match from {
            Route::Runs(from) => self.newest_in_runs(from)?,
            Route::Memtables | Route::Nowhere => None,
        };
        for segment in self.view.live.suspects(self.key.key) {
            if best.as_ref().is_some_and(|best| best.seq >= segment.meta.max_seq) {
                break; // The remaining segments are older still.
            }
            // A damaged block returns its error, never an older entry from elsewhere.
            best = newer(best, self.read_segment(segment, usize::from(segment.meta.level) % LEVELS)?);
        }
        Ok(best)
    }

    /// The newest entry in run `from` or a later one.
    fn newest_in_runs(&self, from: RunNumber) -> Result<Option<Entry>> {
        let mut best: Option<Entry> = None;
        let mut skip = from.run;
        for group in self.view.live.run_groups().iter().skip(from.group) {
            let runs = group.runs().iter().skip(std::mem::take(&mut skip));
            let Some(fence) = group.fence(self.key.key) else { continue };
            for run in runs {
                let Some(segment) = run.find_segment(fence, self.key.key) else { continue };
                if let Some(found) = &best {
                    // Runs are ordered newest first, except in a level 0 that `repair` filled with segments of any age.
                    let level0_may_be_newer = run.level() == 0 && segment.meta.max_seq > found.seq;
                    if !level0_may_be_newer {
                        return Ok(best);
                    }
                }
                best = newer(best, self.read_segment(segment, run.level())?);
            }
        }
        Ok(best)
    }

    /// Whether the key may have a value, from memory alone: "absent" is certain, and no segment is read.
    #[inline(always)]
    pub fn may_contain(&self) -> Verdict {
        self.may_contain_on(self.route())
    }

    /// [`may_contain`](Self::may_contain), given the route.
    #[inline(always)]
    pub fn may_contain_on(&self, route: Route) -> Verdict {
        match route {
            Route::Nowhere if self.view.live.quarantined().is_empty() => Verdict::Absent,
            Route::Runs(_) => Verdict::Maybe,
            Route::Nowhere | Route::Memtables => {
                let this = *self;
                this.search_memory(route)
            }
        }
    }

    #[inline(never)]
    fn search_memory(&self, mut route: Route) -> Verdict {
        if route == Route::Memtables {
            match self.get_from_memtables().map(|entry| entry.kind) {
                Some(EntryKind::Put) => return Verdict::Maybe,
                Some(EntryKind::Tombstone) if !self.view.logs_reach_back => return Verdict::Absent,
                Some(EntryKind::Tombstone) | None => route = self.route_in_runs(),
            }
        }
        let denies =
            |s: &LiveSegment| self.ask(s, usize::from(s.meta.level) % LEVELS) == Some(Verdict::Absent);
        match route == Route::Nowhere && self.view.live.suspects(self.key.key).all(denies) {
            true => Verdict::Absent,
            false => Verdict::Maybe,
        }
    }

    /// The verdict of a segment's filter. `None` if filters are off or the segment has no sidecar that can be trusted (I1).
    fn ask(&self, segment: &LiveSegment, level: usize) -> Option<Verdict> {
        let sidecar = segment.sidecar.as_deref().filter(|_| self.filters)?;
        let verdict = sidecar.ask(self.key.hash)?;
        self.counters.probe(level, verdict);
        Some(verdict)
    }

    /// What a segment holds for the key, read unless its filter says "absent".
    fn read_segment(&self, segment: &LiveSegment, level: usize) -> Result<Option<Entry>> {
        let verdict = self.ask(segment, level);
        if verdict == Some(Verdict::Absent) {
            return Ok(None);
        }
        let entry = segment.file.get(self.key.key)?;
        if entry.is_none() && verdict == Some(Verdict::Maybe) {
            self.counters.false_positive(level);
        }
        Ok(entry)
    }
}

/// The entry that was written later; the first one if both are the same or missing.
#[inline]
fn newer(first: Option<Entry>, second: Option<Entry>) -> Option<Entry> {
    if second.as_ref().map(|e| e.seq) > first.as_ref().map(|e| e.seq) { second } else { first }
}

//! The lookup of one key in a [`View`], once the filters have said where the key may be.
//!
//! 1. If a memtable may have the key, the memtables are searched, newest first. The first entry found wins.
//! 2. Otherwise segments are read, newest run first, starting at the run of the first "maybe".
//! 3. Quarantined segments belong to no level, so they are searched last, and the newest entry wins.

use super::route::{FilterCounters, FirstSegment, HashedKey, QUARANTINE, Route, RunNumber};
use super::view::View;
use crate::engine::clock::ReadTime;
use crate::error::Result;
use crate::filter::Verdict;
use crate::key::{Entry, Seq, Value};
use crate::live::{LiveSegment, Run};
use crate::sidecar::Sidecar;

/// A key to look up in a view, as of a sequence number and a moment.
pub(crate) struct Lookup<'a> {
    pub view: &'a View,
    pub seq: Seq,
    pub time: ReadTime<'a>,
    pub key: HashedKey<'a>,
    /// The route's, if there is one.
    pub first: FirstSegment,
    /// Where the filters' answers are counted.
    pub counters: FilterCounters<'a>,
}

impl Lookup<'_> {
    /// The newest value of the key.
    #[inline]
    pub fn get(&self, route: Route) -> Result<Option<Value>> {
        self.find(route, |entry| entry.value)
    }

    /// What `take` takes of the key's newest entry, if it has a value.
    #[inline]
    pub fn find<T>(&self, route: Route, take: impl FnOnce(Entry) -> T) -> Result<Option<T>> {
        match route {
            Route::Nowhere => Ok(None),
            Route::Runs(from) if self.view.live.quarantined().is_empty() => {
                self.visible(self.newest_in_runs(from)?, take)
            }
            _ => self.find_in_all(route, take),
        }
    }

    /// [`find`](Self::find) for a key that may be in a memtable or in quarantine.
    #[inline(never)]
    fn find_in_all<T>(&self, route: Route, take: impl FnOnce(Entry) -> T) -> Result<Option<T>> {
        let (in_memory, route) = self.search_memtables(route);
        if in_memory.is_some() && !self.view.logs_reach_back {
            return self.visible(in_memory, take);
        }
        let in_runs = match route {
            Route::Runs(from) => self.newest_in_runs(from)?,
            _ => None,
        };
        let found = self.newest_in_quarantine(in_runs)?;
        self.visible(newer(found, in_memory), take)
    }

    /// What `take` takes of the newest entry, if that has a value that has not expired, and no range
    /// tombstone deletes it.
    #[inline]
    fn visible<T>(&self, newest: Option<Entry>, take: impl FnOnce(Entry) -> T) -> Result<Option<T>> {
        let Some(entry) = newest.filter(|entry| self.time.shows(entry.kind)) else { return Ok(None) };
        if self.view.has_ranges() && self.view.deletes(self.seq, self.key.key, entry.seq)? {
            return Ok(None);
        }
        Ok(Some(take(entry)))
    }

    /// Starts to read what [`get`](Self::get) reads first, unless it is in memory.
    pub fn will_need(&self, route: Route) {
        if let Route::Runs(from) = route
            && let Some((_, segment)) = self.first_segment(from)
        {
            segment.file.will_need(self.key.key);
        }
    }

    /// Whether the key may have a value, from memory alone: "absent" is certain. Reads no segment.
    pub fn may_contain(&self, route: Route) -> Verdict {
        let (in_memory, route) = self.search_memtables(route);
        match (in_memory.map(|entry| entry.kind), route) {
            (Some(kind), _) if self.time.shows(kind) => Verdict::Maybe,
            (Some(_), _) if !self.view.logs_reach_back => Verdict::Absent,
            (_, Route::Nowhere) => Verdict::Absent,
            (_, Route::Quarantine) => self.ask_quarantine(),
            (_, Route::Runs(from)) => self.ask_runs(from),
            (_, Route::Memtables) => Verdict::Maybe,
        }
    }

    /// The verdict on a key that the filter of this run does not deny: "absent" if no row is visible any more
    /// in each segment that may have the key. Whichever has its newest entry, that has expired.
    fn ask_runs(&self, from: RunNumber) -> Verdict {
        let (live, now) = (&self.view.live, self.time.moment());
        if !self.first_segment(from).is_some_and(|(_, segment)| segment.meta.has_expired(now)) {
            return Verdict::Maybe;
        }
        for (number, group) in live.run_groups().of(self.key.key, from.group()) {
            let skipped = if number == from.group() { from.in_group() + 1 } else { 0 };
            let Some(fence) = group.fence(self.key.key) else { continue };
            let may_have = |run: &Run| {
                let Some(segment) = live.segment_of(run, fence, self.key.key) else { return false };
                !segment.meta.has_expired(now) && self.ask(segment, run.level()) != Some(Verdict::Absent)
            };
            if group.runs().iter().skip(skipped).any(may_have) {
                return Verdict::Maybe;
            }
        }
        self.ask_quarantine()
    }

    /// The entry in a memtable, if the route leads there, and the route in the segments.
    fn search_memtables(&self, route: Route) -> (Option<Entry>, Route) {
        if route != Route::Memtables {
            return (None, route);
        }
        let HashedKey { key, hash } = self.key;
        let mut tables = self.view.memtables();
        let found = if self.view.filters.used.on {
            tables.find_map(|table| table.get(key, hash, self.seq))
        } else {
            tables.find_map(|table| table.search(key, self.seq))
        };
        if found.is_some() && !self.view.logs_reach_back {
            (found, Route::Nowhere)
        } else {
            (found, self.view.filters.route_in_segments(self.key, self.counters).0)
        }
    }

    /// The segment of run `from` that may have the key.
    #[inline]
    fn first_segment(&self, from: RunNumber) -> Option<(&Run, &LiveSegment)> {
        let live = &self.view.live;
        self.first.find(from, live).or_else(|| {
            let group = live.run_groups().get(from.group())?;
            let run = group.runs().get(from.in_group())?;
            Some((run, live.segment_of(run, group.fence(self.key.key)?, self.key.key)?))
        })
    }

    /// The newest entry in run `from` or a later one.
    #[inline]
    fn newest_in_runs(&self, from: RunNumber) -> Result<Option<Entry>> {
        let Some((run, segment)) = self.first_segment(from) else {
            return self.newest_after(from, None);
        };
        // The filter said "maybe" where the route begins, so it is not probed again.
        let verdict = if self.has_answered(segment) {
            self.counted(Verdict::Maybe, run.level())
        } else {
            self.ask(segment, run.level())
        };
        match self.read(segment, run.level(), verdict)? {
            Some(found) if run.level() > 0 => Ok(Some(found)),
            found => self.newest_after(from, found),
        }
    }

    /// The newest entry in the runs after `first`, which has `best`.
    #[inline(never)]
    fn newest_after(&self, first: RunNumber, mut best: Option<Entry>) -> Result<Option<Entry>> {
        for (number, group) in self.view.live.run_groups().of(self.key.key, first.group()) {
            let from = if number == first.group() { first.in_group() + 1 } else { 0 };
            let Some(fence) = group.fence(self.key.key) else { continue };
            for run in group.runs().iter().skip(from) {
                if best.is_some() && run.level() > 0 {
                    return Ok(best);
                }
                let Some(segment) = self.view.live.segment_of(run, fence, self.key.key) else { continue };
                // Runs are ordered newest first, except in a level 0 that `repair` filled in any order.
                if best.as_ref().is_some_and(|found| segment.meta.max_seq <= found.seq) {
                    return Ok(best);
                }
                let found = self.read(segment, run.level(), self.ask(segment, run.level()))?;
                if found.is_some() && run.level() > 0 {
                    return Ok(found); // `best` is empty.
                }
                best = newer(best, found);
            }
        }
        Ok(best)
    }

    /// The newer of `best`, found in the runs, and the entry in quarantine. A damaged block returns its
    /// error, never an older entry from elsewhere.
    fn newest_in_quarantine(&self, mut best: Option<Entry>) -> Result<Option<Entry>> {
        for segment in self.view.live.suspects(self.key.key) {
            if best.as_ref().is_some_and(|best| best.seq >= segment.meta.max_seq) {
                break; // The remaining segments are older still.
            }
            best = newer(best, self.read(segment, QUARANTINE, self.ask(segment, QUARANTINE))?);
        }
        Ok(best)
    }

    fn ask_quarantine(&self) -> Verdict {
        let denies = |s: &LiveSegment| self.ask(s, QUARANTINE) == Some(Verdict::Absent);
        if self.view.live.suspects(self.key.key).all(denies) { Verdict::Absent } else { Verdict::Maybe }
    }

    /// A segment's filter's verdict. `None` if filters are off or no sidecar can be trusted (I1).
    fn ask(&self, segment: &LiveSegment, level: usize) -> Option<Verdict> {
        let sidecar = segment.sidecar.as_deref().filter(|_| self.view.filters.used.on)?;
        self.counted(sidecar.ask(self.key.hash)?, level)
    }

    /// Whether the route used the segment's filter, which then said "maybe" if the route starts there.
    fn has_answered(&self, segment: &LiveSegment) -> bool {
        self.view.filters.used.on && segment.sidecar.as_deref().is_some_and(Sidecar::is_whole)
    }

    fn counted(&self, verdict: Verdict, level: usize) -> Option<Verdict> {
        self.counters.probe(level, verdict);
        Some(verdict)
    }

    /// What a segment holds for the key. Reads it unless its filter says "absent".
    fn read(&self, segment: &LiveSegment, level: usize, verdict: Option<Verdict>) -> Result<Option<Entry>> {
        if verdict == Some(Verdict::Absent) {
            return Ok(None);
        }
        let entry = segment.file.get(self.key.key, self.key.hash)?;
        if entry.is_none() && verdict == Some(Verdict::Maybe) {
            self.counters.false_positive(level, self.key.key);
        }
        Ok(entry)
    }
}

/// The newer of two entries; the first one if both are the same or missing.
#[inline]
fn newer(first: Option<Entry>, second: Option<Entry>) -> Option<Entry> {
    if second.as_ref().map(|e| e.seq) > first.as_ref().map(|e| e.seq) { second } else { first }
}

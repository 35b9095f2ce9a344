//! The lookup of one key in a [`View`].
//!
//! 1. The memtables are searched, newest first, each behind its own filter. The first entry found is the answer.
//! 2. The filters of the segments whose key range includes the key are probed, newest run first. A key that all of them deny ends here: the
//!    loop calls nothing else, so the CPU waits for the filter lines of several runs at once.
//! 3. The first "maybe", or a segment without a filter, leads to [`Lookup::read_on`], which reads segments from that run on.
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
#[derive(Clone, Copy, Default)]
struct RunNumber {
    group: usize,
    run: usize,
}

impl Lookup<'_> {
    /// Prefetches the filter lines that the lookup will read. Several lookups may do so before the first goes on.
    #[inline]
    pub fn prefetch(&self) {
        let HashedKey { key, hash } = self.key;
        self.view.active.prefetch(hash);
        self.view.immutable.iter().for_each(|table| table.prefetch(hash));
        for group in self.view.live.run_groups() {
            let Some(fence) = group.fence(key) else { continue };
            let segments = group.runs().iter().filter_map(|run| run.find(fence, key));
            segments.filter_map(|s| s.sidecar.as_deref()).for_each(|sidecar| sidecar.prefetch(hash));
        }
    }

    /// The newest value of the key.
    #[inline(always)]
    pub fn get(&self) -> Result<Option<Value>> {
        if !self.memtables_deny() {
            let this = *self; // Only the copy needs memory.
            return this.get_from_all();
        }
        match self.first_maybe() {
            None if self.view.live.quarantined().is_empty() => Ok(None),
            from => {
                let this = *self;
                this.get_from_segments(from)
            }
        }
    }

    /// The value of a key that a memtable may have.
    #[inline(never)]
    fn get_from_all(&self) -> Result<Option<Value>> {
        let in_memory = self.get_from_memtables();
        if in_memory.is_some() && !self.view.logs_reach_back {
            return Ok(in_memory.and_then(Entry::visible));
        }
        let found = self.newest_in_segments(self.first_maybe())?;
        Ok(newer(found, in_memory).and_then(Entry::visible))
    }

    /// The value of a key that no memtable has.
    #[inline(never)]
    fn get_from_segments(&self, from: Option<RunNumber>) -> Result<Option<Value>> {
        Ok(self.newest_in_segments(from)?.and_then(Entry::visible))
    }

    /// Whether no memtable has the key, according to their filters.
    #[inline(always)]
    fn memtables_deny(&self) -> bool {
        let View { active, immutable, .. } = self.view;
        let denied = |table: &Memtable| self.filters && table.denies(self.key.hash);
        (active.is_unused() || denied(active)) && immutable.iter().all(|table| denied(table))
    }

    #[inline(never)]
    fn get_from_memtables(&self) -> Option<Entry> {
        let HashedKey { key, hash } = self.key;
        let mut tables = std::iter::once(&self.view.active).chain(&self.view.immutable);
        match self.filters {
            true => tables.find_map(|table| table.get(key, hash, self.seq)),
            false => tables.find_map(|table| table.search(key, self.seq)),
        }
    }

    /// Asks the filters, newest run first, down to the first run that may hold the key.
    #[inline(always)]
    fn first_maybe(&self) -> Option<RunNumber> {
        if !self.filters {
            return Some(RunNumber::default());
        }
        let (key, hash) = (self.key.key, ProbeHash::new(self.key.hash));
        for (number, group) in self.view.live.run_groups().iter().enumerate() {
            let Some(fence) = group.fence(key) else { continue };
            let mut denials = LevelCounts::default();
            for (run_number, run) in group.runs().iter().enumerate() {
                let Some(fenced) = run.find(fence, key) else { continue };
                let denied = fenced.sidecar.as_deref().is_some_and(|sidecar| {
                    sidecar.denies(&hash) || sidecar.ask(hash.hash()) == Some(Verdict::Absent)
                });
                if !denied {
                    self.counters.denials(denials);
                    return Some(RunNumber { group: number, run: run_number });
                }
                denials += run.count();
            }
            self.counters.denials(denials);
        }
        // Checked after the probes: missing lines read as zeros.
        if any_fault() { self.first_faulted() } else { None }
    }

    /// The first run whose filter may have denied the key because its map has faulted.
    #[cold]
    fn first_faulted(&self) -> Option<RunNumber> {
        let is_bad = |run: &Run, fence| {
            let sidecar = run.find(fence, self.key.key).and_then(|fenced| fenced.sidecar.as_deref());
            sidecar.is_some_and(Sidecar::has_faulted)
        };
        self.view.live.run_groups().iter().enumerate().find_map(|(number, group)| {
            let fence = group.fence(self.key.key)?;
            let run = group.runs().iter().position(|run| is_bad(run, fence))?;
            Some(RunNumber { group: number, run })
        })
    }

    /// The newest entry in a segment of run `from` or later or in quarantine; only in quarantine if there is no such run.
    fn newest_in_segments(&self, from: Option<RunNumber>) -> Result<Option<Entry>> {
        let mut best = match from {
            Some(from) => self.newest_in_runs(from)?,
            None => None,
        };
        for segment in self.view.live.suspects(self.key.key) {
            if best.as_ref().is_some_and(|best| best.seq >= segment.meta.max_seq) {
                break; // The remaining segments are older still.
            }
            // A damaged block returns its error, never an older entry from elsewhere.
            best = newer(best, self.read(segment, usize::from(segment.meta.level) % LEVELS)?);
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
                best = newer(best, self.read(segment, run.level())?);
            }
        }
        Ok(best)
    }

    /// Whether the key may have a value, from memory alone: "absent" is certain, and no segment is read.
    #[inline(always)]
    pub fn may_contain(&self) -> Verdict {
        if !self.memtables_deny() {
            match self.get_from_memtables().map(|entry| entry.kind) {
                Some(EntryKind::Put) => return Verdict::Maybe,
                Some(EntryKind::Tombstone) if !self.view.logs_reach_back => return Verdict::Absent,
                Some(EntryKind::Tombstone) | None => {}
            }
        }
        let denies =
            |s: &LiveSegment| self.ask(s, usize::from(s.meta.level) % LEVELS) == Some(Verdict::Absent);
        match self.first_maybe().is_none() && self.view.live.suspects(self.key.key).all(denies) {
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
    fn read(&self, segment: &LiveSegment, level: usize) -> Result<Option<Entry>> {
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

//! What a reader sees: the memtables and the live set of one moment.

use super::metrics::Reads;
use crate::error::Result;
use crate::filter::Verdict;
use crate::key::{Entry, EntryKind, Seq, Value};
use crate::manifest::{LEVELS, LiveSegment, LiveSet};
use crate::memtable::{Memtable, MemtableCursor};
use crate::merge::{MergeCursor, MergeSource, RunCursor};
use crate::segment::{Access, Direction};
use std::ops::Bound;
use std::sync::Arc;

/// Candidates whose filter lines are fetched ahead of the first test. A store with more runs than that fetches the rest as it goes.
const AHEAD: usize = 16;

/// Immutable; replaced as a whole by rotations, flushes, compactions and rebuilt sidecars. A reader loads the view first and the
/// newest visible sequence number after it: everything up to that number is then in this view or newer than it, so nothing that a
/// compaction dropped can be missed. It keeps the memtables in memory and the segments on disk for as long as it is held.
#[derive(Clone)]
pub(crate) struct View {
    /// Takes the writes.
    pub active: Arc<Memtable>,
    /// Full, waiting to be flushed; newest first.
    pub immutable: Vec<Arc<Memtable>>,
    /// The segments.
    pub live: Arc<LiveSet>,
    /// The memtables may hold older entries than the segments: in a read-only opening of logs that a repair has kept.
    pub logs_reach_back: bool,
}

/// A key with its one hash.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'a> {
    pub key: &'a [u8],
    pub hash: u64,
}

impl View {
    /// The newest value of a key as of `seq`: memtables, then segments, each behind its filter.
    #[inline]
    pub fn get(
        &self,
        probe: Probe<'_>,
        seq: Seq,
        filters: bool,
        counters: Reads<'_>,
    ) -> Result<Option<Value>> {
        let found = match self.get_recent(probe, seq, filters) {
            Some(entry) if !self.logs_reach_back => Some(entry),
            recent => {
                let found = self.get_settled(probe, filters, counters)?;
                let found = match self.live.quarantined().is_empty() {
                    true => found,
                    false => self.get_suspect(probe, filters, counters, found)?,
                };
                match recent.as_ref().map(|e| e.seq) > found.as_ref().map(|e| e.seq) {
                    true => recent,
                    false => found,
                }
            }
        };
        Ok(found.and_then(Entry::visible))
    }

    #[inline]
    fn get_recent(&self, probe: Probe<'_>, seq: Seq, filters: bool) -> Option<Entry> {
        std::iter::once(&self.active).chain(&self.immutable).find_map(|table| match filters {
            true => table.get(probe.key, probe.hash, seq),
            false => table.search(probe.key, seq),
        })
    }

    #[inline]
    fn get_settled(&self, probe: Probe<'_>, filters: bool, counters: Reads<'_>) -> Result<Option<Entry>> {
        let mut best: Option<Entry> = None;
        for candidate in fetch_ahead(self.live.candidates(probe.key), probe, filters) {
            if let Some(found) = &best {
                // Runs are ordered newest first, but for a level 0 that `repair` filled with segments of any age.
                let level0_may_be_newer = candidate.meta.level == 0 && candidate.meta.max_seq > found.seq;
                if !level0_may_be_newer {
                    break;
                }
            }
            let entry = match filters {
                true => ask(candidate, probe, counters)?,
                false => candidate.file.get(probe.key)?,
            };
            if entry.as_ref().map(|e| e.seq) > best.as_ref().map(|e| e.seq) {
                best = entry;
            }
        }
        Ok(best)
    }

    /// What the segments in quarantine have to say beside `best`, which the levels gave. A damaged block gives its error, never an older
    /// entry from elsewhere.
    #[cold]
    fn get_suspect(
        &self,
        probe: Probe<'_>,
        filters: bool,
        counters: Reads<'_>,
        mut best: Option<Entry>,
    ) -> Result<Option<Entry>> {
        for suspect in self.live.suspects(probe.key) {
            if best.as_ref().is_some_and(|best| best.seq >= suspect.meta.max_seq) {
                break; // The rest is older still.
            }
            let entry = match filters {
                true => ask(suspect, probe, counters)?,
                false => suspect.file.get(probe.key)?,
            };
            if entry.as_ref().map(|e| e.seq) > best.as_ref().map(|e| e.seq) {
                best = entry;
            }
        }
        Ok(best)
    }

    /// What memory alone says about a key: "absent" is certain, and a segment that its filter does not rule out is not read.
    #[inline]
    pub fn may_contain(&self, probe: Probe<'_>, seq: Seq, filters: bool, counters: Reads<'_>) -> Verdict {
        match self.get_recent(probe, seq, filters).map(|entry| entry.kind) {
            Some(EntryKind::Put) => return Verdict::Maybe,
            Some(EntryKind::Tombstone) if !self.logs_reach_back => return Verdict::Absent,
            Some(EntryKind::Tombstone) | None => {}
        }
        let may_have =
            |candidate: &LiveSegment| !filters || answer(candidate, probe, counters) != Some(Verdict::Absent);
        let mut candidates = self.live.candidates(probe.key);
        let (first, second) = (candidates.next(), candidates.next());
        let found = match second {
            _ if self.live.suspects(probe.key).any(may_have) => true,
            None => first.is_some_and(may_have), // A single line needs no fetching ahead.
            Some(_) => {
                fetch_ahead(first.into_iter().chain(second).chain(candidates), probe, filters).any(may_have)
            }
        };
        if found { Verdict::Maybe } else { Verdict::Absent }
    }

    /// Starts fetching the filter lines that a get of this key will test.
    #[inline]
    pub fn prefetch(&self, probe: Probe<'_>) {
        std::iter::once(&self.active).chain(&self.immutable).for_each(|table| table.prefetch(probe.hash));
        let candidates = self.live.candidates(probe.key).chain(self.live.suspects(probe.key));
        let sidecars = candidates.filter_map(|c| c.sidecar.as_deref());
        sidecars.for_each(|sidecar| sidecar.prefetch(probe.hash));
    }

    /// A merge of everything as of `seq`, in one direction. Nothing beyond `end` is asked for.
    pub fn merge(
        &self,
        seq: Seq,
        direction: Direction,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> Result<MergeCursor> {
        let mut sources = Vec::new();
        for table in std::iter::once(&self.active).chain(&self.immutable) {
            let cursor = match direction {
                Direction::Forward => MemtableCursor::forward(Arc::clone(table), seq, start),
                Direction::Reverse => MemtableCursor::reverse(Arc::clone(table), seq, start),
            };
            sources.push(MergeSource::Memtable(cursor));
        }
        let [level0, runs @ ..] = self.live.levels();
        for candidate in level0.segments() {
            sources.push(MergeSource::Segment(candidate.file.cursor(direction, start, Access::Scan)?));
        }
        for run in runs.iter().filter(|run| !run.segments().is_empty()) {
            let walk = run.walk(direction, start);
            sources.push(MergeSource::Run(RunCursor::new(walk, direction, start, Access::Scan)?));
        }
        for suspect in self.live.quarantined().iter().filter(|s| is_within(s, direction, start, end)) {
            sources.push(MergeSource::Segment(suspect.file.cursor(direction, start, Access::Scan)?));
        }
        Ok(MergeCursor::new(sources, direction))
    }
}

/// Whether a segment may have keys between the bounds of a walk.
fn is_within(segment: &LiveSegment, direction: Direction, start: Bound<&[u8]>, end: Bound<&[u8]>) -> bool {
    let (lower, upper) = match direction {
        Direction::Forward => (start, end),
        Direction::Reverse => (end, start),
    };
    let begins = match upper {
        Bound::Included(upper) => segment.meta.smallest.as_slice() <= upper,
        Bound::Excluded(upper) => segment.meta.smallest.as_slice() < upper,
        Bound::Unbounded => true,
    };
    let ends = match lower {
        Bound::Included(lower) => segment.meta.largest.as_slice() >= lower,
        Bound::Excluded(lower) => segment.meta.largest.as_slice() > lower,
        Bound::Unbounded => true,
    };
    begins && ends
}

/// The candidates, with the filter lines of the first ones on their way.
#[inline]
fn fetch_ahead<'a>(
    mut candidates: impl Iterator<Item = &'a LiveSegment>,
    probe: Probe<'_>,
    filters: bool,
) -> impl Iterator<Item = &'a LiveSegment> {
    let mut ahead = [None; AHEAD];
    for (slot, candidate) in ahead.iter_mut().zip(candidates.by_ref()) {
        if let Some(sidecar) = candidate.sidecar.as_deref().filter(|_| filters) {
            sidecar.prefetch(probe.hash);
        }
        *slot = Some(candidate);
    }
    ahead.into_iter().flatten().chain(candidates)
}

/// Asks the sidecar and reads the segment only on "maybe".
#[inline]
fn ask(candidate: &LiveSegment, probe: Probe<'_>, counters: Reads<'_>) -> Result<Option<Entry>> {
    match answer(candidate, probe, counters) {
        Some(Verdict::Absent) => Ok(None),
        Some(Verdict::Maybe) => {
            let entry = candidate.file.get(probe.key)?;
            if entry.is_none() {
                counters.add(&counters.shard.false_positives[usize::from(candidate.meta.level) % LEVELS], 1);
            }
            Ok(entry)
        }
        None => candidate.file.get(probe.key),
    }
}

/// What a candidate's sidecar says; `None` without one that may be believed (I1).
#[inline]
fn answer(candidate: &LiveSegment, probe: Probe<'_>, counters: Reads<'_>) -> Option<Verdict> {
    let verdict = candidate.sidecar.as_deref()?.ask(probe.hash)?;
    let level = usize::from(candidate.meta.level) % LEVELS;
    counters.add(&counters.shard.probes[level], 1);
    if verdict == Verdict::Maybe {
        counters.add(&counters.shard.maybes[level], 1);
    }
    Some(verdict)
}

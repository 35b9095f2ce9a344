//! The read path, from memory to disk. One get:
//!
//! 1. Load the [`View`], then the visible sequence number, and hash the key once.
//! 2. Search the memtables, newest first, each behind its own filter. The first entry found is the answer.
//! 3. Collect the segments whose key range includes the key, newest run first, and prefetch their filter lines.
//! 4. Probe the filters in that order. Only "maybe" reads the segment: block index, block cache, one block.
//! 5. Segments in quarantine belong to no level, so they are searched last; the newest entry wins.
//!
//! `may_contain` does the same without step 4's reads.

use super::inner::Inner;
use super::metrics::FilterCounters;
use super::view::View;
use crate::error::Result;
use crate::filter::Verdict;
use crate::key::{Entry, EntryKind, Seq, Value};
use crate::manifest::{LEVELS, LiveSegment};
use crate::sync::atomic::Ordering;

/// Keys of a multi-key read whose filter lines are prefetched together: about as many cache misses as a core can have outstanding.
const KEYS_AHEAD: usize = 16;

/// Segments whose filter lines are prefetched before the first probe. A store with more runs prefetches none for the rest.
const SEGMENTS_AHEAD: usize = 16;

/// A key with its hash, which is computed once per operation.
#[derive(Clone, Copy)]
pub(crate) struct HashedKey<'a> {
    pub key: &'a [u8],
    pub hash: u64,
}

impl Inner {
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        let view = self.view.load();
        self.get_in(&view, self.visible.load(Ordering::Acquire), self.hash_key(key))
    }

    /// The value of a key in a view, as of `seq`.
    #[inline]
    pub fn get_in(&self, view: &View, seq: Seq, key: HashedKey<'_>) -> Result<Option<Value>> {
        view.get(key, seq, self.storage.filters_on(), self.storage.metrics.filter_counters())
    }

    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let (view, seq) = self.snapshot();
        let mut values = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_AHEAD) {
            for key in self.hash_and_prefetch(&view, keys).into_iter().take(keys.len()) {
                values.push(self.get_in(&view, seq, key)?);
            }
        }
        Ok(values)
    }

    #[inline]
    pub fn may_contain(&self, key: &[u8]) -> Verdict {
        let view = self.view.load();
        let seq = self.visible.load(Ordering::Acquire);
        view.may_contain(
            self.hash_key(key),
            seq,
            self.storage.filters_on(),
            self.storage.metrics.filter_counters(),
        )
    }

    pub fn may_contain_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        let (view, seq) = self.snapshot();
        let counters = self.storage.metrics.filter_counters();
        let mut verdicts = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_AHEAD) {
            let hashed = self.hash_and_prefetch(&view, keys).into_iter().take(keys.len());
            verdicts
                .extend(hashed.map(|key| view.may_contain(key, seq, self.storage.filters_on(), counters)));
        }
        verdicts
    }

    #[inline]
    pub fn hash_key<'a>(&self, key: &'a [u8]) -> HashedKey<'a> {
        HashedKey { key, hash: self.storage.header.hasher.hash(key) }
    }

    /// Hashes up to [`KEYS_AHEAD`] keys and prefetches their filter lines.
    #[inline]
    fn hash_and_prefetch<'a, K: AsRef<[u8]>>(
        &self,
        view: &View,
        keys: &'a [K],
    ) -> [HashedKey<'a>; KEYS_AHEAD] {
        let mut hashed = [HashedKey { key: &[], hash: 0 }; KEYS_AHEAD];
        for (hashed, key) in hashed.iter_mut().zip(keys) {
            *hashed = self.hash_key(key.as_ref());
            view.prefetch(*hashed);
        }
        hashed
    }
}

impl View {
    /// The newest value of a key as of `seq`. `filters` says whether filters are used.
    #[inline]
    pub fn get(
        &self,
        key: HashedKey<'_>,
        seq: Seq,
        filters: bool,
        counters: FilterCounters<'_>,
    ) -> Result<Option<Value>> {
        let found = match self.get_from_memtables(key, seq, filters) {
            Some(entry) if !self.logs_reach_back => Some(entry),
            in_memory => {
                let found = self.get_from_levels(key, filters, counters)?;
                let found = match self.live.quarantined().is_empty() {
                    true => found,
                    false => self.get_from_quarantine(key, filters, counters, found)?,
                };
                newer(found, in_memory)
            }
        };
        Ok(found.and_then(Entry::visible))
    }

    #[inline]
    fn get_from_memtables(&self, key: HashedKey<'_>, seq: Seq, filters: bool) -> Option<Entry> {
        std::iter::once(&self.active).chain(&self.immutable).find_map(|table| match filters {
            true => table.get(key.key, key.hash, seq),
            false => table.search(key.key, seq),
        })
    }

    #[inline]
    fn get_from_levels(
        &self,
        key: HashedKey<'_>,
        filters: bool,
        counters: FilterCounters<'_>,
    ) -> Result<Option<Entry>> {
        let mut best: Option<Entry> = None;
        for segment in prefetch_ahead(self.live.candidates(key.key), key, filters) {
            if let Some(found) = &best {
                // Runs are ordered newest first, except in a level 0 that `repair` filled with segments of any age.
                let level0_may_be_newer = segment.meta.level == 0 && segment.meta.max_seq > found.seq;
                if !level0_may_be_newer {
                    break;
                }
            }
            best = newer(best, get_from_segment(segment, key, filters, counters)?);
        }
        Ok(best)
    }

    /// The newer of `best`, which the levels gave, and what the segments in quarantine hold. A damaged block returns its error, never an
    /// older entry from elsewhere.
    #[cold]
    fn get_from_quarantine(
        &self,
        key: HashedKey<'_>,
        filters: bool,
        counters: FilterCounters<'_>,
        mut best: Option<Entry>,
    ) -> Result<Option<Entry>> {
        for segment in self.live.suspects(key.key) {
            if best.as_ref().is_some_and(|best| best.seq >= segment.meta.max_seq) {
                break; // The remaining segments are older still.
            }
            best = newer(best, get_from_segment(segment, key, filters, counters)?);
        }
        Ok(best)
    }

    /// Whether a key may have a value, from memory alone: "absent" is certain, and no segment is read.
    #[inline]
    pub fn may_contain(
        &self,
        key: HashedKey<'_>,
        seq: Seq,
        filters: bool,
        counters: FilterCounters<'_>,
    ) -> Verdict {
        match self.get_from_memtables(key, seq, filters).map(|entry| entry.kind) {
            Some(EntryKind::Put) => return Verdict::Maybe,
            Some(EntryKind::Tombstone) if !self.logs_reach_back => return Verdict::Absent,
            Some(EntryKind::Tombstone) | None => {}
        }
        let may_have =
            |segment: &LiveSegment| !filters || probe_filter(segment, key, counters) != Some(Verdict::Absent);
        let mut candidates = self.live.candidates(key.key);
        let (first, second) = (candidates.next(), candidates.next());
        let found = match second {
            _ if self.live.suspects(key.key).any(may_have) => true,
            None => first.is_some_and(may_have), // Prefetching a single line gains nothing.
            Some(_) => {
                prefetch_ahead(first.into_iter().chain(second).chain(candidates), key, filters).any(may_have)
            }
        };
        if found { Verdict::Maybe } else { Verdict::Absent }
    }

    /// Prefetches the filter lines that a get of this key probes.
    #[inline]
    fn prefetch(&self, key: HashedKey<'_>) {
        std::iter::once(&self.active).chain(&self.immutable).for_each(|table| table.prefetch(key.hash));
        let segments = self.live.candidates(key.key).chain(self.live.suspects(key.key));
        let sidecars = segments.filter_map(|segment| segment.sidecar.as_deref());
        sidecars.for_each(|sidecar| sidecar.prefetch(key.hash));
    }
}

/// The same segments, once the filter lines of the first ones are prefetched.
#[inline]
fn prefetch_ahead<'a>(
    mut segments: impl Iterator<Item = &'a LiveSegment>,
    key: HashedKey<'_>,
    filters: bool,
) -> impl Iterator<Item = &'a LiveSegment> {
    let mut ahead = [None; SEGMENTS_AHEAD];
    for (entry, segment) in ahead.iter_mut().zip(segments.by_ref()) {
        if let Some(sidecar) = segment.sidecar.as_deref().filter(|_| filters) {
            sidecar.prefetch(key.hash);
        }
        *entry = Some(segment);
    }
    ahead.into_iter().flatten().chain(segments)
}

/// The entry that was written later; the first one if both are the same or missing.
#[inline]
fn newer(first: Option<Entry>, second: Option<Entry>) -> Option<Entry> {
    if second.as_ref().map(|e| e.seq) > first.as_ref().map(|e| e.seq) { second } else { first }
}

/// Probes the segment's filter, if filters are used, and reads the segment only on "maybe", or without a filter.
#[inline]
fn get_from_segment(
    segment: &LiveSegment,
    key: HashedKey<'_>,
    filters: bool,
    counters: FilterCounters<'_>,
) -> Result<Option<Entry>> {
    match filters.then(|| probe_filter(segment, key, counters)).flatten() {
        Some(Verdict::Absent) => Ok(None),
        Some(Verdict::Maybe) => {
            let entry = segment.file.get(key.key, key.hash)?;
            if entry.is_none() {
                counters.add(&counters.shard.false_positives[usize::from(segment.meta.level) % LEVELS], 1);
            }
            Ok(entry)
        }
        None => segment.file.get(key.key, key.hash),
    }
}

/// The verdict of a segment's filter. `None` if the segment has no sidecar that can be trusted (I1).
#[inline]
fn probe_filter(segment: &LiveSegment, key: HashedKey<'_>, counters: FilterCounters<'_>) -> Option<Verdict> {
    let verdict = segment.sidecar.as_deref()?.ask(key.hash)?;
    let level = usize::from(segment.meta.level) % LEVELS;
    counters.add(&counters.shard.probes[level], 1);
    if verdict == Verdict::Maybe {
        counters.add(&counters.shard.maybes[level], 1);
    }
    Some(verdict)
}

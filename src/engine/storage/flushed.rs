//! Writes a memtable as segments of level 0.

use super::Storage;
use super::buckets::{Buckets, buckets_in};
use super::output_segments::{SegmentOutput, large_keyspaces};
use super::segment_builder::UnpublishedSegments;
use crate::engine::filters::plans::{Coming, FilterPlans};
use crate::error::Result;
use crate::key::{Seq, Space, Time};
use crate::live::{LiveSegment, LiveSet};
use crate::memtable::Memtable;
use crate::options::FilterPolicy;
use crate::ranges::RangeTombstones;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The rows of a keyspace in a memtable.
#[derive(Default, Clone, Copy)]
struct Rows {
    entries: u64,
    bytes: u64,
}

/// Writes a memtable as level-0 segments, next to the segments in `live`: one for each keyspace with many
/// rows, and those of the others together. None if the memtable is empty.
pub(crate) fn build_level0(
    storage: &Storage,
    table: &Memtable,
    live: &Arc<LiveSet>,
    policy: FilterPolicy,
) -> Result<Vec<LiveSegment>> {
    if table.is_empty() {
        return Ok(Vec::new());
    }
    let (large, coming) = match table.owner() {
        Some(owner) => {
            (BTreeSet::new(), vec![Coming { level: 0, owner: Some(owner), entries: table.len() as u64 }])
        }
        None => keyspaces_of(storage, table),
    };
    let (prefixes, now) = (storage.prefix_set(), storage.clock.moment());
    let needs = storage.filter_needs(live);
    let plans = Arc::new(FilterPlans::new(needs, live, policy, prefixes, std::iter::empty(), &coming));
    let ranges = table.ranges().all();
    let mut of_others = ranges.clone();
    let mut windowed = WindowedOutputs::new(storage, table, now, &plans, &mut of_others);
    let mut output = SegmentOutput::new(storage, 0, Arc::clone(&plans), large, of_others);
    table.for_each_newest(|key, seq, kind, value| {
        if seq < ranges.seq_at(key) {
            return Ok(()); // Its range tombstone hides older entries as well.
        }
        let (kind, value) = kind.kept(now, value);
        windowed.of(key, seq)?.unwrap_or(&mut output).append(key, seq, kind, value)
    })?;
    let (mut built, of_windows) = (output.finish()?, windowed.finish()?);
    built.segments.extend(of_windows.take());
    let segments = built.take();
    storage.metrics.flush_bytes.fetch_add(segments.iter().map(|s| s.meta.file_bytes).sum(), Relaxed);
    Ok(segments)
}

/// The segments of windowed keyspaces: one for each time bucket. Rows come in the order of keys, so only
/// those of one keyspace are open files at the same time: at most 14, whatever the number of keyspaces (I12).
struct WindowedOutputs<'a> {
    storage: &'a Storage,
    plans: Arc<FilterPlans>,
    buckets: BTreeMap<Space, Buckets>,
    /// Those of the last row's keyspace, and those of later ones that have range tombstones.
    outputs: BTreeMap<(Space, Time), SegmentOutput<'a>>,
    finished: UnpublishedSegments<'a>,
}

impl<'a> WindowedOutputs<'a> {
    /// Takes the range tombstones of windowed keyspaces out of `ranges`. A keyspace with any is not cut into
    /// buckets.
    fn new(
        storage: &'a Storage,
        table: &Memtable,
        now: Time,
        plans: &Arc<FilterPlans>,
        ranges: &mut RangeTombstones,
    ) -> Self {
        let (plans, buckets) = (Arc::clone(plans), buckets_in(storage, table, now));
        let finished = UnpublishedSegments::new(storage);
        let mut of = WindowedOutputs { storage, plans, buckets, outputs: BTreeMap::new(), finished };
        for (space, buckets) in &mut of.buckets {
            let (first, end) = space.bounds();
            let mut own = ranges.split_off(&first);
            *ranges = ranges.merged(&own.split_off(&end));
            if !own.is_empty() {
                let end = buckets.unite();
                let output = SegmentOutput::new(storage, 0, Arc::clone(&of.plans), BTreeSet::new(), own);
                of.outputs.insert((*space, end), output.in_bucket(end));
            }
        }
        of
    }

    /// Where the next entry belongs, if its keyspace has a window.
    fn of(&mut self, key: &[u8], seq: Seq) -> Result<Option<&mut SegmentOutput<'a>>> {
        if self.buckets.is_empty() {
            return Ok(None);
        }
        let buckets = |space| Some((space, self.buckets.get(&space)?));
        let Some((space, buckets)) = Space::of(key).and_then(buckets) else { return Ok(None) };
        let end = buckets.of(seq);
        while let Some(first) = self.outputs.first_entry().filter(|first| first.key().0 < space) {
            self.finished.segments.extend(first.remove().finish()?.take());
        }
        Ok(Some(self.outputs.entry((space, end)).or_insert_with(|| {
            let (plans, ranges) = (Arc::clone(&self.plans), RangeTombstones::default());
            SegmentOutput::new(self.storage, 0, plans, BTreeSet::new(), ranges).in_bucket(end)
        })))
    }

    fn finish(mut self) -> Result<UnpublishedSegments<'a>> {
        for output in self.outputs.into_values() {
            self.finished.segments.extend(output.finish()?.take());
        }
        Ok(self.finished)
    }
}

/// The large keyspaces of a memtable that has several, and what is coming of each and of the others.
fn keyspaces_of(storage: &Storage, table: &Memtable) -> (BTreeSet<Space>, Vec<Coming>) {
    let mut rows: BTreeMap<Space, Rows> = BTreeMap::new();
    let mut last = (Space::DEFAULT, Rows::default());
    let Ok(()) = table.for_each_newest::<Infallible>(|key, _, _, value| {
        if !last.0.contains(key) {
            rows.insert(last.0, last.1);
            last = (Space::of(key).unwrap_or(Space::DEFAULT), Rows::default());
        }
        last.1.entries += 1;
        last.1.bytes += (key.len() + value.len()) as u64;
        Ok(())
    });
    rows.insert(last.0, last.1);
    let mut large = large_keyspaces(storage, rows.iter().map(|(space, of)| (*space, of.bytes)));
    large.extend(storage.keyspaces.windows().into_keys());
    let coming = rows.into_iter().map(|(space, of)| Coming {
        level: 0,
        owner: large.contains(&space).then_some(space),
        entries: of.entries,
    });
    let coming = coming.collect();
    (large, coming)
}

//! Writes a memtable as segments of level 0.

use super::Storage;
use super::output_segments::{SegmentOutput, large_keyspaces};
use super::segment_builder::UnpublishedSegments;
use crate::engine::filters::plans::{Coming, FilterPlans};
use crate::error::Result;
use crate::key::Space;
use crate::live::{LiveSegment, LiveSet};
use crate::memtable::Memtable;
use crate::options::FilterPolicy;
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
    let prefixes = storage.prefix_set();
    let plans =
        FilterPlans::new(storage.filter_needs(live), live, policy, prefixes, std::iter::empty(), &coming);
    let ranges = table.ranges().all();
    let (mut built, now) = (UnpublishedSegments::new(storage), storage.clock.moment());
    let mut output = SegmentOutput::new(storage, 0, plans, large, ranges.clone(), &mut built.segments);
    table.for_each_newest(|key, seq, kind, value| {
        if seq < ranges.seq_at(key) {
            Ok(()) // Its range tombstone hides older entries as well.
        } else {
            let (kind, value) = kind.kept(now, value);
            output.append(key, seq, kind, value)
        }
    })?;
    output.finish()?;
    let segments = built.take();
    storage.metrics.flush_bytes.fetch_add(segments.iter().map(|s| s.meta.file_bytes).sum(), Relaxed);
    Ok(segments)
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
    let large = large_keyspaces(storage, rows.iter().map(|(space, of)| (*space, of.bytes)));
    let coming = rows.into_iter().map(|(space, of)| Coming {
        level: 0,
        owner: large.contains(&space).then_some(space),
        entries: of.entries,
    });
    let coming = coming.collect();
    (large, coming)
}

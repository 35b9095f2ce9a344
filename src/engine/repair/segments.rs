//! Repair of segments: reads each one completely, and rewrites the readable rows of a damaged one.

use super::levels::assign_levels;
use super::report::LostRange;
use super::workspace::{Repair, ReplacedSegment};
use crate::engine::storage::names::{next_free_id, unusual_number};
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::key::EntryKind;
use crate::manifest::{LEVELS, ManifestState, Place, SegmentMeta, check_levels};
use crate::ranges::{RangeTombstones, last_key, successor};
use crate::segment::{
    BlockCache, Gap, Properties, ReadCounters, Segment, SegmentSummary, SegmentWriter, StoreIdentity,
    WriterOptions, is_damage, read_properties, salvage,
};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

impl Repair<'_> {
    /// Compares the manifest's segments with their entries in it. Returns `true` if the state had to change.
    pub(super) fn check_segments(&mut self, state: ManifestState) -> Result<(ManifestState, bool)> {
        self.next_id = FileId(next_free_id(&state, &self.names));
        let mut changed = false;
        let mut kept = BTreeMap::new();
        for (id, meta) in &state.segments {
            let read = self.read_whole(*id, None);
            self.note_read(*id, FileKind::Segment)?;
            let found = match read {
                // A wrong bound in the manifest would hide keys or let levels overlap.
                Ok((found, _)) if found.digest == meta.digest => {
                    Some(SegmentMeta { place: meta.place, ..found })
                }
                Ok(_) => {
                    let what = "this is not the segment that the manifest names";
                    self.link_aside(*id, Error::corruption(self.segment_path(*id), 0, what))?;
                    self.report.lost.push(self.whole(meta));
                    None
                }
                Err(error) if is_damage(&error) => self.rescue(*id, Some(meta), state.header, error)?,
                Err(error) => return Err(error),
            };
            changed |= found.as_ref() != Some(meta);
            kept.extend(found.map(|found| (found.id, found)));
        }
        let homes: Vec<_> = kept.values().filter_map(|meta| Some((meta.id, home_of(meta, &kept)?))).collect();
        for (id, level) in homes {
            if let Some(meta) = kept.get_mut(&id).filter(|meta| meta.place != Place::Level(level)) {
                meta.place = Place::Level(level);
                changed = true;
            }
        }
        let mut state = ManifestState { segments: kept, ..state };
        if let Err(error) = check_levels(&state, self.path) {
            tracing::warn!(%error, "giving every segment a level by its age; those whose ages interleave go to level 0, where they may overlap");
            let mut metas: Vec<SegmentMeta> = state.segments.into_values().collect();
            assign_levels(&mut metas, state.last_seq);
            state.segments = metas.into_iter().map(|meta| (meta.id, meta)).collect();
            changed = true;
        }
        Ok((state, changed))
    }

    pub(super) fn segment_path(&self, id: FileId) -> PathBuf {
        self.path.join(id.file_name(FileKind::Segment))
    }

    /// Opens a segment. Reads every byte of it if it belongs to `store`, or if the store is unknown.
    pub(super) fn read_whole(
        &self,
        id: FileId,
        store: Option<StoreIdentity>,
    ) -> Result<(SegmentMeta, StoreIdentity)> {
        let path = self.segment_path(id);
        if !id.leaves_room() {
            return Err(unusual_number(path)); // Its rows get another number.
        }
        let (cache, counters) = (Arc::new(BlockCache::new(0)), Arc::new(ReadCounters::default()));
        let segment = Segment::open(&*self.fs, &path, id, cache, counters, false)?;
        let found = segment.store();
        if store.is_none_or(|store| store == found) {
            segment.verify(&mut |_, _, _| Ok(()))?;
        }
        Ok((SegmentMeta { place: Place::Level(0), summary: segment.summary().clone() }, found))
    }

    /// A segment's properties, if they are readable.
    pub(super) fn properties(&self, id: FileId) -> Result<Option<Properties>> {
        self.fs.open(&self.segment_path(id)).map_or(Ok(None), |file| read_properties(&file, id))
    }

    /// Writes the readable rows of a damaged segment to a new one; `None` if there are none. `known` is its
    /// manifest entry.
    pub(super) fn rescue(
        &mut self,
        id: FileId,
        known: Option<&SegmentMeta>,
        store: StoreIdentity,
        error: Error,
    ) -> Result<Option<SegmentMeta>> {
        let file = match self.fs.open(&self.segment_path(id)) {
            // Not even a regular file.
            Err(Error::Corruption { .. }) => {
                self.link_aside(id, error)?;
                self.report.lost.extend(known.map(|meta| self.whole(meta)));
                return Ok(None);
            }
            opened => opened?,
        };
        let new_id = self.next_id;
        let mut writer: Option<SegmentWriter> = None;
        let summary = known.map(|meta| &meta.summary);
        let salvaged = salvage(&file, id, summary, &mut self.search_bytes, &mut |key, seq, kind, value| {
            let writer = match &mut writer {
                Some(writer) => writer,
                None => {
                    let path = self.path.join(new_id.file_name(FileKind::Segment));
                    writer.insert(SegmentWriter::create(
                        &*self.fs,
                        &path,
                        new_id,
                        store,
                        WriterOptions::default(),
                    )?)
                }
            };
            writer.append(key, seq, kind, value).map(drop)
        })?;
        let lost_ranges = salvaged.ranges.is_none() && known.is_none_or(|meta| meta.ranges > 0);
        let facts = known.map(|meta| &meta.facts).or(salvaged.properties.as_ref().map(|own| &own.facts));
        if let Some(ranges) = salvaged.ranges.filter(|ranges| !ranges.is_empty()) {
            self.rescue_ranges(&mut writer, new_id, store, ranges, facts.map(|facts| &facts.largest))?;
        }
        if let (Some(writer), Some(facts)) = (&mut writer, facts) {
            writer.set_bucket(facts.bucket);
        }
        let summary = writer.map(SegmentWriter::finish).transpose()?;
        self.next_id = FileId(new_id.0.saturating_add(1));
        self.link_aside(id, error)?;

        let named = salvaged.properties.as_ref().and_then(|own| own.keyspace.clone());
        let is_foreign = salvaged.properties.as_ref().is_some_and(|own| own.store.store_id != store.store_id)
            || summary.as_ref().is_some_and(|summary| known.is_some_and(|meta| !is_part_of(summary, meta)));
        if is_foreign {
            if summary.is_some() {
                self.fs.remove(&self.segment_path(new_id))?;
            }
            self.report.lost.extend(known.map(|meta| self.whole(meta)));
            return Ok(None);
        }
        self.keyspace_names.extend(named.map(|of| (of.number, of.name)));
        let ends = match (known, salvaged.properties) {
            (Some(meta), _) => Some((meta.smallest.clone(), meta.largest.clone())),
            (None, own) => own.map(|own| (own.facts.smallest, own.facts.largest)),
        };
        self.report.rows_salvaged += summary.as_ref().map_or(0, |summary| summary.entries);
        for gap in salvaged.gaps {
            self.report.bytes_unreadable = self.report.bytes_unreadable.saturating_add(gap.bytes);
            self.report.lost.push(LostRange { file: self.segment_path(id), ..range_of(gap, ends.as_ref()) });
        }
        if lost_ranges || salvaged.has_lost_number {
            let whole = ends.map_or((Bound::Unbounded, Bound::Unbounded), |(first, last)| {
                (Bound::Included(first), up_to(&last))
            });
            self.report.lost.push(LostRange { file: self.segment_path(id), first: whole.0, last: whole.1 });
        }
        let place = known.map_or(Place::Level(0), |meta| meta.place);
        Ok(summary.map(|summary| SegmentMeta { place, summary }))
    }

    /// Gives the salvaged rows their segment's range tombstones. Every segment has an entry, so one without
    /// rows gets a tombstone.
    fn rescue_ranges(
        &self,
        writer: &mut Option<SegmentWriter>,
        id: FileId,
        store: StoreIdentity,
        ranges: RangeTombstones,
        largest: Option<&Bytes>,
    ) -> Result<()> {
        let Some((start, _, seq)) = ranges.ranges().next() else { return Ok(()) };
        let writer = match writer {
            Some(writer) => writer,
            None => {
                let path = self.segment_path(id);
                let options = WriterOptions::default();
                let empty = writer.insert(SegmentWriter::create(&*self.fs, &path, id, store, options)?);
                empty.append(start, seq, EntryKind::TOMBSTONE, &[])?;
                empty
            }
        };
        // The range may end with the last row, before the next segment of the level. If that row is lost, a
        // tombstone takes its place.
        let last = ranges.ranges().last().map_or(0, |(_, _, seq)| seq);
        if let Some(largest) =
            largest.filter(|key| ranges.end().is_some() && ranges.end() == successor(key).as_deref())
            && writer.last_key() < &**largest
        {
            writer.append(largest, last, EntryKind::TOMBSTONE, &[])?;
        }
        writer.set_ranges(ranges);
        Ok(())
    }

    /// Gives a damaged segment a second name. It loses the first once the manifest no longer names it.
    fn link_aside(&mut self, id: FileId, why: Error) -> Result<()> {
        let name = id.file_name(FileKind::Segment);
        let linked = self.fs.hard_link(&self.path.join(&name), &self.aside(&name)?).is_ok();
        self.replaced.push(ReplacedSegment { id, why, linked });
        Ok(())
    }

    /// The second half of `link_aside`.
    pub(super) fn set_aside_replaced(&mut self) -> Result<()> {
        for ReplacedSegment { id, why, linked } in std::mem::take(&mut self.replaced) {
            let (name, path) = (id.file_name(FileKind::Segment), self.segment_path(id));
            if !linked {
                self.set_aside(&name, why)?; // Not every file system has links.
                continue;
            }
            tracing::warn!(%why, name, "set a damaged segment aside after salvaging its readable rows");
            self.count_aside(&path)?;
            self.fs.remove(&path)?;
            self.report.set_aside.push(why);
        }
        Ok(())
    }

    fn whole(&self, meta: &SegmentMeta) -> LostRange {
        LostRange {
            file: self.segment_path(meta.id),
            first: Bound::Included(meta.smallest.clone()),
            last: up_to(&meta.largest),
        }
    }
}

/// Whether these rows can come from the segment that the manifest names.
fn is_part_of(rows: &SegmentSummary, meta: &SegmentMeta) -> bool {
    meta.smallest <= rows.smallest
        && rows.largest <= meta.largest
        && meta.min_seq <= rows.min_seq
        && rows.max_seq <= meta.max_seq
        && rows.entries <= meta.entries
}

/// The bound that covers all keys up to a segment's largest.
fn up_to(largest: &Bytes) -> Bound<Vec<u8>> {
    if *largest == last_key() { Bound::Unbounded } else { Bound::Included(largest.to_vec()) }
}

/// The keys that a gap may have contained, given the segment's first and last keys.
fn range_of(gap: Gap, ends: Option<&(Vec<u8>, Bytes)>) -> LostRange {
    let from_start = || ends.map_or(Bound::Unbounded, |(smallest, _)| Bound::Included(smallest.clone()));
    let to_end = || ends.map_or(Bound::Unbounded, |(_, largest)| up_to(largest));
    LostRange {
        file: PathBuf::new(),
        first: gap.after.map_or_else(from_start, Bound::Excluded),
        last: gap.before.map_or_else(to_end, Bound::Excluded),
    }
}

/// The level to which an intact segment can return from quarantine, by its age. Every overlapping segment
/// above must be newer, and below, older. None may be in the same level, unless that is level 0, or in
/// quarantine. Without such a level (`None`), the segment stays in quarantine, and an open store takes it
/// back with a compaction (see `compact/take_back.rs`).
fn home_of(meta: &SegmentMeta, all: &BTreeMap<FileId, SegmentMeta>) -> Option<u8> {
    let overlapping: Vec<&SegmentMeta> = all
        .values()
        .filter(|other| {
            other.id != meta.id && other.smallest <= meta.largest && other.largest >= meta.smallest
        })
        .collect();
    let fits = |level: &u8| {
        overlapping.iter().all(|other| match other.place.level().map(|its| its.cmp(level)) {
            Some(std::cmp::Ordering::Less) => other.min_seq > meta.max_seq,
            Some(std::cmp::Ordering::Equal) => *level == 0,
            Some(std::cmp::Ordering::Greater) => other.max_seq < meta.min_seq,
            None => false,
        })
    };
    meta.place.quarantine().and_then(|_| (1..LEVELS as u8).chain([0]).find(fits))
}

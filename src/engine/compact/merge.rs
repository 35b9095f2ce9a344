//! Compaction: merges the inputs, keeps the newest entry of each key, writes the next level.
//!
//! Readers hold the segments that they started with, so a compaction keeps no old entries for them. It writes
//! one entry per key, and a tombstone (of a key or a range) only if a deeper level may have entries to hide.
//! A value that has expired is a tombstone from then on.

use super::Compactor;
use super::compaction::{Compaction, CompactionKind};
use super::pick::{pick_buckets, pick_level0};
use crate::direction::Direction;
use crate::engine::filters::plans::Coming;
use crate::engine::metrics::Running;
use crate::engine::publish::LiveSetChange;
use crate::engine::storage::output_segments::{SegmentOutput, large_keyspaces};
use crate::engine::storage::segment_builder::UnpublishedSegments;
use crate::engine::verify::check_whole;
use crate::engine::write::commit::LEVEL0_SLOWDOWN;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::key::{EntryKind, Seq, SplitKey};
use crate::live::{LiveSegment, RangedRuns};
use crate::merge::RunWalk;
use crate::merge::{MergeCursor, MergeSource, RunCursor};
use crate::ranges::{RangeTombstones, Span};
use crate::segment::Access;
use crate::sync::Instant;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Entries merged between two checks whether the store is closing.
const CHECK_EVERY: u64 = 4096;

impl Compactor {
    /// Runs one compaction and publishes its outputs. Stops without an error if the store closes.
    pub fn compact_one(&self, compaction: &Compaction) -> Result<()> {
        let metrics = &self.shared.storage.metrics;
        let _running = Running::begin(&metrics.compactions_running);
        let began = Instant::now();
        let outputs = match compaction.kind {
            CompactionKind::Drop => self.drop_unread(compaction)?,
            CompactionKind::Move => self.change_level(compaction)?,
            CompactionKind::Merge | CompactionKind::Rewrite => self.merge_and_publish(compaction)?,
        };
        let Some(outputs) = outputs else { return Ok(()) };
        let inputs = Size::of(compaction.inputs());
        metrics.compactions.fetch_add(1, Relaxed);
        self.shared.storage.events.emit(Event::Compaction {
            kind: compaction.kind.name(),
            output_level: compaction.output_level.into(),
            input_segments: inputs.segments,
            input_bytes: inputs.bytes,
            output_segments: outputs.segments,
            output_bytes: outputs.bytes,
            seconds: began.elapsed().as_secs_f64(),
        });
        Ok(())
    }

    /// Moves the inputs to the output level. `None` if they have changed since.
    fn change_level(&self, compaction: &Compaction) -> Result<Option<Size>> {
        let (upper, mut moved) = (&compaction.upper, None);
        self.publisher.publish_if(|live| {
            // A segment that has since gone to quarantine stays there: nobody has read it.
            let is_as_planned =
                |s: &LiveSegment| live.now(&s.meta).is_some_and(|now| now.meta.place == s.meta.place);
            moved = upper.iter().all(is_as_planned).then(|| Size::of(upper));
            moved.map(|_| LiveSetChange {
                added: upper.iter().map(|s| s.at_level(compaction.output_level)).collect(),
                removed: upper.clone(),
                ..LiveSetChange::default()
            })
        })?;
        Ok(moved)
    }

    /// `None` if the store is closing.
    fn merge_and_publish(&self, compaction: &Compaction) -> Result<Option<Size>> {
        let merged = self.merge(compaction).map_err(|error| self.trace_to_input(compaction, error));
        let Some(added) = merged? else { return Ok(None) };
        let (removed, size) = (compaction.inputs().cloned().collect(), Size::of(&added));
        self.publisher.publish(LiveSetChange { added, removed, ..LiveSetChange::default() })?;
        Ok(Some(size))
    }

    /// Removes segments whose rows are all deleted by range tombstones, or have all expired, without reading
    /// them. `None` if they have changed since.
    fn drop_unread(&self, compaction: &Compaction) -> Result<Option<Size>> {
        let mut dropped = None;
        self.publisher.publish_if(|live| {
            let are_same =
                compaction.upper.iter().all(|s| live.now(&s.meta).is_some_and(|now| now.meta == s.meta));
            let removed = compaction.upper.clone();
            dropped = are_same.then(Size::default);
            dropped.map(|_| LiveSetChange { removed, ..LiveSetChange::default() })
        })?;
        Ok(dropped)
    }

    /// Writes the merged segments; `None` if the store is closing.
    fn merge(&self, compaction: &Compaction) -> Result<Option<Vec<LiveSegment>>> {
        Ok(self.merge_as(compaction, None)?.map(UnpublishedSegments::take))
    }

    /// Merges the whole store into one run whose rows all have sequence number 1. Only for a repair: sequence
    /// numbers of an open store never go back.
    pub fn merge_renumbered(&self) -> Result<()> {
        let Some(all) = Compaction::of_all(&self.shared.live()) else { return Ok(()) };
        let Some(built) = self.merge_as(&all, Some(1))? else { return Ok(()) };
        self.publisher.publish(LiveSetChange {
            added: built.take(),
            removed: all.upper,
            ..LiveSetChange::default()
        })
    }

    /// An entry that no segment may have can come from a damaged input with correct checksums. Then the input
    /// is at fault, not the output: it goes to quarantine, and the store stays writable.
    fn trace_to_input(&self, compaction: &Compaction, error: Error) -> Error {
        match error {
            Error::KeyOutOfOrder { .. }
            | Error::KeyTooLarge { .. }
            | Error::ValueTooLarge { .. }
            | Error::NumbersExhausted { .. }
            | Error::Internal(_) => compaction
                .inputs()
                .find_map(|s| check_whole(&self.shared.storage, &s.meta, &mut |_, _, _| Ok(())).err())
                .unwrap_or(error),
            error => error,
        }
    }

    /// Writes the merged segments; `None` if the store is closing. With `number`, all rows get that number.
    fn merge_as(
        &self,
        compaction: &Compaction,
        number: Option<Seq>,
    ) -> Result<Option<UnpublishedSegments<'_>>> {
        let coming: Vec<Coming> = compaction
            .inputs()
            .map(|s| Coming {
                level: compaction.output_level,
                owner: s.meta.owner(),
                entries: s.meta.entries,
            })
            .collect();
        let plans = self.filters.plans(&self.shared.live(), compaction.inputs(), &coming);
        let deleted = RangedRuns::of_all(compaction.inputs())?;
        let sources = sources(compaction, &deleted);
        let mut merge = MergeCursor::new(sources, Direction::Forward, Bound::Unbounded, None);
        let kept = if compaction.bottom { RangeTombstones::default() } else { deleted.clone() };
        let storage = &self.shared.storage;
        let owned = compaction.inputs().filter_map(|s| Some((s.meta.owner()?, s.meta.file_bytes)));
        let large = large_keyspaces(storage, owned);
        let output = SegmentOutput::new(storage, compaction.output_level, Arc::new(plans), large, kept);
        let mut output = output.in_bucket(compaction.bucket());
        let mut key = Vec::new();
        let mut span: Option<Span> = None;
        let (mut entries, now, mut pace) = (0u64, storage.clock.moment(), self.pace());
        while merge.advance()? {
            entries += 1;
            if entries.is_multiple_of(CHECK_EVERY) && self.may_abandon(compaction) {
                return Ok(None);
            }
            if pace.pass(merge.key().len() + merge.value().len()) {
                let done = merge.read_bytes().saturating_add(output.written_bytes());
                if self.keep_pace(&mut pace, done) && self.may_abandon(compaction) {
                    return Ok(None);
                }
            }
            let (kind, value) = merge.kind().kept(now, merge.value());
            if compaction.bottom && kind == EntryKind::TOMBSTONE {
                continue;
            }
            if !deleted.is_empty() && merge.seq() < newest_at(&deleted, merge.key(), &mut span, &mut key) {
                continue;
            }
            merge.key().copy_into(&mut key);
            output.append(&key, number.unwrap_or(merge.seq()), kind, value)?;
        }
        let (read, built) = (merge.read_bytes(), output.finish()?);
        self.keep_pace(&mut pace, read.saturating_add(built.written_bytes()));
        built.segments.iter().for_each(|segment| self.filters.note_missing_sidecar(segment));
        let metrics = &self.shared.storage.metrics;
        metrics
            .compaction_read_bytes
            .fetch_add(compaction.inputs().map(|s| s.meta.file_bytes).sum(), Relaxed);
        metrics.compaction_bytes.fetch_add(built.segments.iter().map(|s| s.meta.file_bytes).sum(), Relaxed);
        Ok(Some(built))
    }

    /// Whether the store is closing and need not wait for this compaction.
    fn may_abandon(&self, compaction: &Compaction) -> bool {
        let relieves = || {
            self.level0_is_over_limit()
                && compaction.inputs().any(|s| s.level().is_some_and(|level| level < compaction.output_level))
        };
        self.shared.control.lock().closing && !relieves()
    }

    /// Whether level 0 has enough segments to slow writers down.
    fn level0_is_over_limit(&self) -> bool {
        let live = self.shared.live();
        live.level0_depth() >= LEVEL0_SLOWDOWN.max(self.shared.storage.options.level0_trigger)
    }

    /// Merges level 0 until it is within its limit. Only for a closing store, where nothing else compacts.
    pub fn relieve_level0(&self) -> Result<()> {
        while self.shared.check_writable().is_ok() && self.level0_is_over_limit() {
            let (live, options) = (self.shared.live(), &self.shared.storage.options);
            let picked = pick_buckets(&live, options, &[]).or_else(|| pick_level0(&live, options, &[]));
            let Some(compaction) = picked else { break };
            self.compact_one(&compaction)?;
        }
        Ok(())
    }
}

/// The number and the size of segments.
#[derive(Clone, Copy, Default)]
struct Size {
    segments: u64,
    bytes: u64,
}

impl Size {
    fn of<'a>(segments: impl IntoIterator<Item = &'a LiveSegment>) -> Self {
        segments.into_iter().fold(Size::default(), |sum, segment| Size {
            segments: sum.segments + 1,
            bytes: sum.bytes.saturating_add(segment.meta.file_bytes),
        })
    }
}

/// The newest range tombstone over a key. `span` is what an earlier call found.
fn newest_at(deleted: &RangeTombstones, at: SplitKey<'_>, span: &mut Option<Span>, key: &mut Vec<u8>) -> Seq {
    match span {
        Some(span) if span.has(at) => span.seq,
        _ => {
            at.copy_into(key);
            let found = span.insert(Span::default());
            deleted.narrow(key, found);
            found.seq
        }
    }
}

/// One cursor per quarantined segment and per sorted run. Level-0 segments that do not overlap share a run (a
/// repair may leave very many), so memory does not grow with the number of segments. Segments that are
/// entirely deleted are skipped unread.
fn sources(compaction: &Compaction, deleted: &RangeTombstones) -> Vec<MergeSource> {
    let mut runs: BTreeMap<u8, Vec<&LiveSegment>> = BTreeMap::new();
    let (mut level0, mut alone) = (Vec::new(), Vec::new());
    let stays = |s: &&LiveSegment| !deleted.cover(&s.meta.smallest, &s.meta.largest, s.meta.max_seq);
    for input in compaction.inputs().filter(stays) {
        match input.level() {
            None => alone.push(vec![input]),
            Some(0) => level0.push(input),
            Some(level) => runs.entry(level).or_default().push(input),
        }
    }
    let source = |mut run: Vec<&LiveSegment>| {
        run.sort_by(|a, b| a.meta.smallest.cmp(&b.meta.smallest));
        let walk = RunWalk::of(run.into_iter().cloned().collect(), Direction::Forward);
        MergeSource::Run(RunCursor::new(walk, Direction::Forward, Bound::Unbounded, Access::Scan))
    };
    alone.into_iter().chain(disjoint_runs(level0)).chain(runs.into_values()).map(source).collect()
}

/// Distributes segments over as few runs as possible, with no overlap within a run.
fn disjoint_runs(mut segments: Vec<&LiveSegment>) -> Vec<Vec<&LiveSegment>> {
    segments.sort_by(|a, b| a.meta.smallest.cmp(&b.meta.smallest));
    let mut runs: Vec<Vec<&LiveSegment>> = Vec::new();
    // The runs by largest key, smallest first.
    let mut ends: BinaryHeap<Reverse<(&[u8], usize)>> = BinaryHeap::new();
    for segment in segments {
        let begins_behind = |end: &Reverse<(&[u8], usize)>| end.0.0 < segment.meta.smallest.as_slice();
        let run = match ends.peek().is_some_and(begins_behind).then(|| ends.pop()).flatten() {
            Some(Reverse((_, run))) => run,
            None => {
                runs.push(Vec::new());
                runs.len() - 1
            }
        };
        ends.push(Reverse((&segment.meta.largest, run)));
        runs[run].push(segment);
    }
    runs
}

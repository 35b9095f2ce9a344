//! Return from quarantine: a segment that was unreadable once may be readable later, for example after a
//! timeout or with a new cable.
//!
//! 1. `compact`, and a background thread after a growing pause, read each quarantined segment completely. It
//!    comes back once every byte matches its checksums.
//! 2. When the segment left its level, all older entries of its keys were below that level (or next to it in
//!    level 0), and entries only move down. Newer entries were above it, and compactions may have moved them
//!    below it since: [`Quarantine`] records how deep. So the segment is merged with everything that it
//!    overlaps between the two levels. Often that is nothing, and only its level changes.
//! 3. A segment that left level 0 returns to level 1: a running compaction of level 0 may be moving newer
//!    entries there, and its reservation in level 1 keeps the two apart.
//! 4. Only one segment comes back at a time, because two could pass each other
//!    ([`Reservation::conflicts_with`]).

use super::Compactor;
use super::compaction::{Compaction, with_bound};
use super::reservation::Reservation;
use crate::engine::control::Control;
use crate::engine::tasks::queue::Queue;
use crate::engine::verify::check_whole;
use crate::error::Result;
use crate::event::Event;
use crate::id::FileKind;
use crate::live::{LiveSegment, LiveSet, hull};
use crate::manifest::Quarantine;
use crate::options::Options;
use crate::sync::assert_unlocked;
use std::sync::Arc;

/// A segment stays in quarantine if its return would merge more than this many segments' worth of bytes,
/// because nothing else could compact that range during the merge.
const MERGED_SEGMENTS_MAX: u64 = 64;

impl Compaction {
    /// Merges a quarantined segment into the levels. `None` if a running compaction is in the way, or the
    /// merge would be too large.
    pub fn back(
        live: &LiveSet,
        suspect: &LiveSegment,
        options: &Options,
        running: &[Reservation],
    ) -> Option<Self> {
        assert_unlocked();
        let Quarantine { left, overtaken } = suspect.meta.place.quarantine()?;
        let (first, last) = (usize::from(left), usize::from(overtaken).max(1));
        let mut upper = vec![suspect.clone()];
        for (number, level) in live.levels().iter().enumerate().take(last).skip(first) {
            if number == 0 {
                upper = with_bound(upper, level.segments().iter().cloned().collect());
                continue;
            }
            let (smallest, largest) = hull(&upper)?;
            let segments = level.segments();
            let more: Vec<_> = segments.range(segments.overlapping(smallest, largest)).cloned().collect();
            upper.extend(more);
        }
        let compaction = Compaction::down(live, upper, last, running)?;
        let bytes: u64 = compaction.inputs().map(|s| s.meta.file_bytes).sum();
        (bytes <= MERGED_SEGMENTS_MAX.saturating_mul(options.segment_bytes)).then_some(compaction)
    }
}

impl Compactor {
    /// Queues the quarantined segments, and schedules their next read, each time later.
    pub fn queue_suspects(&self) {
        let suspects: Queue<_> =
            self.shared.live().quarantined().iter().map(|s| Arc::clone(&s.meta)).collect();
        let mut control = self.shared.control.lock();
        if !suspects.is_empty() {
            // Another thread may have scheduled a read of a segment that has just left its level.
            control.suspects.next.schedule();
        }
        let before = std::mem::replace(&mut control.suspects.to_try, suspects);
        drop(control);
        drop(before);
    }

    /// Reserves the compaction that takes back the next segment in the queue, unless one is running. A
    /// blocked segment waits for its next turn.
    pub fn reserve_suspect(&self, may_compact: impl Fn(&Control) -> bool) -> Option<Compaction> {
        loop {
            let (meta, live, running) = {
                let mut control = self.shared.control.lock();
                if !may_compact(&control) || control.compactions.any_takes_back() {
                    return None;
                }
                (control.suspects.to_try.pop()?, self.shared.live(), control.compactions.running.clone())
            };
            let suspect = live.now(&meta).filter(|s| s.is_quarantined());
            let back = |s: &LiveSegment| Compaction::back(&live, s, &self.shared.storage.options, &running);
            let Some(back) = suspect.and_then(back) else { continue };
            let mut control = self.shared.control.lock();
            if may_compact(&control) && back.reserve(&self.shared, &mut control, &live) {
                return Some(back);
            }
            control.suspects.to_try.push(meta); // Something else came first; it is not blocked.
        }
    }

    /// Reads the segment that the compaction takes back, and runs the compaction if it is fully readable.
    pub fn take_back_if_readable(&self, compaction: &Compaction) -> Result<()> {
        match compaction.upper.first() {
            Some(suspect) if self.is_readable(suspect) => self.take_back(suspect, compaction),
            _ => Ok(()),
        }
    }

    /// Whether every byte of a segment is readable, bypassing every cache.
    pub fn is_readable(&self, segment: &LiveSegment) -> bool {
        check_whole(&self.shared.storage, &segment.meta, &mut |_, _, _| Ok(()))
            .inspect_err(|error| tracing::debug!(%error, "a segment in quarantine is still unreadable"))
            .is_ok()
    }

    /// Takes a readable segment back from quarantine.
    pub fn take_back(&self, suspect: &LiveSegment, compaction: &Compaction) -> Result<()> {
        self.compact_one(compaction)?;
        let meta = &suspect.meta;
        if self.shared.live().now(meta).is_some_and(LiveSegment::is_quarantined) {
            return Ok(()); // The store is closing.
        }
        let storage = &self.shared.storage;
        let file = storage.path_of(meta.id, FileKind::Segment).display().to_string();
        storage.events.emit(Event::QuarantineEnd { file });
        self.filters.queue_if_without_sidecar(meta);
        Ok(())
    }
}

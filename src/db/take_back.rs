//! Back from quarantine: a segment that could not be read once may be readable later, for example after a timeout or a bad cable.
//!
//! 1. `compact`, and a background thread after a growing pause, read each segment in quarantine completely. It comes
//!    back once every byte matches its checksums.
//! 2. When the segment left its level, all older entries of its keys were below that level (or beside it in level 0), and entries only ever
//!    move down. Newer entries were above it, and compactions may have moved them below it since: [`Quarantine`] records how deep. So the
//!    segment is merged with everything that overlaps it between the two levels. Often that is nothing, and it only changes its level.
//! 3. A segment that left level 0 goes to level 1: a running compaction of level 0 may be moving newer entries there, and its reservation in
//!    level 1 keeps the two apart.
//! 4. Only one segment comes back at a time, because two could pass each other ([`Reservation::conflicts_with`]).

use super::compaction::{Compaction, with_bound};
use super::control::Control;
use super::id_queue::IdQueue;
use super::inner::Inner;
use super::options::Options;
use super::reserve::Reservation;
use crate::error::Result;
use crate::id::FileId;
use crate::manifest::{LiveSegment, LiveSet, Quarantine, hull};
use crate::sync::{Instant, assert_unlocked};
use std::time::Duration;

/// The first wait before segments in quarantine are read again. It doubles each time.
const TRY_AGAIN_MIN: Duration = Duration::from_secs(1);
const TRY_AGAIN_MAX: Duration = Duration::from_secs(3600);

/// A segment whose return would merge more than this many segments' worth of bytes stays in quarantine, because nothing else could compact
/// that range meanwhile.
const MERGED_SEGMENTS_MAX: u64 = 64;

impl Compaction {
    /// Merges a segment from quarantine into the levels. `None` if a running compaction is in the way, or the merge would be too large.
    pub fn back(
        live: &LiveSet,
        suspect: &LiveSegment,
        options: &Options,
        running: &[Reservation],
    ) -> Option<Self> {
        assert_unlocked();
        let Quarantine { left, overtaken } = Quarantine::of_level(suspect.meta.level)?;
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

impl Inner {
    /// Schedules the next read of the segments in quarantine, if there are any.
    pub fn try_suspects_later(&self) {
        if self.storage.options.read_only || self.live().quarantined().is_empty() {
            return;
        }
        let mut control = self.control.lock();
        control.suspects_wait = TRY_AGAIN_MIN;
        control.suspects_due = Some(Instant::now() + TRY_AGAIN_MIN);
        self.work.notify_all();
    }

    /// Queues the segments in quarantine, and schedules their next read, which is later each time.
    pub fn queue_suspects(&self) {
        let suspects: IdQueue = self.live().quarantined().iter().map(|s| s.meta.id).collect();
        let mut control = self.control.lock();
        // Another thread may have scheduled the read of a segment that has just left its level.
        if control.suspects_due.is_none() && !suspects.is_empty() {
            control.suspects_wait = (control.suspects_wait * 2).clamp(TRY_AGAIN_MIN, TRY_AGAIN_MAX);
            control.suspects_due = Some(Instant::now() + control.suspects_wait);
        }
        let before = std::mem::replace(&mut control.suspects_to_try, suspects);
        drop(control);
        drop(before);
    }

    /// Reserves the compaction that takes back the next segment in the queue, unless one comes back already. A segment that is blocked waits
    /// for its next turn.
    pub fn reserve_suspect(&self, may_compact: impl Fn(&Control) -> bool) -> Option<Compaction> {
        loop {
            let (id, live, running) = {
                let mut control = self.control.lock();
                if !may_compact(&control) || control.running.iter().any(Reservation::takes_back) {
                    return None;
                }
                (control.suspects_to_try.pop()?, self.live(), control.running.clone())
            };
            let suspect = live.quarantined().iter().find(|s| s.meta.id == id);
            let back = |s: &LiveSegment| Compaction::back(&live, s, &self.storage.options, &running);
            let Some(back) = suspect.and_then(back) else { continue };
            let mut control = self.control.lock();
            if may_compact(&control) && self.reserve_if_current(&mut control, &live, &back) {
                return Some(back);
            }
            control.suspects_to_try.push(id); // Something else came first. It is not blocked.
        }
    }

    /// Reads the segment that the compaction takes back, and runs the compaction if the whole segment is readable.
    pub fn take_back_if_readable(&self, compaction: &Compaction) -> Result<()> {
        match compaction.upper.first() {
            Some(suspect) if self.is_readable(suspect) => self.take_back(suspect, compaction),
            _ => Ok(()),
        }
    }

    /// Whether every byte of a segment is readable, bypassing every cache.
    pub fn is_readable(&self, segment: &LiveSegment) -> bool {
        self.check_whole(&segment.meta, &mut |_, _, _| Ok(()))
            .inspect_err(|error| tracing::debug!(%error, "a segment in quarantine is still unreadable"))
            .is_ok()
    }

    /// Takes a readable segment back from quarantine.
    pub fn take_back(&self, suspect: &LiveSegment, compaction: &Compaction) -> Result<()> {
        self.compact_one(compaction)?;
        let id = suspect.meta.id;
        if self.live().quarantined().iter().any(|s| s.meta.id == id) {
            return Ok(()); // The store is closing.
        }
        tracing::info!(segment = %id, "a segment is readable again and has left quarantine");
        self.queue_if_without_sidecar(id);
        Ok(())
    }

    fn queue_if_without_sidecar(&self, id: FileId) {
        let live = self.live();
        if self.storage.filters_on() && live.segments().any(|s| s.meta.id == id && s.sidecar.is_none()) {
            self.control.lock().sidecars_to_check.push(id);
            self.work.notify_all();
        }
    }
}

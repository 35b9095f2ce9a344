//! Manual compaction: turns a range of keys into one run without tombstones, in steps as small as those of
//! background compactions.
//!
//! 1. It covers everything before the call, by sequence number, so it finishes while writes keep coming.
//! 2. From the top down, it empties each level into the next: level 0 in groups, other levels segment by
//!    segment, each with what it overlaps below. In the deepest level, it rewrites segments with tombstones.
//!    Other segments there stay, and so do those of windowed keyspaces until their time buckets end.
//! 3. Each step runs in the caller's thread and reserves its keys like any other compaction; background
//!    compactions run at the same time. When level 0 needs compaction, every other step does that, or waits
//!    for the thread that does, so writers wait for at most one step (I7).
//! 4. Each finished step is published. After a crash, the next call continues with what remains.

use super::Compactor;
use super::compaction::{Compaction, needs_no_tombstones};
use super::pick::{deepest_bytes_max, level0_is_due, pick_due};
use super::reservation::Reservation;
use crate::bounds::KeyRange;
use crate::engine::shared::Shared;
use crate::error::{Error, Result};
use crate::key::{Seq, Time};
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::{LEVELS, SegmentMeta};
use crate::progress::{Tell, Tracker};
use crate::sync::assert_unlocked;
use std::ops::Bound;
use std::sync::Arc;

/// A manual compaction in progress.
struct ManualCompaction {
    range: KeyRange,
    /// Newer entries were written after the call.
    newest: Seq,
    /// The run's level, unless a deeper one is in use by then.
    level: usize,
    /// When it began: rows that have expired by then are gone afterwards.
    now: Time,
}

/// What to do next.
enum NextStep {
    Compact(Compaction),
    /// Other compactions own the rest.
    Wait,
    Done,
}

impl ManualCompaction {
    fn covers(&self, segment: &LiveSegment) -> bool {
        let meta = &segment.meta;
        let from = match &self.range.0 {
            Bound::Included(key) => meta.largest >= *key,
            Bound::Excluded(key) => meta.largest > *key,
            Bound::Unbounded => true,
        };
        let to = match &self.range.1 {
            Bound::Included(key) => meta.smallest <= *key,
            Bound::Excluded(key) => meta.smallest < *key,
            Bound::Unbounded => true,
        };
        from && to && meta.min_seq <= self.newest && (!meta.is_in_bucket() || meta.has_bucket_ended(self.now))
    }

    /// About how many bytes are still to be merged: those above the run's level, as often as they change
    /// their level. What they meet there is not known before.
    fn bytes_left(&self, live: &LiveSet) -> u64 {
        let target = self.level.max(live.deepest());
        let levels = live.levels().iter().enumerate().take(target);
        let covered = levels.flat_map(|(number, level)| {
            let covered = level.segments().iter().filter(|s| self.covers(s));
            covered.map(move |s| s.meta.file_bytes.saturating_mul((target - number) as u64))
        });
        covered.fold(0, u64::saturating_add)
    }

    fn next(&self, live: &LiveSet, running: &[Reservation]) -> NextStep {
        assert_unlocked();
        if let Some(dropped) = Compaction::drop_expired(live, self.now, running) {
            return NextStep::Compact(dropped);
        }
        let target = self.level.max(live.deepest());
        let mut levels = live.levels().iter().enumerate().take(target);
        let covered = |s: &LiveSegment| self.covers(s);
        if let Some((level, from)) = levels.find(|(_, level)| level.segments().iter().any(covered)) {
            let step = match level {
                0 => self.out_of_level0(live, running),
                _ => {
                    let mut upper = from.segments().iter().filter(|s| covered(s));
                    upper.find_map(|s| Compaction::down(live, vec![s.clone()], level + 1, running))
                }
            };
            return step.map_or(NextStep::Wait, NextStep::Compact);
        }
        let Some(deepest) = live.levels().get(target) else { return NextStep::Done };
        let mut step = NextStep::Done;
        // Tombstones stay if a quarantined segment may have what they hide.
        let loses_tombstones = |s: &LiveSegment| s.meta.has_tombstones() && needs_no_tombstones(live, s);
        let has_expired = |s: &LiveSegment| s.meta.expiries.first().is_some_and(|first| first <= self.now);
        let loses_rows = |s: &LiveSegment| loses_tombstones(s) || has_expired(s);
        let is_due = |s: &&LiveSegment| covered(s) && (s.meta.is_of_earlier_format() || loses_rows(s));
        for segment in deepest.segments().iter().filter(is_due) {
            match Compaction::rewrite(live, segment, running) {
                Some(compaction) => return NextStep::Compact(compaction),
                None => step = NextStep::Wait,
            }
        }
        step
    }

    /// Merges covered segments of level 0 into level 1: those up to the first time bucket between them that
    /// stays. A merge takes along what lies between its inputs.
    fn out_of_level0(&self, live: &LiveSet, running: &[Reservation]) -> Option<Compaction> {
        let starts = |which: &dyn Fn(&LiveSegment) -> bool| {
            live.levels()[0].segments().iter().filter(|s| which(s)).map(|s| &s.meta.smallest).min()
        };
        let first = starts(&|s| self.covers(s))?;
        let bucket = starts(&|s| s.meta.is_in_bucket() && !self.covers(s) && s.meta.smallest > *first);
        let is_before = |s: &LiveSegment| bucket.is_none_or(|bucket| s.meta.smallest < *bucket);
        Compaction::of_level0(live, |s| self.covers(s) && is_before(s), running)
    }
}

/// A compaction that stays reserved while this lives.
pub(super) struct ReservedStep<'a> {
    shared: &'a Shared,
    pub compaction: Compaction,
}

impl Drop for ReservedStep<'_> {
    fn drop(&mut self) {
        let mut control = self.shared.control.lock();
        control.compactions.running.retain(|running| running != self.compaction.reservation());
        control.compactions.manual -= 1;
        control.finished += 1;
        drop(control);
        self.shared.wake_all();
    }
}

impl Compactor {
    /// Compacts the segments with keys in the range, written up to `newest`, which the caller has flushed.
    /// Stops after a step if `progress` returns `Break`.
    pub fn compact_range(&self, range: KeyRange, newest: Seq, progress: &mut Tell<'_>) -> Result<()> {
        let mut progress = Tracker::new(progress, None);
        let live = self.shared.live();
        let bytes: u64 = live.levels().iter().map(|level| level.file_bytes()).sum();
        // If the level is too small for the run, a background thread would empty it at once.
        let fits =
            |level: &usize| deepest_bytes_max(*level, self.shared.storage.options.segment_bytes) >= bytes;
        let level = (live.deepest().max(1)..LEVELS - 1).find(fits).unwrap_or(LEVELS - 1);
        let now = self.shared.storage.clock.moment();
        let manual = ManualCompaction { range, newest, level, now };
        self.take_back_covered(&manual)?;
        let mut level0_was_last = false;
        while let Some(step) = self.next_step(&manual, &mut level0_was_last)? {
            let bytes = step.compaction.inputs().map(|s| s.meta.file_bytes).sum();
            self.note_failure(self.compact_one(&step.compaction))?;
            drop(step);
            progress.expect(manual.bytes_left(&self.shared.live()).saturating_add(bytes));
            if progress.advance(bytes).is_break() {
                return Ok(());
            }
        }
        progress.finish();
        Ok(())
    }

    /// Takes back the covered segments in quarantine that are readable again.
    fn take_back_covered(&self, manual: &ManualCompaction) -> Result<()> {
        for suspect in
            self.shared.live().quarantined().iter().filter(|s| manual.covers(s) && self.is_readable(s))
        {
            if let Some(step) = self.reserve_take_back(&suspect.meta)? {
                self.note_failure(self.take_back(suspect, &step.compaction))?;
            }
        }
        Ok(())
    }

    /// Reserves the compaction that takes a segment back from quarantine. `None` if it is no longer there or
    /// cannot come back.
    fn reserve_take_back(&self, meta: &SegmentMeta) -> Result<Option<ReservedStep<'_>>> {
        loop {
            let (live, running) = self.live_and_running()?;
            let Some(suspect) = live.now(meta).filter(|s| s.is_quarantined()) else { return Ok(None) };
            let back =
                |running: &[_]| Compaction::back(&live, suspect, &self.shared.storage.options, running);
            match back(&running) {
                Some(compaction) => match self.reserve_step(&live, compaction) {
                    None => continue,
                    step => return Ok(step),
                },
                None if back(&[]).is_none() => return Ok(None),
                None => self.wait_for_change(&live, &running)?,
            }
        }
    }

    /// The live set, and the reservations of the running compactions.
    pub(super) fn live_and_running(&self) -> Result<(Arc<LiveSet>, Vec<Reservation>)> {
        let mut seen = None;
        self.shared.wait_until(|control| {
            seen = Some((self.shared.live(), control.compactions.running.clone()));
            !control.closing
        })?;
        seen.ok_or(Error::Closing)
    }

    /// Reserves a step that was chosen for this live set. `None` if it must be chosen again.
    pub(super) fn reserve_step(
        &self,
        live: &Arc<LiveSet>,
        compaction: Compaction,
    ) -> Option<ReservedStep<'_>> {
        let mut control = self.shared.control.lock();
        let is_reserved = !control.closing && compaction.reserve(&self.shared, &mut control, live);
        control.compactions.manual += usize::from(is_reserved);
        drop(control);
        is_reserved.then(|| ReservedStep { shared: &self.shared, compaction })
    }

    /// Waits until a compaction ends or the live set changes.
    fn wait_for_change(&self, live: &Arc<LiveSet>, running: &[Reservation]) -> Result<()> {
        self.shared
            .wait_until(|control| control.compactions.running != running || !self.shared.is_current(live))
    }

    pub(super) fn note_failure(&self, outcome: Result<()>) -> Result<()> {
        outcome.inspect_err(|error| self.shared.count_shortage(error)).map_err(|e| match e {
            Error::Poisoned { .. } => e,
            _ if self.publisher.quarantine(&e) => e,
            _ => self.shared.fail(e),
        })
    }

    /// Waits for the next step and reserves it. `None` if nothing is left to do.
    fn next_step(
        &self,
        manual: &ManualCompaction,
        level0_was_last: &mut bool,
    ) -> Result<Option<ReservedStep<'_>>> {
        loop {
            let (live, running) = self.live_and_running()?;
            let level0_first = level0_is_due(&live, &self.shared.storage.options) && !*level0_was_last;
            let next = match pick_due(&live, &self.shared.storage.options, &running) {
                Some(compaction) if level0_first => NextStep::Compact(compaction),
                None if level0_first && !running.iter().any(|r| r.writes(1)) => NextStep::Wait,
                _ => manual.next(&live, &running),
            };
            match next {
                NextStep::Compact(compaction) => {
                    if let Some(step) = self.reserve_step(&live, compaction) {
                        *level0_was_last = level0_first;
                        return Ok(Some(step));
                    }
                }
                NextStep::Wait => self.wait_for_change(&live, &running)?,
                NextStep::Done => {
                    *level0_was_last = false;
                    return Ok(None);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::engine::compact::level_tests::store_of;

    #[test]
    fn i7_level_0_takes_every_other_step_of_a_manual_compaction_and_no_more() {
        let (_dir, path) = store_of(&[(3, &[("z", "1")]), (1, &[("m", "1")])]);
        let db = Options::new().background_threads(2).open(&path).unwrap();
        // As if the only thread for compactions were busy elsewhere.
        let elsewhere = Reservation::of(db.engine().shared.live().levels()[3].segments().iter(), 4);
        db.engine().shared.control.lock().compactions.running.extend(elsewhere);
        while !level0_is_due(&db.engine().shared.live(), &db.engine().shared.storage.options) {
            db.put("a", "1").unwrap();
            db.flush().unwrap();
        }
        let range = (Bound::Included(b"m".to_vec()), Bound::Unbounded);
        let manual = ManualCompaction { range, newest: Seq::MAX, level: 2, now: Time::START };
        let mut level0_was_last = false;
        let mut into = || {
            let step = db.engine().compactor.next_step(&manual, &mut level0_was_last).unwrap();
            step.map(|step| step.compaction.output_level)
        };
        assert_eq!([into(), into(), into(), into()], [Some(1), Some(2), Some(1), Some(2)]);
    }
}

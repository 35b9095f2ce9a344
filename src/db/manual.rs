//! Manual compaction: a range of keys becomes one run without tombstones, in steps that are as small as those of the background.
//!
//! 1. It concerns what was there when it was called, by sequence number: a store that takes writes meanwhile cannot keep it for ever.
//! 2. From the top down, each level is emptied into the next: level 0 in groups, another level segment by segment, each with what it
//!    overlaps below. In the deepest level, segments with tombstones are written anew. What is there already stays.
//! 3. Each step runs in the caller's thread and owns its keys like any other compaction; the background works beside it. When level 0
//!    is due, every other step goes to that, or waits for whoever has it: writers wait for one step at most (I7).
//! 4. A step that is done is published. After a crash the next call goes on with what remains.

use super::control::Control;
use super::inner::Inner;
use super::lock::lock;
use super::pick::{Compaction, level0_is_due, pick_level0, target_bytes};
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::key::Seq;
use crate::manifest::{LEVELS, LiveSegment, LiveSet};
use std::ops::Bound;
use std::sync::atomic::Ordering;

/// Ends of a range of keys.
pub(crate) type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Whether no key at all is in a range.
fn is_empty((from, to): &KeyRange) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}

/// What is to become one run.
struct Goal {
    range: KeyRange,
    /// Entries beyond this came after the call.
    newest: Seq,
    /// Where the run goes, unless a deeper level is in use by then.
    level: usize,
}

/// What a look at the live set says.
enum Next {
    Run(Compaction),
    /// What remains is being compacted by others.
    Wait,
    Done,
}

impl Goal {
    fn concerns(&self, segment: &LiveSegment) -> bool {
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
        from && to && meta.min_seq <= self.newest
    }

    fn next(&self, live: &LiveSet, control: &Control) -> Next {
        let running = &control.running;
        let target = self.level.max(live.deepest());
        let mut levels = live.levels().iter().enumerate().take(target);
        let concerned = |s: &LiveSegment| self.concerns(s);
        if let Some((level, from)) = levels.find(|(_, level)| level.segments().iter().any(concerned)) {
            let step = match level {
                0 => Compaction::of_level0(live, concerned, running),
                _ => {
                    let mut upper = from.segments().iter().filter(|s| concerned(s));
                    upper.find_map(|s| Compaction::down(live, vec![s.clone()], level + 1, running))
                }
            };
            return step.map_or(Next::Wait, Next::Run);
        }
        let Some(deepest) = live.levels().get(target) else { return Next::Done };
        let mut step = Next::Done;
        for segment in deepest.segments().iter().filter(|s| s.meta.tombstones > 0 && concerned(s)) {
            match Compaction::rewrite(live, segment, running) {
                Some(compaction) if !compaction.bottom => {} // Something in quarantine needs its tombstones.
                Some(compaction) => return Next::Run(compaction),
                None => step = Next::Wait,
            }
        }
        step
    }
}

/// A step, with its reservation for as long as it lives.
struct Step<'a> {
    inner: &'a Inner,
    compaction: Compaction,
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        let mut control = lock(&self.inner.control);
        let done = self.compaction.reservation();
        control.running.retain(|running| Some(running) != done.as_ref());
        control.manual -= 1;
        drop(control);
        self.inner.work.notify_all();
        self.inner.progress.notify_all();
    }
}

impl Inner {
    /// Flushes, then compacts the segments that have keys of the range; nothing for an empty range.
    pub fn compact_range(&self, range: KeyRange) -> Result<()> {
        if is_empty(&range) {
            return self.check_writable();
        }
        let newest = self.visible.load(Ordering::Acquire);
        self.flush()?;
        let live = self.live();
        let bytes: u64 = live.levels().iter().map(|level| level.file_bytes()).sum();
        // A level that is too small for its run would be emptied by the background at once.
        let fits = |level: &usize| target_bytes(*level, self.storage.options.segment_bytes) >= bytes;
        let level = (live.deepest().max(1)..LEVELS - 1).find(fits).unwrap_or(LEVELS - 1);
        let goal = Goal { range, newest, level };
        self.take_back_concerned(&goal)?;
        let mut gave_way = false;
        while let Some(step) = self.next_step(&goal, &mut gave_way)? {
            self.note_failure(self.compact_one(&step.compaction))?;
        }
        Ok(())
    }

    /// What is in quarantine and reads well by now takes part.
    fn take_back_concerned(&self, goal: &Goal) -> Result<()> {
        for suspect in self.live().quarantined().iter().filter(|s| goal.concerns(s) && self.reads_well(s)) {
            if let Some(step) = self.step_back(suspect.meta.id)? {
                self.note_failure(self.take_back(suspect, &step.compaction))?;
            }
        }
        Ok(())
    }

    /// Reserves the way back of a segment from quarantine. `None` when it has gone already, or cannot come back.
    fn step_back(&self, id: FileId) -> Result<Option<Step<'_>>> {
        let mut step = None;
        self.wait_until(|control| {
            let live = self.live();
            let Some(suspect) = live.quarantined().iter().find(|s| s.meta.id == id) else { return true };
            let back = |running: &[_]| Compaction::back(&live, suspect, &self.storage.options, running);
            match back(&control.running) {
                Some(compaction) => step = Some(self.reserve(control, compaction)),
                None => return back(&[]).is_none(),
            }
            true
        })?;
        Ok(step)
    }

    fn reserve(&self, control: &mut Control, compaction: Compaction) -> Step<'_> {
        control.running.extend(compaction.reservation());
        control.manual += 1;
        Step { inner: self, compaction }
    }

    fn note_failure(&self, outcome: Result<()>) -> Result<()> {
        outcome.inspect_err(|error| self.count_shortage(error)).map_err(|e| match e {
            Error::Poisoned { .. } => e,
            _ if self.quarantine(&e) => e,
            _ => self.fail(e),
        })
    }

    /// Waits until there is a step to take, and reserves it. `None` when nothing is left to do.
    fn next_step(&self, goal: &Goal, gave_way: &mut bool) -> Result<Option<Step<'_>>> {
        let mut step = None;
        self.wait_until(|control| {
            let live = self.live();
            if control.closing {
                return false;
            }
            let level0_first = level0_is_due(&live, &self.storage.options) && !*gave_way;
            let next = match pick_level0(&live, &control.running) {
                Some(compaction) if level0_first => Next::Run(compaction),
                None if level0_first && !control.running.iter().any(|r| r.writes(1)) => Next::Wait,
                _ => goal.next(&live, control),
            };
            *gave_way = level0_first && matches!(next, Next::Run(_));
            match next {
                Next::Run(compaction) => {
                    step = Some(self.reserve(control, compaction));
                    true
                }
                Next::Wait => false,
                Next::Done => true,
            }
        })?;
        Ok(step)
    }
}

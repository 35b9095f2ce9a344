//! The next compaction of the background threads.

use super::Compactor;
use super::compaction::Compaction;
use super::pick::pick;
use crate::engine::control::Control;
use crate::error::Result;
use crate::sync::lock;

/// Whether there is something to compact.
pub(crate) enum NextCompaction {
    /// This one, already reserved.
    Reserved(Compaction),
    Nothing,
    /// There may be one, but none may start now.
    NotNow,
}

impl Compactor {
    /// Reserves the most urgent compaction, if one may start.
    pub fn next(&self, may_compact: impl Fn(&Control) -> bool) -> NextCompaction {
        let mut costs = lock(&self.costs);
        if let Some(back) = self.reserve_suspect(&may_compact) {
            return NextCompaction::Reserved(back);
        }
        loop {
            let (live, running, idle) = {
                let control = self.shared.control.lock();
                let idle = control.idleness.until_idle().is_zero();
                (self.shared.live(), control.compactions.running.clone(), idle)
            };
            let now = self.shared.storage.clock.moment();
            let Some(picked) = pick(&mut costs, &live, &self.shared.storage.options, &running, idle, now)
            else {
                return NextCompaction::Nothing;
            };
            let mut control = self.shared.control.lock();
            if !may_compact(&control) {
                return NextCompaction::NotNow;
            }
            if picked.reserve(&self.shared, &mut control, &live) {
                return NextCompaction::Reserved(picked);
            }
        }
    }

    /// Runs a reserved compaction.
    pub fn carry_out(&self, compaction: &Compaction) -> Result<()> {
        if compaction.reservation().takes_back() {
            self.take_back_if_readable(compaction)
        } else {
            self.compact_one(compaction)
        }
    }
}

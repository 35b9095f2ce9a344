//! A log that failed for lack of space, and how the store takes writes again without a reopening (I5).
//!
//! 1. The group whose append or sync failed gets the error: it is not in the memtable, and its sequence numbers go to the next one. The
//!    file is not written again.
//! 2. All that was acknowledged stands in memtables. The next write begins a new log and hands the memtable to the background.
//! 3. Once that is flushed, the manifest's floor is at the new log, and only then writes go on. Before, a crash finds the old log, perhaps
//!    with the group that failed, and an empty new one; after it, the old log counts no more.

use super::failure::Remedy;
use super::inner::Inner;
use super::lock::lock;
use super::log::{ActiveLog, LogHealth};
use super::retry::TaskKind;
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::wal;

impl Inner {
    /// Keeps a log that a rotation has replaced for the next sync. One that failed is not synced, nor are those before it: they are
    /// flushed before the new one takes writes.
    pub fn retire(&self, log: &mut ActiveLog, earlier: (FileId, wal::LogWriter)) {
        let mut unsynced = lock(&self.unsynced);
        unsynced.push(earlier);
        if log.health == LogHealth::Failed {
            unsynced.clear();
            log.health = LogHealth::AwaitingFlush;
        }
    }

    /// Takes note of a failed append or sync of the log.
    pub fn fail_log(&self, log: &mut ActiveLog, error: Error) -> Error {
        if Remedy::of(&error) != Remedy::Retry {
            return self.fail(error);
        }
        self.count_shortage(&error);
        tracing::warn!(%error, "the log cannot be written: writes are refused until there is space");
        log.health = LogHealth::Failed;
        error
    }

    /// Before a write or a sync: gets a log that failed out of the way.
    pub fn resume(&self, log: &mut ActiveLog) -> Result<()> {
        if log.health == LogHealth::Sound {
            return Ok(());
        }
        if log.health == LogHealth::Failed {
            self.rotate(log)?;
        }
        let id: FileId = log.id;
        self.wait_for_work(|control| (control.log_floor < id).then_some(TaskKind::Flush))?;
        log.health = LogHealth::Sound;
        tracing::info!("everything written before is in segments: writes go on");
        Ok(())
    }
}

//! How a store whose log failed for lack of space accepts writes again without being reopened (I5).
//!
//! 1. The writers of the group whose append or sync failed get the error. The group is not in the memtable, and the next group reuses its
//!    sequence numbers. The file is never written again.
//! 2. Every acknowledged write is in a memtable. The next write starts a new log and hands the memtable to a background
//!    thread.
//! 3. Once that memtable is flushed, the manifest's floor is at the new log, and writes resume. A crash before that finds the old log,
//!    perhaps with the failed group, and an empty new one. After it, the old log no longer matters.

use super::log::{ActiveLog, LogHealth};
use crate::engine::failure::Remedy;
use crate::engine::retry::TaskKind;
use crate::engine::shared::Inner;
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::sync::lock;
use crate::wal;

impl Inner {
    /// Keeps a log that another one has replaced for the next sync. After a failure, neither that log nor earlier ones are synced: their writes
    /// are flushed before the new log takes any.
    pub fn retire(&self, log: &mut ActiveLog, earlier: (FileId, wal::LogWriter)) {
        let mut unsynced = lock(&self.unsynced);
        unsynced.push(earlier);
        if log.health == LogHealth::Failed {
            unsynced.clear();
            log.health = LogHealth::AwaitingFlush;
        }
    }

    /// Records a failed append or sync of the log, and returns the error.
    pub fn fail_log(&self, log: &mut ActiveLog, error: Error) -> Error {
        if Remedy::of(&error) != Remedy::Retry {
            return self.fail(error);
        }
        self.count_shortage(&error);
        tracing::warn!(%error, "cannot write the log; writes fail until there is space");
        log.health = LogHealth::Failed;
        error
    }

    /// Replaces a failed log before a write or a sync.
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
        tracing::info!("earlier writes are in segments; the store accepts writes again");
        Ok(())
    }
}

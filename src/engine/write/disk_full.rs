//! How a store whose log failed for lack of space accepts writes again without being reopened (I5).
//!
//! 1. The writers of the group whose append or sync failed get the error. The group is not in the memtable,
//!    and the next group reuses its sequence numbers. The file is never written again.
//! 2. Every acknowledged write is in a memtable. The next write starts a new log and hands the memtable to a
//!    background thread.
//! 3. Once that memtable is flushed, the manifest's floor is at the new log, and writes resume. A crash
//!    before that leaves the old log, perhaps with the failed group, and an empty new one. After that, the
//!    old log no longer matters.

use super::Writer;
use super::log::{ActiveLog, LogHealth};
use crate::engine::backoff::TaskKind;
use crate::error::Result;
use crate::id::FileId;

impl Writer {
    /// Replaces a failed log before a write or a sync.
    pub fn resume(&self, log: &mut ActiveLog) -> Result<()> {
        if log.health == LogHealth::Sound {
            return Ok(());
        }
        if log.health == LogHealth::Failed {
            self.rotate(log)?;
        }
        let id: FileId = log.id;
        self.shared.wait_for_work(|control| (control.logs.floor < id).then_some(TaskKind::Flush))?;
        log.health = LogHealth::Sound;
        tracing::info!("earlier writes are in segments; the store accepts writes again");
        Ok(())
    }
}

//! Changes of log: each memtable has its own log, and a failed log is replaced.

use super::Writer;
use super::log::{ActiveLog, LogHealth};
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::remedy::Remedy;
use crate::sync::Instant;
use crate::wal;
use std::sync::Arc;

impl Writer {
    /// Starts a new log and memtable, and hands the full memtable to a background thread.
    pub fn rotate(&self, log: &mut ActiveLog) -> Result<()> {
        self.in_flight.wait_for_all(&self.shared)?;
        let fresh = Arc::new(log.memtable.next(self.shared.storage.options.memtable_bytes)?);
        self.start_log(log)?;
        let full = std::mem::replace(&mut log.memtable, fresh);
        let mut control = self.shared.control.lock();
        control.flushes.waiting.push_back((Arc::clone(&full), log.id));
        control.idleness.last_full = Some(Instant::now());
        let before = self.shared.change_view(&mut control, |view| {
            view.active = Arc::clone(&log.memtable);
            view.immutable.insert(0, full);
        });
        drop(control);
        drop(before);
        self.shared.begin_epoch();
        self.shared.wake_workers();
        Ok(())
    }

    /// Continues in a new log, with the same memtable.
    pub fn start_log(&self, log: &mut ActiveLog) -> Result<()> {
        let id = self.shared.storage.take_id();
        let path = self.shared.storage.path_of(id, FileKind::Wal);
        let writer = wal::LogWriter::create(
            &*self.shared.storage.fs,
            &path,
            id,
            self.shared.storage.header.store_id,
            log.next_seq,
        )
        .inspect_err(|e| self.shared.count_shortage(e))
        .map_err(|e| self.shared.fail(e))?;
        let earlier = std::mem::replace(&mut log.writer, writer);
        let earlier = (std::mem::replace(&mut log.id, id), earlier);
        self.retire(log, earlier);
        Ok(())
    }

    /// Keeps a replaced log for the next sync. After a failure, neither that log nor earlier ones are synced:
    /// their writes are flushed before the new log takes any.
    pub fn retire(&self, log: &mut ActiveLog, earlier: (FileId, wal::LogWriter)) {
        self.publisher.unsynced().push(earlier);
        if log.health == LogHealth::Failed {
            self.publisher.unsynced().clear();
            log.health = LogHealth::AwaitingFlush;
        }
    }

    /// Records a failed append or sync of the log, and returns the error.
    pub fn fail_log(&self, log: &mut ActiveLog, error: Error) -> Error {
        if Remedy::of(&error) != Remedy::Retry {
            return self.shared.fail(error);
        }
        self.shared.count_shortage(&error);
        tracing::warn!(%error, "cannot write the log; writes fail until there is space");
        log.health = LogHealth::Failed;
        error
    }
}

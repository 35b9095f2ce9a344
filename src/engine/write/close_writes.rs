//! What a closing store writes: everything in memory becomes durable.

use super::Writer;
use super::log::{ActiveLog, Log, LogHealth};
use crate::engine::open::recover::LOG_KEPT_BYTES;
use crate::error::Result;
use crate::sync::lock;

impl Writer {
    /// Takes no writes any more.
    pub fn close(&self) {
        *lock(&self.log) = Log::Closed;
    }

    /// Makes everything durable and takes no writes any more.
    pub fn sync_and_close(&self) -> Result<()> {
        let mut log = lock(&self.log);
        let synced = self.sync_or_flush(&mut log);
        *log = Log::Closed;
        synced
    }

    /// Makes everything durable: in the log if little is in memory, otherwise in segments.
    fn sync_or_flush(&self, log: &mut Log) -> Result<()> {
        if matches!(log, Log::Inherited(_)) {
            return self.publisher.publish_marks();
        }
        let log = self.active_log(log)?;
        self.in_flight.wait_for_all(&self.shared)?;
        let waiting: usize =
            self.shared.control.lock().flushes.waiting.iter().map(|(table, _)| table.bytes()).sum();
        if log.health == LogHealth::Sound && waiting + log.memtable.bytes() < LOG_KEPT_BYTES {
            self.sync_log(log)?;
            return self.publisher.publish_marks();
        }
        self.flush_here(log).inspect_err(|_| {
            // The data stays in the log, which is only touched again if it has not failed.
            if log.health == LogHealth::Sound
                && let Err(error) = self.sync_log(log)
            {
                tracing::error!(%error, "cannot sync the log of a closing store");
            }
        })
    }

    /// Writes what is in memory to segments, in this thread.
    pub fn flush_all(&self) -> Result<()> {
        self.flush_here(self.active_log(&mut lock(&self.log))?)
    }

    /// Flushes all memtables in this thread.
    fn flush_here(&self, log: &mut ActiveLog) -> Result<()> {
        self.in_flight.wait_for_all(&self.shared)?;
        if !log.memtable.is_empty() || log.health == LogHealth::Failed {
            self.rotate(log)?;
        }
        loop {
            let next = self.shared.control.lock().flushes.waiting.pop_front();
            let Some((table, next_log)) = next else { return Ok(()) };
            self.flush_one(&table, next_log)?;
        }
    }
}

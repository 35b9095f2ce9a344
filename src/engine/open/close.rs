//! Closing a store, when its last handle is dropped.
//!
//! 1. Running compactions are abandoned and the background threads end.
//! 2. A short log is synced and kept. A long one is flushed, so that the next open is quick. After a clean close and an open without writes,
//!    there is nothing to do: every file stays as it is.
//! 3. A level 0 over its limit is merged: a store that is never open for long would not get to that otherwise.
//!
//! A process that was forked from the one that opened the store closes nothing (I13): see [`Process`](crate::fs::Process).

use super::recover::LOG_KEPT_BYTES;
use crate::engine::read::kept;
use crate::engine::shared::Inner;
use crate::engine::write::log::{ActiveLog, Log, LogHealth};
use crate::error::{Error, Result};
use crate::fs::LockGuard;
use crate::sync::{JoinHandle, lock};
use std::sync::Arc;

/// An open store with its threads and its lock file. Dropped with the last [`Db`](crate::Db).
pub(crate) struct OpenStore {
    pub inner: Arc<Inner>,
    pub threads: Vec<JoinHandle<()>>,
    is_closed: bool,
    /// `None` in a store that follows another process.
    _lock: Option<Box<dyn LockGuard>>,
}

impl OpenStore {
    /// A store without threads yet.
    pub fn new(inner: Arc<Inner>, lock: Option<Box<dyn LockGuard>>) -> Self {
        OpenStore { inner, threads: Vec::new(), is_closed: false, _lock: lock }
    }

    /// What a close does in a forked process, which has the store's memory but neither its threads nor what they have locked: the drop of the
    /// locks' files unlocks nothing, and all else is left alone.
    fn leave_to_parent(&mut self) {
        // Not even detached: the C library may have reused the memory that tells of them.
        std::mem::forget(std::mem::take(&mut self.threads));
        if let Some(following) = &self.inner.following {
            following.versions.abandon();
        }
    }

    /// Ends the threads and makes everything durable. Does nothing the second time.
    pub fn close(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        if !self.inner.storage.process.is_current() {
            self.leave_to_parent();
            return Err(Error::Forked);
        }
        self.inner.control.lock().closing = true;
        self.inner.work.notify_all();
        self.inner.progress.notify_all();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a background thread panicked");
            }
        }
        if let Some(following) = &self.inner.following {
            following.leave_to(&self.inner.live());
        }
        let closed = match self.inner.check_writable() {
            Err(Error::ReadOnly) => Ok(()),
            writable => {
                writable.and_then(|()| self.inner.sync_or_flush()).and_then(|()| self.inner.relieve_level0())
            }
        };
        kept::forget(self.inner.current.store);
        closed
    }
}

impl Drop for OpenStore {
    fn drop(&mut self) {
        match self.close() {
            Ok(()) | Err(Error::Forked) => {}
            Err(Error::Poisoned { .. }) => {} // The failure was reported when it happened.
            Err(error) => tracing::error!(%error, "cannot close the store cleanly"),
        }
    }
}

impl Inner {
    /// Makes everything durable: in the log if little is in memory, in segments otherwise.
    fn sync_or_flush(&self) -> Result<()> {
        let mut log = lock(&self.log);
        if matches!(&*log, Log::Inherited(_)) {
            return Ok(());
        }
        let log = self.active_log(&mut log)?;
        let waiting: usize = self.control.lock().to_flush.iter().map(|(table, _)| table.bytes()).sum();
        if log.health == LogHealth::Sound && waiting + log.memtable.bytes() < LOG_KEPT_BYTES {
            self.sync_log(log)?;
            return self.publish_log_mark();
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

    /// Flushes all memtables in this thread.
    fn flush_here(&self, log: &mut ActiveLog) -> Result<()> {
        if !log.memtable.is_empty() || log.health == LogHealth::Failed {
            self.rotate(log)?;
        }
        loop {
            let next = self.control.lock().to_flush.pop_front();
            let Some((table, next_log)) = next else { return Ok(()) };
            self.flush_one(&table, next_log)?;
        }
    }
}

//! Closing a store, when its last handle is dropped.
//!
//! 1. Running compactions are abandoned and the background threads end.
//! 2. A short log is synced and kept; a long one is flushed, so that the next open is quick. A clean close
//!    after an open without writes changes no file.
//! 3. A level 0 over its limit is merged, for stores that are never open long enough to do it otherwise.
//!
//! A process that was forked from the one that opened the store closes nothing (I13): see
//! [`Process`](crate::fs::Process).

use crate::engine::Engine;
use crate::engine::read::Reader;
use crate::engine::read::kept::forget_filters;
use crate::engine::tasks::Threads;
use crate::error::{Error, Result};
use crate::fs::LockGuard;
use crate::sync::{JoinHandle, Mutex, is_current};
use std::sync::{Arc, PoisonError};

/// An open store with its threads and its lock file. Dropped with the last [`Db`](crate::Db).
pub(crate) struct OpenStore {
    pub reader: Reader,
    pub engine: Arc<Engine>,
    /// Held by whoever changes the options of the open store.
    pub threads: Mutex<Threads>,
    /// Only with a callback for events.
    pub events_thread: Option<JoinHandle<()>>,
    is_closed: bool,
    /// `None` in a store that follows another process.
    _lock: Option<Box<dyn LockGuard>>,
}

impl OpenStore {
    /// A store without threads yet.
    pub fn new(engine: Engine, lock: Option<Box<dyn LockGuard>>) -> Self {
        let reader = Reader::new(Arc::clone(&engine.shared));
        let (engine, threads) = (Arc::new(engine), Mutex::default());
        OpenStore { reader, engine, threads, events_thread: None, is_closed: false, _lock: lock }
    }

    /// Closes a store in a forked process, which has the store's memory, but neither its threads nor the
    /// locks that they hold. Dropping the lock files unlocks nothing, and everything else stays untouched.
    fn leave_to_parent(&mut self) {
        // Not even detached: the C library may have reused the memory that describes the threads.
        std::mem::forget((self.take_threads(), self.events_thread.take()));
        if let Some(follower) = &self.engine.follower {
            follower.following().versions.abandon();
        }
    }

    /// Starts its threads.
    pub fn start_threads(&mut self) -> Result<()> {
        let threads = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
        threads.start(&self.engine)
    }

    /// Takes no lock: in a forked process, it may be locked for good.
    fn take_threads(&mut self) -> Threads {
        std::mem::take(self.threads.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the threads and makes everything durable. Does nothing the second time.
    pub fn close(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        if !self.engine.shared.storage.process.is_current() {
            self.leave_to_parent();
            return Err(Error::Forked);
        }
        let threads = self.take_threads();
        let Engine { shared, writer, compactor, follower, .. } = &*self.engine;
        shared.control.lock().closing = true;
        shared.wake_all();
        threads.join();
        if let Some(follower) = follower {
            follower.following().leave_to(&shared.live());
        }
        let closed = match shared.check_writable() {
            Err(Error::ReadOnly) => Ok(()),
            writable => {
                writable.and_then(|()| writer.sync_and_close()).and_then(|()| compactor.relieve_level0())
            }
        };
        writer.close(); // In any case.
        forget_filters(shared.current.store);
        shared.storage.events.close();
        // The callback may hold the last handle. Its thread then ends by itself.
        let others = self.events_thread.take().filter(|thread| !is_current(thread));
        if others.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that delivers events panicked");
        }
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

//! Passes events on: to `tracing` at once, and to the callback from a thread of its own.
//!
//! Whatever emits an event may hold locks of the store, so the callback runs elsewhere: a stalled writer
//! holds the log, for one. Events wait in a bounded queue. If the callback cannot keep up, the newest are
//! dropped and counted, and the store goes on. A forked process, which has no such thread, emits none.

use crate::event::Event;
use crate::fs::Process;
use crate::options::EventCallback;
use crate::sync::{Condvar, Mutex, lock, wait};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Events that wait for the callback.
const WAITING_MAX: usize = 1024;

/// Where a store's events go.
pub(crate) struct Events {
    callback: Option<EventCallback>,
    queue: Mutex<Queue>,
    changed: Condvar,
    dropped: AtomicU64,
    process: Process,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Event>,
    is_closed: bool,
}

impl Events {
    /// For the store that this process opens.
    pub fn new(callback: Option<EventCallback>) -> Self {
        Events {
            callback,
            queue: Mutex::default(),
            changed: Condvar::new(),
            dropped: AtomicU64::new(0),
            process: Process::current(),
        }
    }

    /// Whether a thread must [deliver](Self::deliver) them.
    pub fn have_callback(&self) -> bool {
        self.callback.is_some()
    }

    /// Events that the callback has not been told because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Tells `tracing` and the callback. May be called with any lock held.
    pub fn emit(&self, event: Event) {
        if !self.process.is_current() {
            return; // A thread of the parent may have held the queue's lock.
        }
        event.trace();
        if !self.have_callback() {
            return;
        }
        let mut queue = lock(&self.queue);
        if queue.waiting.len() < WAITING_MAX {
            queue.waiting.push_back(event);
            drop(queue);
            self.changed.notify_one();
        } else {
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Calls the callback with each event until [`close`](Self::close), and then with those that still wait.
    pub fn deliver(&self) {
        let Some(callback) = &self.callback else { return };
        while let Some(event) = self.next() {
            if catch_unwind(AssertUnwindSafe(|| callback.call(&event))).is_err() {
                tracing::error!(event = event.name(), "the callback for events panicked");
            }
        }
    }

    fn next(&self) -> Option<Event> {
        let mut queue = lock(&self.queue);
        loop {
            match queue.waiting.pop_front() {
                None if !queue.is_closed => queue = wait(&self.changed, queue),
                next => return next,
            }
        }
    }

    /// Lets the thread end that delivers them, once none waits.
    pub fn close(&self) {
        lock(&self.queue).is_closed = true;
        self.changed.notify_all();
    }
}

//! The seam under a scheduler that decides by a seed which thread goes on.

pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
pub(crate) use shuttle::thread::{Builder, JoinHandle};

use std::cell::Cell;
use std::ops::Add;
use std::time::Duration;

std::thread_local! {
    /// The time, which only sleeping moves on: all threads of a schedule run in one.
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A moment of a schedule's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(Duration);

impl Instant {
    pub fn now() -> Self {
        Instant(NOW.get())
    }

    pub fn elapsed(self) -> Duration {
        Self::now().saturating_duration_since(self)
    }

    pub fn saturating_duration_since(self, earlier: Instant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, time: Duration) -> Instant {
        Instant(self.0 + time)
    }
}

/// Lets others run. They may not come to an end of their work before the time is over.
pub(crate) fn sleep(time: Duration) {
    let wake = NOW.get() + time;
    shuttle::thread::yield_now();
    NOW.set(NOW.get().max(wake));
}

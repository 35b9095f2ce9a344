//! The seam under a scheduler that picks the next thread by a seed.

pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
pub(crate) use shuttle::thread::{Builder, JoinHandle};

use arc_swap::Guard;
use shuttle::rand::{Rng, thread_rng};
use std::cell::Cell;
use std::ops::Add;
use std::sync::Arc;
use std::time::Duration;

std::thread_local! {
    /// The time, which only sleeping advances: all threads of a schedule run in one.
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A shared value that is replaced as a whole. Another thread may run before each use of it.
pub(crate) struct ArcSwap<T> {
    value: arc_swap::ArcSwap<T>,
    point: atomic::AtomicBool,
}

impl<T> ArcSwap<T> {
    pub fn from_pointee(value: T) -> Self {
        ArcSwap { value: arc_swap::ArcSwap::from_pointee(value), point: atomic::AtomicBool::new(false) }
    }

    fn after_point(&self) -> &arc_swap::ArcSwap<T> {
        self.point.load(atomic::Ordering::SeqCst);
        // Rarely so long that a memtable fills and is flushed, which makes a value loaded just before old.
        if thread_rng().gen_ratio(1, 256) {
            (0..5000).for_each(|_| shuttle::thread::yield_now());
        }
        &self.value
    }

    pub fn load(&self) -> Guard<Arc<T>> {
        self.after_point().load()
    }

    pub fn load_full(&self) -> Arc<T> {
        self.after_point().load_full()
    }

    pub fn store(&self, value: Arc<T>) {
        self.after_point().store(value);
    }

    pub fn swap(&self, value: Arc<T>) -> Arc<T> {
        self.after_point().swap(value)
    }
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

/// A time of day that goes with the schedule's time.
pub(super) fn time_of_day() -> std::time::SystemTime {
    std::time::UNIX_EPOCH + Duration::from_secs(1 << 30) + NOW.get()
}

/// Lets others run. They may not finish their work before the time is over.
pub(crate) fn sleep(time: Duration) {
    let wake = NOW.get() + time;
    shuttle::thread::yield_now();
    NOW.set(NOW.get().max(wake));
}

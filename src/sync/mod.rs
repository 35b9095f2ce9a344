//! Locks, signals, threads and time: the one seam between the engine and what schedules its threads.
//!
//! They are the standard library's. With `--cfg sidebloom_schedules` they are
//! [shuttle](https://docs.rs/shuttle)'s: all threads of a store run in one OS thread. At each use of a lock,
//! a signal or an atomic, another thread may continue, and a seed decides which. `cargo harness schedules`
//! builds the engine that way.
//!
//! `OnceLock` is no such point, and neither is what a memtable's list has beside its lock, and all atomics
//! are sequentially consistent there. Counters that decide nothing stay atomics of the standard library, so
//! they are no such points either.

#[cfg(sidebloom_schedules)]
mod scheduled;
mod short_lock;
mod wall_clock;

#[cfg(not(sidebloom_schedules))]
pub(crate) use arc_swap::ArcSwap;
#[cfg(sidebloom_schedules)]
pub(crate) use scheduled::{
    ArcSwap, Builder, Condvar, Instant, JoinHandle, Mutex, MutexGuard, atomic, sleep,
};
#[cfg(not(sidebloom_schedules))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard, atomic},
    thread::{Builder, JoinHandle, sleep},
    time::Instant,
};

#[cfg(feature = "bench-support")]
pub use short_lock::cpu_nanos;
pub(crate) use short_lock::{ShortGuard, ShortLock, assert_unlocked};
pub use wall_clock::{SystemClock, WallClock};

use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

/// Whether the calling thread is this one.
pub(crate) fn is_current(thread: &JoinHandle<()>) -> bool {
    #[cfg(not(sidebloom_schedules))]
    let current = std::thread::current();
    #[cfg(sidebloom_schedules)]
    let current = shuttle::thread::current();
    thread.thread().id() == current.id()
}

/// Locks a mutex, even if a thread panicked while it held the lock: every critical section leaves its data
/// valid at each step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex if no other thread holds it.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Releases the lock until the condition is signalled. May return earlier.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Releases the lock of `mutex`, which `guard` holds, until the condition is signalled or the timeout. May
/// return earlier.
pub(crate) fn wait_timeout<'a, T>(
    condition: &Condvar,
    mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    time: Duration,
) -> MutexGuard<'a, T> {
    #[cfg(not(sidebloom_schedules))]
    {
        _ = mutex;
        condition.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
    }
    // Shuttle's own never ends early. A signal that nobody waits for is lost, even just before the wait.
    #[cfg(sidebloom_schedules)]
    {
        // No schedule takes so long. A thread that looked now and then would only lengthen it.
        if time >= Duration::from_secs(10) {
            return wait(condition, guard);
        }
        drop(guard);
        sleep(time);
        lock(mutex)
    }
}

//! A lock for state that everybody waits for: under it, nobody does work that grows with the store (I7).
//!
//! With debug assertions, such work checks that its thread holds none ([`assert_unlocked`]). With the feature
//! `bench-support`, the longest CPU time of a thread under the lock is recorded.

use super::{Condvar, Mutex, MutexGuard, lock, wait, wait_timeout};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

#[cfg(all(debug_assertions, not(sidebloom_schedules)))]
std::thread_local!(static HELD: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });

/// A mutex that is held briefly.
pub(crate) struct ShortLock<T> {
    mutex: Mutex<T>,
    #[cfg(feature = "bench-support")]
    longest_nanos: std::sync::atomic::AtomicU64,
}

/// Holds a [`ShortLock`]. The fields are dropped in this order.
pub(crate) struct ShortGuard<'a, T> {
    guard: MutexGuard<'a, T>,
    hold: Hold<'a, T>,
}

/// From lock to unlock.
struct Hold<'a, T> {
    lock: &'a ShortLock<T>,
    #[cfg(feature = "bench-support")]
    since: u64,
}

impl<T> ShortLock<T> {
    pub fn new(value: T) -> Self {
        ShortLock {
            mutex: Mutex::new(value),
            #[cfg(feature = "bench-support")]
            longest_nanos: std::sync::atomic::AtomicU64::new(0),
        }
    }

    /// Locks it, even if a thread panicked while it held the lock (see [`lock`]).
    pub fn lock(&self) -> ShortGuard<'_, T> {
        let guard = lock(&self.mutex);
        ShortGuard { guard, hold: Hold::new(self) }
    }

    /// The longest time that a thread worked under the lock since the last call, in nanoseconds of CPU time,
    /// so that other load on the machine does not count.
    #[cfg(feature = "bench-support")]
    pub fn take_longest_nanos(&self) -> u64 {
        self.longest_nanos.swap(0, std::sync::atomic::Ordering::Relaxed)
    }
}

impl<T> ShortGuard<'_, T> {
    /// Releases the lock until the condition is signalled. May return earlier.
    pub fn wait(self, condition: &Condvar) -> Self {
        let ShortGuard { guard, hold } = self;
        let lock = hold.lock;
        drop(hold);
        let guard = wait(condition, guard);
        ShortGuard { guard, hold: Hold::new(lock) }
    }

    /// Releases the lock until the condition is signalled or the timeout. May return earlier.
    pub fn wait_timeout(self, condition: &Condvar, time: Duration) -> Self {
        let ShortGuard { guard, hold } = self;
        let lock = hold.lock;
        drop(hold);
        let guard = wait_timeout(condition, &lock.mutex, guard, time);
        ShortGuard { guard, hold: Hold::new(lock) }
    }
}

impl<T> Deref for ShortGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for ShortGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<'a, T> Hold<'a, T> {
    fn new(lock: &'a ShortLock<T>) -> Self {
        #[cfg(all(debug_assertions, not(sidebloom_schedules)))]
        HELD.with(|held| held.set(held.get() + 1));
        Hold {
            lock,
            #[cfg(feature = "bench-support")]
            since: cpu_nanos(),
        }
    }
}

impl<T> Drop for Hold<'_, T> {
    fn drop(&mut self) {
        #[cfg(all(debug_assertions, not(sidebloom_schedules)))]
        let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(1)));
        #[cfg(feature = "bench-support")]
        self.lock
            .longest_nanos
            .fetch_max(cpu_nanos().saturating_sub(self.since), std::sync::atomic::Ordering::Relaxed);
    }
}

/// The CPU time that this thread has used, in nanoseconds.
#[cfg(feature = "bench-support")]
pub fn cpu_nanos() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid for writing. The C library's call, because callgrind fails on rustix's.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Called by work that grows with the store.
#[inline]
pub(crate) fn assert_unlocked() {
    #[cfg(all(debug_assertions, not(sidebloom_schedules)))]
    assert_eq!(
        HELD.try_with(std::cell::Cell::get).unwrap_or(0),
        0,
        "work that grows with the store under a short lock"
    );
}

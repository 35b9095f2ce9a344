//! An allocator that counts the bytes in use, and refuses large filters on request.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// The smallest filter to refuse, in bytes.
static REFUSED: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: calls are passed to the system allocator or refused, which is allowed; only counters are added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Only filters are aligned to cache lines.
        if layout.align() == 64 && layout.size() >= REFUSED.load(Relaxed) {
            return std::ptr::null_mut();
        }
        PEAK.fetch_max(LIVE.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which the system allocator shares.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Hold this throughout a test, because the counters cover the whole process.
pub fn exclusive() -> MutexGuard<'static, ()> {
    static EXCLUSIVE: Mutex<()> = Mutex::new(());
    EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes allocated now.
pub fn live_bytes() -> usize {
    LIVE.load(Relaxed)
}

/// Runs `work`. Returns the peak of allocated bytes, and its result.
pub fn peak_bytes<T>(work: impl FnOnce() -> T) -> (usize, T) {
    PEAK.store(live_bytes(), Relaxed);
    let done = work();
    (PEAK.load(Relaxed), done)
}

/// Runs `work` without memory for filters of `bytes` or more.
pub fn without_filters<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    REFUSED.store(bytes, Relaxed);
    let done = work();
    REFUSED.store(usize::MAX, Relaxed);
    done
}

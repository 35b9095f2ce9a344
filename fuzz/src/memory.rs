//! An allocator with a limit: requesting more at once, or holding more in total, ends the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes that a target may hold.
const LIMIT_BYTES: usize = 256 << 20;

/// The system's allocator with the limit.
pub struct Limited;

static HELD: AtomicUsize = AtomicUsize::new(0);

fn take(bytes: usize) {
    if HELD.fetch_add(bytes, Relaxed).saturating_add(bytes) > LIMIT_BYTES {
        HELD.store(0, Relaxed); // The report needs memory too.
        panic!("{bytes} bytes more than {LIMIT_BYTES} were asked for");
    }
}

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller makes the same promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller makes the same promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        take(size);
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller makes the same promise.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller makes the same promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

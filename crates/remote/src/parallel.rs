//! Concurrent requests.

use crate::error::Result;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Their number.
pub(crate) const AT_ONCE: usize = if cfg!(fuzzing) { 1 } else { 8 };

/// Does something with each item, [`AT_ONCE`] at a time. The first error ends it.
pub(crate) fn for_each<T: Sync>(items: &[T], work: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    // For one at a time, a thread would only wait.
    if AT_ONCE.min(items.len()) <= 1 {
        return items.iter().try_for_each(work);
    }
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(items.len()) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = work(item) {
                        next.store(items.len(), Ordering::Relaxed);
                        let mut failure = failure.lock().unwrap_or_else(|e| e.into_inner());
                        failure.get_or_insert(error);
                    }
                }
            });
        }
    });
    failure.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
}

//! A clock that a test sets.

use sidebloom::WallClock;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time of day that moves only when told to.
#[derive(Debug)]
pub struct TestClock(AtomicU64);

impl TestClock {
    /// It begins on some day.
    pub fn new() -> Self {
        TestClock(AtomicU64::new(1_800_000_000_000))
    }

    /// Moves the time forwards.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as u64, SeqCst);
    }

    /// Moves the time backwards.
    pub fn set_back(&self, by: Duration) {
        self.0.fetch_sub(by.as_millis() as u64, SeqCst);
    }

    /// Milliseconds since 1970.
    pub fn millis(&self) -> u64 {
        self.0.load(SeqCst)
    }
}

impl WallClock for TestClock {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.millis())
    }
}

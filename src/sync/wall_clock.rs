//! The time of day.

use std::fmt;
use std::time::SystemTime;

/// The time of day: the system's, or a test's.
pub trait WallClock: Send + Sync + fmt::Debug {
    /// The time of day now. It may jump in both directions.
    fn now(&self) -> SystemTime;
}

/// The system's clock. In a simulated schedule, the time since its start.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl WallClock for SystemClock {
    fn now(&self) -> SystemTime {
        #[cfg(not(sidebloom_schedules))]
        return SystemTime::now();
        #[cfg(sidebloom_schedules)]
        return super::scheduled::time_of_day();
    }
}

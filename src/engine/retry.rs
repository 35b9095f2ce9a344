//! Background work that failed is attempted again after a pause, which doubles from one failure to the next.

use crate::error::{Error, Result};
use crate::sync::Instant;
use std::time::Duration;

/// The pause before the first retry.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// A shortage of descriptors is not reported until it has lasted this long: it mostly passes soon.
const SHORTAGE_PATIENCE: Duration = Duration::from_secs(10);

/// The kinds of background work, each with retries of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskKind {
    /// Frees memory: writers stall without it.
    Flush,
    /// While level 0 is full, writers stall without it.
    Compaction,
    /// Verifies and rebuilds derived data: no writer and no compaction waits for it (I2).
    Sidecars,
}

/// How the attempts at one kind of work went.
#[derive(Default)]
pub(crate) struct Retries {
    /// Attempts that failed since the store was opened.
    failures: u64,
    /// `None` after a success.
    last_failure: Option<FailedAttempt>,
}

struct FailedAttempt {
    error: Error,
    /// The first failure of the series.
    since: Instant,
    at: Instant,
    pause: Duration,
}

impl FailedAttempt {
    /// Whether waiting for the next attempt would help little.
    fn counts(&self) -> bool {
        !self.error.is_out_of_descriptors()
            || self.at.saturating_duration_since(self.since) >= SHORTAGE_PATIENCE
    }
}

impl Retries {
    /// How long to wait before the next attempt; zero if it may start now.
    pub fn pause(&self, now: Instant) -> Duration {
        let left = |failure: &FailedAttempt| (failure.at + failure.pause).saturating_duration_since(now);
        self.last_failure.as_ref().map_or(Duration::ZERO, left)
    }

    /// Shortens the pause, because a caller waits for the next attempt.
    pub fn hurry(&mut self) {
        if let Some(failure) = &mut self.last_failure {
            failure.pause = PAUSE_MIN;
        }
    }

    /// Ends a series of failures. `false` if there was none.
    pub fn reset(&mut self) -> bool {
        self.last_failure.take().is_some()
    }

    /// Records a failed attempt. `true` for the first of a series.
    pub fn record_failure(&mut self, error: &Error) -> bool {
        let last = self.last_failure.take();
        let pause = last.as_ref().map_or(PAUSE_MIN, |last| (2 * last.pause).min(PAUSE_MAX));
        self.failures += 1;
        let at = Instant::now();
        let since = last.as_ref().map_or(at, |last| last.since);
        self.last_failure = Some(FailedAttempt { error: error.clone(), since, at, pause });
        last.is_none()
    }

    /// The number of failed attempts so far.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// The error of an attempt that failed after the first `seen` failures.
    pub fn check_since(&self, seen: u64) -> Result<()> {
        match &self.last_failure {
            Some(failure) if self.failures > seen && failure.counts() => Err(failure.error.clone()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lasting_shortage_of_descriptors_is_reported_to_who_waits() {
        let mut retries = Retries::default();
        let shortage = Error::io("open", "file", rustix::io::Errno::MFILE.into());
        for _ in 0..3 {
            retries.record_failure(&shortage);
            assert!(retries.check_since(0).is_ok(), "it may pass");
        }
        if let Some(failure) = &mut retries.last_failure {
            failure.since = failure.at - SHORTAGE_PATIENCE;
        }
        assert!(retries.check_since(0).is_err());
        assert!(retries.check_since(3).is_ok(), "of no attempt since then");
        retries.record_failure(&shortage);
        assert!(retries.check_since(3).is_err(), "the series goes on");
        retries.reset();
        retries.record_failure(&shortage);
        assert!(retries.check_since(0).is_ok(), "another one begins");
    }
}

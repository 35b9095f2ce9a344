//! Retries of work that failed or waits for a change: after pauses that double.

use crate::error::{Error, Result};
use crate::sync::Instant;
use std::time::Duration;

/// The pauses between attempts at background work that fails.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LONGEST: Duration = Duration::from_secs(5);
/// A shortage of descriptors is reported only after this long: it usually passes soon.
const SHORTAGE_PATIENCE: Duration = Duration::from_secs(10);

/// A schedule whose pauses double.
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    /// Last pause; zero before the first one.
    pause: Duration,
    /// When the last pause began, and when it ends, if an attempt is scheduled.
    scheduled: Option<(Instant, Instant)>,
}

impl Backoff {
    /// Nothing is scheduled. Pauses grow from `first` to `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Backoff { first, longest, pause: Duration::ZERO, scheduled: None }
    }

    /// Schedules an attempt after twice the last pause, unless one is scheduled. `false` if one is.
    pub fn schedule(&mut self) -> bool {
        let is_free = self.scheduled.is_none();
        if is_free {
            self.postpone();
        }
        is_free
    }

    /// Schedules an attempt after twice the last pause, and replaces any scheduled one.
    pub fn postpone(&mut self) {
        self.pause = (self.pause * 2).clamp(self.first, self.longest);
        let now = Instant::now();
        self.scheduled = Some((now, now + self.pause));
    }

    /// Schedules an attempt after the first pause, and replaces any scheduled one.
    pub fn schedule_soon(&mut self) {
        self.forget_pauses();
        self.postpone();
    }

    /// Moves the scheduled attempt forward, to at most the first pause from now.
    pub fn hurry(&mut self) {
        if let Some((since, due)) = &mut self.scheduled {
            *due = (*due).min(*since + self.first);
            self.pause = self.first;
        }
    }

    /// Resets the next pause to the first one.
    pub fn forget_pauses(&mut self) {
        self.pause = Duration::ZERO;
    }

    /// How long until the scheduled attempt; `None` if there is none.
    pub fn until(&self, now: Instant) -> Option<Duration> {
        self.scheduled.map(|(_, due)| due.saturating_duration_since(now))
    }

    /// Whether the scheduled attempt is due; clears it if so.
    pub fn take_due(&mut self, now: Instant) -> bool {
        let is_due = self.until(now).is_some_and(|left| left.is_zero());
        self.scheduled = self.scheduled.filter(|_| !is_due);
        is_due
    }
}

/// The kinds of background work. Each has its own retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskKind {
    /// Frees memory: writers stall without it.
    Flush,
    /// Writers stall without it while level 0 is full.
    Compaction,
    /// Verifies and rebuilds derived data. No writer or compaction waits for it (I2).
    Sidecars,
}

/// The outcome of the attempts at one kind of work.
pub(crate) struct Retries {
    /// Failed attempts since the store was opened.
    failures: u64,
    /// `None` after a success.
    last_failure: Option<FailedAttempt>,
    next: Backoff,
}

struct FailedAttempt {
    error: Error,
    /// The first failure of the series.
    since: Instant,
    at: Instant,
}

impl FailedAttempt {
    /// Whether waiting for the next attempt is unlikely to help.
    fn counts(&self) -> bool {
        !self.error.is_out_of_descriptors()
            || self.at.saturating_duration_since(self.since) >= SHORTAGE_PATIENCE
    }
}

impl Default for Retries {
    fn default() -> Self {
        Retries { failures: 0, last_failure: None, next: Backoff::new(RETRY_FIRST, RETRY_LONGEST) }
    }
}

impl Retries {
    /// How long to wait before the next attempt; zero if it may start now.
    pub fn pause(&self, now: Instant) -> Duration {
        self.next.until(now).unwrap_or_default()
    }

    /// Shortens the pause, because a caller is waiting.
    pub fn hurry(&mut self) {
        self.next.hurry();
    }

    /// Ends a series of failures. `false` if there was none.
    pub fn reset(&mut self) -> bool {
        self.next = Backoff::new(RETRY_FIRST, RETRY_LONGEST);
        self.last_failure.take().is_some()
    }

    /// Records a failed attempt. `true` for the first of a series.
    pub fn record_failure(&mut self, error: &Error) -> bool {
        let (last, at) = (self.last_failure.take(), Instant::now());
        self.failures += 1;
        self.next.postpone();
        let since = last.as_ref().map_or(at, |last| last.since);
        self.last_failure = Some(FailedAttempt { error: error.clone(), since, at });
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
    fn pauses_double_up_to_the_longest() {
        let second = Duration::from_secs;
        let mut backoff = Backoff::new(second(1), second(5));
        let mut pauses = Vec::new();
        for _ in 0..4 {
            assert!(backoff.schedule() && !backoff.schedule());
            pauses.push(backoff.pause.as_secs());
            assert!(!backoff.take_due(Instant::now()));
            assert!(
                backoff.take_due(Instant::now() + backoff.pause) && backoff.until(Instant::now()).is_none()
            );
        }
        assert_eq!(pauses, [1, 2, 4, 5]);
        backoff.postpone();
        backoff.hurry();
        assert!(backoff.until(Instant::now()).is_some_and(|left| left <= second(1)));
        backoff.postpone();
        assert_eq!(backoff.pause, second(2));
        backoff.schedule_soon();
        assert_eq!(backoff.pause, second(1));
        backoff.forget_pauses();
        backoff.postpone();
        assert_eq!(backoff.pause, second(1));
    }

    #[test]
    fn a_lasting_shortage_of_descriptors_is_reported_to_who_waits() {
        let mut retries = Retries::default();
        let shortage = Error::io(crate::error::IoOp::Open, "file", rustix::io::Errno::MFILE.into());
        for _ in 0..3 {
            retries.record_failure(&shortage);
            assert!(retries.check_since(0).is_ok(), "a shortage may pass");
        }
        if let Some(failure) = &mut retries.last_failure {
            failure.since = failure.at - SHORTAGE_PATIENCE;
        }
        assert!(retries.check_since(0).is_err());
        assert!(retries.check_since(3).is_ok(), "no attempt has failed since");
        retries.record_failure(&shortage);
        assert!(retries.check_since(3).is_err(), "the series continues");
        retries.reset();
        retries.record_failure(&shortage);
        assert!(retries.check_since(0).is_ok(), "a new series begins");
    }
}

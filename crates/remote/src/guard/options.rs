//! Options of readers.

use std::time::Duration;

/// How to read a published guard.
#[derive(Debug, Clone, Copy)]
pub struct RemoteGuardOptions {
    pub(super) max_staleness: Option<Duration>,
    pub(super) poll: Option<Duration>,
}

impl Default for RemoteGuardOptions {
    fn default() -> Self {
        RemoteGuardOptions { max_staleness: None, poll: Some(Duration::from_secs(5)) }
    }
}

impl RemoteGuardOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Above this age of the generation, every answer is "maybe", until there is a newer one. Allow for the
    /// interval between generations, the time that publishing takes, and the [poll](Self::poll). Default: no
    /// bound, so a guard whose publisher has stopped keeps denying keys inserted since.
    pub fn max_staleness(mut self, age: Duration) -> Self {
        self.max_staleness = Some(age);
        self
    }

    /// How often a thread looks for a newer generation, with two requests; `None` leaves that to
    /// [`refresh`](super::RemoteGuard::refresh). Default: five seconds.
    pub fn poll(mut self, every: Option<Duration>) -> Self {
        self.poll = every;
        self
    }
}

//! Options for following.

use std::time::Duration;

/// Options for following a table.
#[derive(Debug, Clone, Copy)]
pub struct FollowOptions {
    pub(crate) refresh: bool,
    pub(crate) poll: Duration,
    pub(crate) check: Duration,
    pub(crate) retry_max: Duration,
}

impl Default for FollowOptions {
    fn default() -> Self {
        FollowOptions {
            refresh: false,
            poll: Duration::from_secs(1),
            check: Duration::from_secs(1),
            retry_max: Duration::from_secs(10),
        }
    }
}

impl FollowOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins with a refresh even if the guard could continue. Default: false.
    pub fn refresh(mut self, refresh: bool) -> Self {
        self.refresh = refresh;
        self
    }

    /// How long to wait for a notification before polling the outbox; also the time between two events when
    /// nothing happens. Default: one second.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// How often to check the triggers and the list of partitions. For this long, plus [`poll`](Self::poll),
    /// a key that bypassed the triggers may get a wrong "no". A check is one short query. Default: one
    /// second.
    pub fn check(mut self, check: Duration) -> Self {
        self.check = check;
        self
    }

    /// Maximum time between two attempts to reconnect. The first comes after a tenth of a second; the wait
    /// then doubles each time. Default: ten seconds.
    pub fn retry_max(mut self, retry_max: Duration) -> Self {
        self.retry_max = retry_max;
        self
    }
}

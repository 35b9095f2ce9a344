//! What a follower reports.

use sidebloom::Error;
use sidebloom::guard::RefreshReport;
use std::time::Duration;

/// An action of a follower, reported right after it happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum FollowEvent {
    /// All rows were recounted: at the start, after TRUNCATE, or because changes may have been missed.
    Refreshed(RefreshReport),
    /// Changes are durable in the guard and are about to be deleted from the outbox.
    Applied {
        /// Rows inserted.
        inserted: u64,
        /// Rows removed.
        removed: u64,
        /// The lag: age of the oldest of these changes, in seconds, by the server's clock.
        lag_seconds: f64,
    },
    /// Every visible change is in the guard.
    CaughtUp,
    /// Still suspended; repeated with every check of the catalog.
    Waiting,
    /// Changes may have bypassed the triggers: the guard answers "maybe" to everything until the next
    /// [`Refreshed`](Self::Refreshed), which follows automatically once the cause is fixed.
    Suspended {
        /// What is wrong.
        reason: String,
    },
    /// The table or the column was renamed. The follower uses the new name; a new follower needs it.
    Renamed {
        /// SCHEMA.TABLE.
        table: String,
        /// The column.
        column: String,
    },
    /// The connection was lost. Until it is back, the guard answers as of the last change.
    Disconnected {
        /// What happened.
        error: Error,
        /// Time until the next attempt to reconnect.
        retry_in: Duration,
    },
}

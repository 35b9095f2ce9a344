//! How the server treats its clients.

use super::saves::SaveTo;
use super::users::Users;
use std::time::Duration;

/// How the server treats its clients.
pub struct Settings {
    /// Who may do what.
    pub users: Users,
    /// Disconnect a client that sends nothing for this long.
    pub idle_timeout: Option<Duration>,
    /// Disconnect a client whose request is incomplete for this long.
    pub request_timeout: Duration,
    /// Disconnect a client that reads no replies for this long, and one that reads them slower than 16 KiB a
    /// second.
    pub output_timeout: Duration,
    /// Clients at once.
    pub max_clients: usize,
    /// Memory for all requests and replies, in bytes.
    pub clients_bytes: usize,
    /// Whether a change is on the disk when it is acknowledged.
    pub is_synced: bool,
    /// Where `SAVE` and `BGSAVE` write copies of all filters to.
    pub save_to: Option<SaveTo>,
    /// Threads that answer clients.
    pub threads: usize,
}

/// A client that reads its replies slower than this, in bytes a second, is disconnected.
pub const OUTPUT_BYTES_PER_SECOND: u64 = 16 << 10;

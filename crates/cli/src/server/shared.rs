//! What connections share, and each connection's state.

use super::writer::Writer;
use sidebloom::guard::Guard;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// Bytes of unfinished requests over all connections. Above this, large requests must be retried later.
const REQUESTS_BYTES_MAX: usize = 256 << 20;
/// Unfinished requests up to this size do not count towards the total for all connections.
const UNCOUNTED_BYTES: usize = 64 << 10;

/// How the server treats its clients.
pub struct Settings {
    /// The filter's name: the key that clients give.
    pub name: Vec<u8>,
    /// The password that clients must give, if any.
    pub password: Option<Vec<u8>>,
    /// The guard follows a database. Clients cannot change it, since a change could arrive both ways.
    pub is_followed: bool,
    /// Disconnect a client that sends nothing for this long.
    pub idle_timeout: Option<Duration>,
    /// Disconnect a client that reads no replies for this long.
    pub output_timeout: Duration,
    /// Clients at once.
    pub max_clients: usize,
    /// Whether a change is on the disk when it is acknowledged.
    pub is_synced: bool,
    /// Threads that answer clients.
    pub threads: usize,
}

/// The guard, the settings, and the counters.
pub struct Server {
    pub guard: Guard,
    pub writer: Writer,
    pub settings: Settings,
    /// The port that it listens on.
    pub port: u16,
    pub started: Instant,
    pub counters: ServerCounters,
}

/// Totals since the start, and current values.
#[derive(Default)]
pub struct ServerCounters {
    /// Currently connected.
    pub clients: AtomicUsize,
    /// Current memory of unfinished requests; small ones are not counted.
    pub requests_bytes: AtomicUsize,
    pub connections: AtomicU64,
    pub rejected: AtomicU64,
    pub commands: AtomicU64,
}

impl Server {
    pub fn new(guard: Guard, writer: Writer, settings: Settings, port: u16) -> Self {
        Server { guard, writer, settings, port, started: Instant::now(), counters: ServerCounters::default() }
    }

    /// Whether `password` is correct. Takes constant time, so timing reveals nothing about it.
    pub fn is_password(&self, password: &[u8]) -> bool {
        self.settings.password.as_ref().is_some_and(|right| bool::from(right.as_slice().ct_eq(password)))
    }
}

/// One connection's share of the memory for unfinished requests. Released on drop.
pub struct Lease<'s> {
    server: &'s Server,
    held: usize,
}

impl<'s> Lease<'s> {
    pub fn new(server: &'s Server) -> Self {
        Lease { server, held: 0 }
    }

    /// Grows the share to `bytes`, unless they are too few to count. Returns `false` and keeps the old size
    /// if there is not enough.
    pub fn cover(&mut self, bytes: usize) -> bool {
        bytes <= UNCOUNTED_BYTES || self.hold(bytes)
    }

    /// Shrinks the share to what `bytes` need, which are no more than it covered before.
    pub fn reduce(&mut self, bytes: usize) {
        self.hold(if bytes > UNCOUNTED_BYTES { bytes } else { 0 });
    }

    /// Changes the size to `bytes`. Returns `false` and keeps the old size if there is not enough.
    fn hold(&mut self, bytes: usize) -> bool {
        let total = &self.server.counters.requests_bytes;
        if bytes <= self.held {
            total.fetch_sub(self.held - bytes, Relaxed);
        } else {
            let more = bytes - self.held;
            if total.fetch_add(more, Relaxed) + more > REQUESTS_BYTES_MAX {
                total.fetch_sub(more, Relaxed);
                return false;
            }
        }
        self.held = bytes;
        true
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.hold(0);
    }
}

/// One client's state.
pub struct Session {
    /// Numbered from 1.
    pub id: u64,
    /// Authenticated, or no password is required.
    pub is_allowed: bool,
    pub name: Vec<u8>,
    /// The connection closes after this reply.
    pub is_over: bool,
}

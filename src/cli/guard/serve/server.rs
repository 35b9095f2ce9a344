//! What all connections share.

use super::writer::Writer;
use sidebloom::guard::Guard;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// Bytes of unfinished requests, over all connections: beyond it a client with a large one is told to come again.
const REQUESTS_BYTES_MAX: usize = 256 << 20;

/// The guard, how clients are let in, and what is counted.
pub struct Server {
    pub guard: Guard,
    /// The filter's name: what clients give as the key.
    pub name: Vec<u8>,
    pub password: Option<Vec<u8>>,
    /// A database has the say: clients cannot change the guard, or a change that comes both ways would count twice.
    pub is_followed: bool,
    pub writer: Writer,
    /// The port that it listens on.
    pub port: u16,
    /// A client that asks nothing for so long is shut out.
    pub idle_timeout: Option<Duration>,
    /// So is one that reads nothing of its replies.
    pub output_timeout: Duration,
    pub max_clients: usize,
    /// Whether a change is on the disk when it is answered.
    pub is_synced: bool,
    pub started: Instant,
    pub counters: Counters,
}

/// What has happened since the start, and what is now.
#[derive(Default)]
pub struct Counters {
    /// Connected now.
    pub clients: AtomicUsize,
    /// Memory of unfinished requests now; small ones are not counted.
    pub requests_bytes: AtomicUsize,
    pub connections: AtomicU64,
    pub rejected: AtomicU64,
    pub commands: AtomicU64,
}

impl Server {
    /// Whether `password` is the right one; in a time that does not depend on where it differs.
    pub fn is_password(&self, password: &[u8]) -> bool {
        self.password.as_ref().is_some_and(|right| bool::from(right.as_slice().ct_eq(password)))
    }
}

/// One connection's share of the memory for unfinished requests. Given back when dropped.
pub struct Lease<'s> {
    server: &'s Server,
    held: usize,
}

impl<'s> Lease<'s> {
    pub fn new(server: &'s Server) -> Self {
        Lease { server, held: 0 }
    }

    /// Holds so many bytes from now on; `false`, and what it held before, when there are not enough.
    pub fn hold(&mut self, bytes: usize) -> bool {
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

//! Memory of requests and replies, bounded over all connections.
//!
//! A connection that needs more than is left takes it from the one that holds the most, which is
//! disconnected; if that is itself, it is refused. So clients that hold memory without using it cannot starve
//! others, whose requests are smaller.

use super::clients::{Client, Clients};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// How often one looks whether a connection that was told to go has given its memory back, …
const STEP: Duration = Duration::from_millis(4);
/// … how often before the next one has to go, …
const STEPS: u32 = 10;
/// … and how often in all.
const ATTEMPTS: u32 = 5 * STEPS;

/// The memory of all requests and replies.
pub struct Memory {
    held: AtomicUsize,
    max: usize,
}

impl Memory {
    pub fn new(max: usize) -> Self {
        Memory { held: AtomicUsize::new(0), max }
    }

    /// Memory in use, in bytes.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    pub fn max(&self) -> usize {
        self.max
    }

    fn try_take(&self, bytes: usize) -> bool {
        let fits = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.max);
        self.held.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Relaxed);
    }
}

/// One connection's share. Given back on drop.
pub struct Lease<'s> {
    memory: &'s Memory,
    clients: &'s Clients,
    client: Arc<Client>,
    /// What the connection takes that does nothing, in bytes.
    own: usize,
    held: usize,
}

impl<'s> Lease<'s> {
    /// The share of a connection that takes `own` bytes when it does nothing. Empty until
    /// [`hold`](Self::hold).
    pub fn new(memory: &'s Memory, clients: &'s Clients, client: Arc<Client>, own: usize) -> Self {
        Lease { memory, clients, client, own, held: 0 }
    }

    /// What the connection takes that does nothing, in bytes.
    pub fn own(&self) -> usize {
        self.own
    }

    /// The share, in bytes.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Makes the share `bytes`, larger or smaller. Returns `false` and keeps the old size if that is too
    /// much.
    pub async fn hold(&mut self, bytes: usize) -> bool {
        if self.try_hold(bytes) {
            return true;
        }
        for attempt in 0..ATTEMPTS {
            if attempt % STEPS == 0 && !self.disconnect_largest() {
                return self.try_hold(bytes);
            }
            tokio::time::sleep(STEP).await;
            if self.try_hold(bytes) {
                return true;
            }
        }
        false
    }

    /// Disconnects the one that holds the most. Returns `false` if that is this one, or if nobody holds more
    /// than what every connection takes.
    fn disconnect_largest(&self) -> bool {
        let largest = self.clients.largest().filter(|largest| largest.id != self.client.id);
        let Some(other) = largest.filter(|largest| largest.held.load(Relaxed) > self.held) else {
            return false;
        };
        let bytes = other.held.load(Relaxed);
        tracing::warn!(
            client = other.id,
            bytes,
            "disconnected: requests and replies of all clients need more memory than they may"
        );
        other.kill();
        true
    }

    /// [`hold`](Self::hold) without waiting for others.
    fn try_hold(&mut self, bytes: usize) -> bool {
        if bytes <= self.held {
            self.memory.give_back(self.held - bytes);
        } else if !self.memory.try_take(bytes - self.held) {
            return false;
        }
        self.set(bytes);
        true
    }

    fn set(&mut self, bytes: usize) {
        let holds_more = |bytes: usize| bytes > self.own;
        if holds_more(bytes) != holds_more(self.held) {
            self.clients.set_holder(&self.client, holds_more(bytes));
        }
        self.held = bytes;
        self.client.held.store(bytes, Relaxed);
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.memory.give_back(self.held);
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;

    #[tokio::test]
    async fn the_largest_holder_gives_way_to_a_smaller_one() {
        let (memory, clients) = (Memory::new(1000 * KIB), Clients::default());
        let (large, small) = (clients.enter(1, None), clients.enter(2, None));
        let mut hoard = Lease::new(&memory, &clients, Arc::clone(&large), 8 * KIB);
        let mut honest = Lease::new(&memory, &clients, Arc::clone(&small), 8 * KIB);
        assert!(hoard.hold(900 * KIB).await);
        let freed = async {
            large.killed().await;
            drop(hoard);
        };
        let (got, ()) = tokio::join!(honest.hold(300 * KIB), freed);
        assert!(got && large.is_killed() && !small.is_killed());
        assert_eq!(memory.held(), 300 * KIB);
        assert!(!honest.hold(1001 * KIB).await, "the largest one itself is refused");
        assert!(!small.is_killed() && honest.hold(1000 * KIB).await);
        drop(honest);
        assert_eq!(memory.held(), 0);
    }
}

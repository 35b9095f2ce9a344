//! The connected clients: what others may know of them, and how one is disconnected from outside.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A connected client.
pub struct Client {
    /// Numbered from 1.
    pub id: u64,
    /// `None` over a Unix socket.
    pub address: Option<SocketAddr>,
    pub since: Instant,
    /// Memory of its requests and replies, in bytes.
    pub held: AtomicUsize,
    pub database: AtomicU8,
    pub is_resp3: AtomicBool,
    /// Milliseconds from `since` to its last request.
    last_request: AtomicU64,
    text: Mutex<ClientText>,
    is_killed: AtomicBool,
    killed: Notify,
}

/// What a client says of itself.
#[derive(Default, Clone)]
pub struct ClientText {
    pub name: Vec<u8>,
    pub library: Vec<u8>,
    pub library_version: Vec<u8>,
    /// Who it has authenticated as; empty before.
    pub user: String,
}

impl Client {
    /// Disconnects it soon. Says whether nobody had done so before.
    pub fn kill(&self) -> bool {
        let is_first = !self.is_killed.swap(true, AcqRel);
        self.killed.notify_waiters();
        is_first
    }

    /// Waits until it is to be disconnected.
    pub async fn killed(&self) {
        let killed = self.killed.notified(); // From here on it hears of it, so nothing is missed.
        if !self.is_killed() {
            killed.await;
        }
    }

    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Acquire)
    }

    /// Its address; empty over a Unix socket.
    pub fn address_text(&self) -> String {
        self.address.map_or_else(String::new, |address| address.to_string())
    }

    /// Notes that a request has arrived.
    pub fn note_request(&self) {
        self.last_request.store(self.since.elapsed().as_millis() as u64, Relaxed);
    }

    /// How long no request has arrived.
    pub fn idle(&self) -> Duration {
        self.since.elapsed().saturating_sub(Duration::from_millis(self.last_request.load(Relaxed)))
    }

    pub fn text(&self) -> MutexGuard<'_, ClientText> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All of them.
#[derive(Default)]
pub struct Clients {
    by_id: Mutex<BTreeMap<u64, Arc<Client>>>,
    /// Those that hold more memory than every connection takes.
    holders: Mutex<BTreeMap<u64, Arc<Client>>>,
}

impl Clients {
    pub fn enter(&self, id: u64, address: Option<SocketAddr>) -> Arc<Client> {
        let client = Arc::new(Client {
            id,
            address,
            since: Instant::now(),
            held: AtomicUsize::new(0),
            database: AtomicU8::new(0),
            is_resp3: AtomicBool::new(false),
            last_request: AtomicU64::new(0),
            text: Mutex::default(),
            is_killed: AtomicBool::new(false),
            killed: Notify::new(),
        });
        self.map().insert(id, Arc::clone(&client));
        client
    }

    pub fn leave(&self, id: u64) {
        self.map().remove(&id);
    }

    /// All of them, the first to connect first.
    pub fn all(&self) -> Vec<Arc<Client>> {
        self.map().values().cloned().collect()
    }

    /// Notes whether a client holds more memory than every connection takes.
    pub fn set_holder(&self, client: &Arc<Client>, holds_more: bool) {
        let mut holders = lock(&self.holders);
        if holds_more {
            holders.insert(client.id, Arc::clone(client));
        } else {
            holders.remove(&client.id);
        }
    }

    /// The one that holds the most memory, if it is more than every connection takes.
    pub fn largest(&self) -> Option<Arc<Client>> {
        let holders = lock(&self.holders);
        let living = holders.values().filter(|client| !client.is_killed());
        living.max_by_key(|client| client.held.load(Relaxed)).cloned()
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        lock(&self.by_id)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The connection waits for it, and so does what sends its replies.
    #[tokio::test]
    async fn all_that_wait_for_the_end_of_a_client_hear_of_it() {
        let client = Clients::default().enter(1, None);
        let all = async { tokio::join!(client.killed(), client.killed(), async { client.kill() }) };
        let ((), (), is_first) = tokio::time::timeout(Duration::from_secs(60), all).await.unwrap();
        client.killed().await;
        assert!(is_first && !client.kill());
    }
}

//! What connections share, and each connection's state.

use super::catalog::Catalog;
use super::clients::{Client, Clients};
use super::memory::Memory;
use super::saves::Saves;
use super::settings::Settings;
use super::slow_log::SlowLog;
use super::users::User;
use super::watched::Watched;
use crate::filters::{Bloom, Cuckoo};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

/// What clients are served from, the settings, and the counters.
pub struct Server {
    pub catalog: Catalog,
    pub settings: Settings,
    /// The port that it listens on.
    pub port: u16,
    pub started: Instant,
    pub clients: Clients,
    pub memory: Memory,
    pub counters: Counters,
    pub slow_log: SlowLog,
    pub saves: Arc<Saves>,
    /// Held by whatever creates, deletes or renames filters, and by a transaction that changes something;
    /// shared by those that change items, from when they find the filter until they are done with it.
    pub gate: tokio::sync::RwLock<()>,
    /// Turns for what may take long.
    turns: tokio::sync::Semaphore,
    /// Held while a client waits that gave a wrong password, so that all guess one after another.
    pub refusals: tokio::sync::Mutex<()>,
    defaults: RwLock<Defaults>,
    /// Held while settings are changed.
    pub setting: Mutex<()>,
}

/// Threads that wait for the disk or work for long at the same time, at most. The runtime has 512 for that,
/// and nobody is served once they are used up.
const TURNS: usize = 32;

/// What filters are created with that a command creates by adding to them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Defaults {
    pub bloom: Bloom,
    pub cuckoo: Cuckoo,
}

/// Totals since the start, and current values.
#[derive(Default)]
pub struct Counters {
    /// Currently connected.
    pub clients: AtomicUsize,
    pub connections: AtomicU64,
    pub rejected: AtomicU64,
    pub commands: AtomicU64,
    /// Wrong passwords.
    pub refused_logins: AtomicU64,
    /// Clients that were disconnected because of memory, or because they were too slow.
    pub disconnected: AtomicU64,
}

impl Server {
    pub fn new(catalog: Catalog, settings: Settings, port: u16) -> Self {
        Server {
            catalog,
            port,
            started: Instant::now(),
            clients: Clients::default(),
            memory: Memory::new(settings.clients_bytes),
            counters: Counters::default(),
            slow_log: SlowLog::default(),
            saves: Arc::new(Saves::new(settings.save_to.clone())),
            gate: tokio::sync::RwLock::default(),
            turns: tokio::sync::Semaphore::new(TURNS),
            refusals: tokio::sync::Mutex::default(),
            defaults: RwLock::default(),
            setting: Mutex::default(),
            settings,
        }
    }

    /// Waits for a turn to do what may take long.
    pub async fn turn(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        self.turns.acquire().await.ok() // It is never closed.
    }

    /// Does what may take long, when it is its turn, and lets the other connections of this thread go on.
    pub async fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = self.turn().await;
        tokio::task::block_in_place(work)
    }

    pub fn defaults(&self) -> Defaults {
        *self.defaults.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_defaults(&self, defaults: Defaults) {
        *self.defaults.write().unwrap_or_else(PoisonError::into_inner) = defaults;
    }
}

/// One client's state.
pub struct Session {
    pub client: Arc<Client>,
    /// Who it is; `None` before it has authenticated.
    pub user: Option<Arc<User>>,
    /// Since when it may authenticate.
    pub unknown_since: Instant,
    /// The connection closes after this reply.
    pub is_over: bool,
    /// Wrong passwords since the last right one.
    pub refused_logins: u32,
    /// The reply is held back for a while: the password was wrong.
    pub has_to_wait: bool,
    /// The number of the selected database.
    pub database: u8,
    /// What the next transaction depends on.
    pub watched: Watched,
}

impl Session {
    pub fn new(client: Arc<Client>, user: Option<Arc<User>>) -> Self {
        Session {
            client,
            user,
            unknown_since: Instant::now(),
            is_over: false,
            refused_logins: 0,
            has_to_wait: false,
            database: 0,
            watched: Watched::default(),
        }
    }

    pub fn select(&mut self, database: u8) {
        self.database = database;
        self.client.database.store(database, Relaxed);
    }
}

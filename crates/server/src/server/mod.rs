//! A server of the Redis protocol in front of guards and filters, for any program that has a Redis client.

mod accepted;
mod batch;
mod catalog;
mod clients;
mod command;
mod commands;
mod connection;
mod executor;
mod families;
mod item_command;
mod listen;
mod memory;
mod metrics;
mod multi;
mod on_filters;
mod on_guard;
mod parts;
mod pending;
#[cfg(feature = "tls")]
mod records;
mod request;
mod saves;
mod settings;
mod slow_log;
mod state;
mod stream;
mod table;
#[cfg(feature = "tls")]
mod tls;
mod transaction;
mod usage;
mod users;
mod watched;
mod wire;
mod writer;

use crate::filters::Filters;
use catalog::Catalog;
pub use catalog::ServedGuard;
pub use listen::{Endpoints, bind};
pub use saves::SaveTo;
pub use settings::Settings;
use state::Server;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
#[cfg(feature = "tls")]
pub use tls::Tls;
use tokio::sync::oneshot;
pub use users::Users;

/// How often filters that have expired are looked for.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(500);

/// What is served.
pub struct Served {
    /// Guards, each under its name.
    pub guards: Vec<ServedGuard>,
    /// Filters that clients create and delete.
    pub filters: Option<Filters>,
}

/// Why the server could not start, or has ended.
#[derive(Debug)]
pub enum ServeError<E> {
    /// The system's error.
    System {
        /// What could not be done.
        what: &'static str,
        /// The error.
        source: std::io::Error,
    },
    /// The store's error.
    Store(sidebloom::Error),
    /// What the server depends on has ended with this.
    Dependency(E),
    /// A thread has panicked; its message is in the log.
    Panicked(&'static str),
}

impl<E: fmt::Display> fmt::Display for ServeError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::System { what, source } => write!(f, "cannot {what}: {source}"),
            ServeError::Store(error) => error.fmt(f),
            ServeError::Dependency(error) => error.fmt(f),
            ServeError::Panicked(thread) => write!(f, "{thread} panicked; its error is above"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for ServeError<E> {}

/// One user, `default`, who may do everything, with any of these passwords. Without one, clients need none.
pub fn one_user(passwords: &[Vec<u8>]) -> Users {
    Users::with_passwords(passwords, table::COMMANDS)
}

/// The users of a file: lines as in Redis' access control lists. Returns the number of a wrong line and what
/// is wrong with it.
pub fn users_of(text: &str) -> Result<Users, (usize, String)> {
    Users::parse(text, table::COMMANDS)
}

/// Serves clients until SIGINT, SIGTERM, or something from `dependency`, which is then the error. Calls
/// `announce` with the address over TCP, if there is one, once clients can connect. After a return without an
/// error, every acknowledged change is durable.
pub fn run<E>(
    mut endpoints: Endpoints,
    served: Served,
    dependency: Option<oneshot::Receiver<E>>,
    mut settings: Settings,
    announce: impl FnOnce(Option<SocketAddr>) -> Result<(), E>,
) -> Result<(), ServeError<E>> {
    let system = |what| move |source| ServeError::System { what, source };
    let filters = served.filters.map(Arc::new);
    let named = |served: &ServedGuard| {
        let name = std::str::from_utf8(&served.name).map(str::to_owned);
        (name.unwrap_or_else(|_| served.name.escape_ascii().to_string()), served.guard.clone())
    };
    let guards = served.guards.iter().map(named).collect();
    let (catalog, writing) =
        Catalog::start(served.guards, filters.clone()).map_err(system("start a thread"))?;
    let runtime = runtime(settings.threads).map_err(system("start threads"))?;
    let entered = runtime.enter();
    let signals = listen::Signals::catch().map_err(system("watch for signals"))?;
    settings.max_clients = listen::make_room(settings.max_clients);
    let for_metrics = endpoints.metrics.take().map(|socket| socket.listen(listen::BACKLOG)).transpose();
    let for_metrics = for_metrics.map_err(system("listen for metrics"))?;
    let listeners = listen::Listeners::start(endpoints).map_err(system("listen"))?;
    let address = listeners.address().map_err(system("listen"))?;
    let server = Arc::new(Server::new(catalog, settings, address.map_or(0, |address| address.port())));
    if let Some(listener) = for_metrics {
        let measured = metrics::Measured { guards, filters: filters.clone(), server: Arc::clone(&server) };
        tokio::task::spawn(metrics::serve(listener, measured));
    }
    if let Some(filters) = filters {
        tokio::task::spawn(delete_expired(Arc::clone(&server), filters));
    }
    drop(entered);
    announce(address).map_err(ServeError::Dependency)?;
    let ended = runtime.block_on(listen::run(listeners, server, signals, dependency));
    drop(runtime); // Drops the last handles to the writers, which ends their threads.
    for thread in writing {
        match thread.join() {
            Ok(synced) => synced.map_err(ServeError::Store)?,
            Err(_) => return Err(ServeError::Panicked("the writing thread")),
        }
    }
    match ended {
        None => Ok(()),
        Some(Ok(error)) => Err(ServeError::Dependency(error)),
        Some(Err(_)) => Err(ServeError::Panicked("the follower")),
    }
}

fn runtime(threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(threads).thread_name("serve").enable_all().build()
}

/// Deletes filters once they have expired, as long as the server runs.
async fn delete_expired(server: Arc<Server>, filters: Arc<Filters>) {
    loop {
        tokio::time::sleep(EXPIRY_INTERVAL).await;
        while filters.has_any_expired() {
            let _gate = server.gate.write().await;
            if let Err(refusal) = server.aside(|| filters.delete_expired()).await {
                tracing::error!("cannot delete what has expired: {refusal}");
                break;
            }
        }
    }
}

//! The sockets: accepts clients, and stops the server.

use super::accepted::Accepted;
use super::connection;
use super::state::Server;
#[cfg(feature = "tls")]
use super::tls::Tls;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};

/// Connections waiting to be accepted; the system has its own limit.
pub const BACKLOG: u32 = 4096;
/// When the server stops, it waits this long for clients to read their replies.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Descriptors not for connections: the stores', the listeners', the runtime's.
const OTHER_FILES: u64 = 256;

/// Raises the limit of open files as far as permitted. Returns how many clients fit, at most `wanted`.
pub fn make_room(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let needed = wanted as u64 + OTHER_FILES;
    let enough = |max: Option<u64>| max.is_none_or(|max| max >= needed);
    if !enough(limit.current) {
        let current = limit.maximum.map_or(needed, |hard| hard.min(needed));
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum });
    }
    match getrlimit(Resource::Nofile).current {
        Some(max) if max < needed => {
            let fit = max.saturating_sub(OTHER_FILES).max(1) as usize;
            tracing::warn!("only {fit} clients can connect: this process may open {max} files (ulimit -Hn)");
            fit
        }
        _ => wanted,
    }
}

/// Binds the address. Clients are refused until the server runs.
pub fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Where clients connect.
#[derive(Default)]
pub struct Endpoints {
    /// A bound address.
    pub bound: Option<TcpSocket>,
    /// Sockets that already listen: of the service manager, or Unix sockets.
    pub tcp: Option<std::net::TcpListener>,
    /// A Unix socket that listens.
    pub unix: Option<std::os::unix::net::UnixListener>,
    /// A bound address for metrics over HTTP.
    pub metrics: Option<TcpSocket>,
    /// Encrypts what comes over TCP.
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
}

/// What accepts clients.
pub struct Listeners {
    tcp: Option<TcpListener>,
    unix: Option<UnixListener>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Listeners {
    /// Starts accepting clients. Needs a runtime.
    pub fn start(endpoints: Endpoints) -> io::Result<Self> {
        let tcp = match (endpoints.bound, endpoints.tcp) {
            (Some(socket), _) => Some(socket.listen(BACKLOG)?),
            (None, Some(listener)) => {
                listener.set_nonblocking(true)?;
                Some(TcpListener::from_std(listener)?)
            }
            (None, None) => None,
        };
        let unix = match endpoints.unix {
            None => None,
            Some(listener) => {
                listener.set_nonblocking(true)?;
                Some(UnixListener::from_std(listener)?)
            }
        };
        Ok(Listeners {
            tcp,
            unix,
            #[cfg(feature = "tls")]
            tls: endpoints.tls,
        })
    }

    /// The address over TCP.
    pub fn address(&self) -> io::Result<Option<SocketAddr>> {
        self.tcp.as_ref().map(TcpListener::local_addr).transpose()
    }

    async fn accept(&self) -> io::Result<Accepted> {
        let tcp = async {
            match &self.tcp {
                Some(tcp) => tcp.accept().await,
                None => std::future::pending().await,
            }
        };
        let unix = async {
            match &self.unix {
                Some(unix) => unix.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = tcp => accepted.map(|(stream, _)| self.accepted(stream)),
            accepted = unix => accepted.map(|(stream, _)| Accepted::Unix(stream)),
        }
    }

    fn accepted(&self, stream: TcpStream) -> Accepted {
        #[cfg(feature = "tls")]
        if let Some(tls) = self.tls.clone() {
            return Accepted::Encrypted(stream, tls);
        }
        Accepted::Tcp(stream)
    }
}

/// SIGINT and SIGTERM, caught from here on.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub fn catch() -> io::Result<Self> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Signals { interrupt, terminate })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Serves until a signal arrives or something that the server depends on ends, then lets every connection
/// finish the requests it received. Returns what has ended.
pub async fn run<E>(
    listeners: Listeners,
    server: Arc<Server>,
    mut signals: Signals,
    mut dependency: Option<oneshot::Receiver<E>>,
) -> Option<Ended<E>> {
    let (stop, stopped) = watch::channel(false);
    let (alive, mut all_gone) = mpsc::channel::<()>(1);
    let mut id = 0;
    let ended = loop {
        let accepted = tokio::select! {
            biased;
            () = signals.next() => break None,
            ended = ended(&mut dependency) => break Some(ended),
            accepted = listeners.accept() => accepted,
        };
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // The client is gone, or memory or descriptors ran out; the server continues.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        server.counters.connections.fetch_add(1, Relaxed);
        let seat = Seat::take(&server);
        if seat.is_beyond {
            server.counters.rejected.fetch_add(1, Relaxed);
            accepted.refuse("-ERR max number of clients reached\r\n");
            continue;
        }
        if let Err(error) = accepted.set_up() {
            tracing::debug!(%error, "a new connection broke");
            continue;
        }
        id += 1;
        let (server, stopped, alive) = (Arc::clone(&server), stopped.clone(), alive.clone());
        tokio::spawn(async move {
            connection::serve(accepted, server, id, stopped).await;
            drop((seat, alive));
        });
    };
    drop((listeners, alive, dependency));
    let _ = stop.send(true);
    if tokio::time::timeout(STOP_TIMEOUT, all_gone.recv()).await.is_err() {
        tracing::warn!("some clients did not read their last replies");
    }
    ended
}

/// How something that the server depends on has ended: with an error, or without a word.
pub type Ended<E> = Result<E, oneshot::error::RecvError>;

/// Waits for the end of what the server depends on; forever if that is nothing.
async fn ended<E>(dependency: &mut Option<oneshot::Receiver<E>>) -> Ended<E> {
    match dependency {
        Some(dependency) => dependency.await,
        None => std::future::pending().await,
    }
}

/// A connected client's slot.
struct Seat {
    server: Arc<Server>,
    is_beyond: bool,
}

impl Seat {
    fn clients(&self) -> &AtomicUsize {
        &self.server.counters.clients
    }

    fn take(server: &Arc<Server>) -> Self {
        let before = server.counters.clients.fetch_add(1, Relaxed);
        Seat { server: Arc::clone(server), is_beyond: before >= server.settings.max_clients }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.clients().fetch_sub(1, Relaxed);
    }
}

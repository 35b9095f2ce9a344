//! The socket: accepts clients, and stops the server.

use super::connection;
use super::follow::Follower;
use super::shared::Server;
use crate::context::Failure;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// Connections waiting to be accepted; the system has its own limit.
const BACKLOG: u32 = 4096;
/// Idle time before TCP keepalive probes; the connection is dropped after three unanswered probes.
const KEEPALIVE: Duration = Duration::from_secs(120);
const KEEPALIVE_AGAIN: Duration = Duration::from_secs(20);
/// When the server stops, it waits this long for clients to read their replies.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Descriptors not for connections: the guard's, the listener's, the runtime's.
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

/// Binds the address. Clients are refused until [`listen`].
pub fn bind(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Starts accepting clients. Needs a runtime.
pub fn listen(socket: TcpSocket) -> std::io::Result<TcpListener> {
    socket.listen(BACKLOG)
}

/// SIGINT and SIGTERM, caught from here on.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub fn catch() -> Result<Self, Failure> {
        let catch =
            |kind| signal(kind).map_err(|e| Failure::message(format!("cannot watch for signals: {e}")));
        Ok(Signals { interrupt: catch(SignalKind::interrupt())?, terminate: catch(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Serves until a signal arrives or the follower fails, then lets every connection finish the requests it
/// received. Returns the follower's failure.
pub async fn run(
    listener: TcpListener,
    server: Arc<Server>,
    mut signals: Signals,
    mut follower: Option<Follower>,
) -> Option<Failure> {
    let (stop, stopped) = watch::channel(false);
    let (alive, mut all_gone) = mpsc::channel::<()>(1);
    let mut id = 0;
    let failed = loop {
        let accepted = tokio::select! {
            biased;
            () = signals.next() => break None,
            failed = ended(&mut follower) => break Some(failed),
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
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
            let _ = stream.try_write(b"-ERR max number of clients reached\r\n");
            continue;
        }
        if let Err(error) = set_up(&stream) {
            tracing::debug!(%error, "a new connection broke");
            continue;
        }
        id += 1;
        let (server, stopped, alive) = (Arc::clone(&server), stopped.clone(), alive.clone());
        tokio::spawn(async move {
            connection::serve(stream, server, id, stopped).await;
            drop((seat, alive));
        });
    };
    drop((listener, alive, follower));
    let _ = stop.send(true);
    if tokio::time::timeout(STOP_TIMEOUT, all_gone.recv()).await.is_err() {
        tracing::warn!("some clients did not read their last replies");
    }
    failed
}

/// Waits for the follower to fail; forever if there is none.
async fn ended(follower: &mut Option<Follower>) -> Failure {
    match follower {
        Some(follower) => {
            let died = |_| Failure::message("the follower panicked; its error is above");
            (&mut follower.ended).await.unwrap_or_else(died)
        }
        None => std::future::pending().await,
    }
}

fn set_up(stream: &TcpStream) -> std::io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_AGAIN)?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    Ok(())
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

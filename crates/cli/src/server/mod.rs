//! A server of the Redis protocol in front of a guard, for any program that has a Redis client.

mod about;
mod batch;
mod command;
mod connection;
mod executor;
mod expire;
mod filter;
pub mod follow;
mod insert;
mod listen;
mod multi;
mod pending;
mod replies;
mod request;
mod session;
mod shared;
mod table;
mod transaction;
mod wire;
mod writer;

use crate::context::Failure;
use follow::Follower;
pub use listen::bind;
use shared::Server;
pub use shared::Settings;
use sidebloom::guard::Guard;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpSocket;

/// Serves clients of a [bound](bind) socket until SIGINT, SIGTERM or the end of the follower. Calls
/// `announce` with the address once clients can connect. After a return without an error, every acknowledged
/// change is durable.
pub fn run(
    socket: TcpSocket,
    guard: Guard,
    follower: Option<Follower>,
    mut settings: Settings,
    announce: impl FnOnce(SocketAddr) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (writer, writing) = writer::Writer::start(guard.clone())
        .map_err(|e| Failure::message(format!("cannot start a thread: {e}")))?;
    let runtime = runtime(settings.threads)?;
    let entered = runtime.enter();
    let signals = listen::Signals::catch()?;
    settings.max_clients = listen::make_room(settings.max_clients);
    let cannot_listen = |e: std::io::Error| Failure::message(format!("cannot listen: {e}"));
    let listener = listen::listen(socket).map_err(cannot_listen)?;
    let address = listener.local_addr().map_err(cannot_listen)?;
    drop(entered);
    let server = Arc::new(Server::new(guard, writer, settings, address.port()));
    announce(address)?;
    let failed = runtime.block_on(listen::run(listener, server, signals, follower));
    drop(runtime); // Drops the last handles to the writer, which ends its thread.
    match writing.join() {
        Ok(synced) => synced?,
        Err(_) => return Err(Failure::message("the writing thread panicked; its error is above")),
    }
    failed.map_or(Ok(()), Err)
}

fn runtime(threads: usize) -> Result<tokio::runtime::Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(threads).thread_name("guard-serve").enable_all().build();
    runtime.map_err(|e| Failure::message(format!("cannot start {threads} threads: {e}")))
}

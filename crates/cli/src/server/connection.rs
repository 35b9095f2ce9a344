//! One connection: reads, executes, replies, one request after another.
//!
//! A client cannot delay others: the server reads nothing from it while its replies wait to be sent or its
//! changes to be written, and the size of an unfinished request is bounded. An idle connection holds no
//! buffer, so ten thousand of them cost little.

use super::command::Action;
use super::executor::Executor;
use super::multi::Multi;
use super::request::Request;
use super::shared::{Lease, Server, Session};
use super::wire::{End, Wire};
use crate::resp::{Limits, Parser};
use bytes::{Buf, BytesMut};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::Instant;

/// Replies beyond this size are sent before the next command is executed.
const REPLY_BYTES: usize = 64 << 10;
/// Time for a client to authenticate.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);

struct Connection<'s> {
    wire: Wire,
    server: &'s Server,
    since: Instant,
    parser: Parser,
    input: BytesMut,
    lease: Lease<'s>,
    multi: Multi,
    executor: Executor<'s>,
}

/// Serves one client until it disconnects, is disconnected, or `stop` becomes true.
pub async fn serve(stream: TcpStream, server: Arc<Server>, id: u64, mut stop: watch::Receiver<bool>) {
    let is_allowed = server.settings.password.is_none();
    let session = Session { id, is_allowed, name: Vec::new(), is_over: false };
    let mut connection = Connection {
        wire: Wire { stream, output_timeout: server.settings.output_timeout },
        server: &server,
        since: Instant::now(),
        parser: Parser::default(),
        input: BytesMut::new(),
        lease: Lease::new(&server),
        multi: Multi::default(),
        executor: Executor::new(&server, session),
    };
    let mut stopped = pin!(async move { drop(stop.wait_for(|stop| *stop).await) });
    let end = loop {
        if let Err(end) = connection.turn(stopped.as_mut()).await {
            break end;
        }
    };
    tracing::debug!(client = id, "{end}");
}

impl Connection<'_> {
    /// Reads the bytes that arrived and executes their requests.
    async fn turn(&mut self, stopped: Pin<&mut impl Future<Output = ()>>) -> Result<(), End> {
        let is_busy = self.receive(stopped).await?;
        loop {
            let limits =
                if self.executor.session.is_allowed { Limits::FULL } else { Limits::UNAUTHENTICATED };
            match self.parser.next(&mut self.input, limits) {
                Ok(true) => self.execute().await?,
                Ok(false) => break,
                Err(error) => {
                    self.executor.execute_pending(&self.input).await;
                    return self.disconnect(&format!("ERR Protocol error: {}", error.0)).await;
                }
            }
            if self.executor.session.is_over {
                self.flush().await?;
                return Err("the client quit");
            }
        }
        self.executor.execute_pending(&self.input).await;
        self.flush().await?;
        self.input.advance(self.parser.take_consumed());
        if self.input.is_empty() {
            self.input = BytesMut::new();
            self.lease.reduce(self.multi.held());
        }
        if is_busy {
            yield_now().await; // More input is waiting: let other connections run first.
        }
        Ok(())
    }

    /// Waits for bytes. Returns whether more may be waiting.
    async fn receive(&mut self, stopped: Pin<&mut impl Future<Output = ()>>) -> Result<bool, End> {
        let deadline = if self.executor.session.is_allowed {
            self.server.settings.idle_timeout.map(|idle| Instant::now() + idle)
        } else {
            Some(self.since + LOGIN_TIMEOUT)
        };
        let is_busy = self.wire.receive(&mut self.input, deadline, stopped).await?;
        if !self.lease.cover(self.input.capacity() + self.multi.held()) {
            self.disconnect("ERR too many large requests at once, try again later").await?;
        }
        Ok(is_busy)
    }

    /// Executes the request that the parser found, or adds it to the batch or to the transaction.
    async fn execute(&mut self) -> Result<(), End> {
        let args = self.parser.lend();
        let request = Request { input: &self.input, args: &args };
        match self.executor.check_form(request) {
            Ok(command) => match command.run {
                Action::Transaction(step) => {
                    self.multi.step(step, &mut self.executor, &self.input).await;
                }
                _ if self.multi.is_open() && !command.passes_transaction() => {
                    self.multi.queue(command, request, &mut self.lease, &mut self.executor.replies);
                }
                _ => {
                    // RESET and QUIT end a transaction. No other command gets here inside one.
                    self.multi.end();
                    self.executor.run(command, request).await;
                }
            },
            Err(refusal) => {
                self.multi.spoil();
                self.executor.refuse(&refusal, &self.input).await;
            }
        }
        self.parser.give_back(args);
        if self.executor.replies.bytes.len() > REPLY_BYTES { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<(), End> {
        self.wire.send(&mut self.executor.replies).await
    }

    /// Sends an error and closes the connection.
    async fn disconnect<T>(&mut self, why: &str) -> Result<T, End> {
        self.executor.replies.error(why);
        self.flush().await?;
        self.wire.close().await;
        Err("the client was disconnected")
    }
}

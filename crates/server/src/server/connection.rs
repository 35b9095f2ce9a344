//! One connection: reads, executes, replies, one request after another.
//!
//! A client cannot delay others: the server reads nothing from it while its replies wait to be sent or its
//! changes to be written, the memory of its requests and replies is counted, and an unfinished request has to
//! be complete in time. An idle connection holds no buffer, so ten thousand of them cost little.

use super::accepted::Accepted;
use super::clients::Client;
use super::command::{Action, TransactionStep};
use super::executor::Executor;
use super::memory::Lease;
use super::multi::{self, Multi};
use super::request::Request;
use super::state::{Server, Session};
use super::stream::own_bytes;
use super::transaction::Transaction;
use super::wire::{End, Wire};
use crate::resp::{Limits, Parser};
use bytes::{Buf, BytesMut};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

/// Replies beyond this size are sent before the next command is executed.
const REPLY_BYTES: usize = 64 << 10;
/// Replies of a transaction that keeps others from changing anything: more are dropped.
const KEPT_REPLY_BYTES: usize = 16 << 20;
/// Time for a client to authenticate.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);
/// A client with so many wrong passwords is disconnected.
const REFUSED_LOGINS_MAX: u32 = 10;
/// The least time between the replies to two wrong passwords, of all clients together.
const REFUSAL_DELAY: Duration = Duration::from_millis(10);
/// How long a wrong password waits for its reply: doubled with each one.
const FIRST_REFUSAL_DELAY: Duration = Duration::from_millis(25);
/// A connection that waits for its client may keep this much besides what all have, in bytes: room for a few
/// arguments and replies.
const KEPT_BYTES: usize = 2 << 10;
/// A connection may have so many bytes of input without counting them while it executes its requests: whoever
/// sends short ones shall not wait for those who hold memory.
const SERVED_BYTES: usize = 64 << 10;

struct Connection<'s> {
    wire: Wire,
    server: &'s Server,
    /// When the first byte of an unfinished request arrived.
    unfinished_since: Option<Instant>,
    parser: Parser,
    input: BytesMut,
    lease: Lease<'s>,
    multi: Multi,
    executor: Executor<'s>,
}

/// Serves one client until it disconnects, is disconnected, or `stop` becomes true.
pub async fn serve(accepted: Accepted, server: Arc<Server>, id: u64, mut stop: watch::Receiver<bool>) {
    let client = server.clients.enter(id, accepted.address());
    let killed = Arc::clone(&client);
    let stopped = pin!(async move {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => "the server is stopping",
            () = killed.killed() => "the client was disconnected by another",
        }
    });
    let end = serve_until(stopped, accepted, &server, client).await;
    server.clients.leave(id);
    tracing::debug!(client = id, "{end}");
}

/// Returns why it has ended.
async fn serve_until(
    mut stopped: Pin<&mut impl Future<Output = End>>,
    accepted: Accepted,
    server: &Server,
    client: Arc<Client>,
) -> End {
    let own = own_bytes(accepted.is_encrypted());
    let mut lease = Lease::new(&server.memory, &server.clients, Arc::clone(&client), own);
    if !lease.hold(own).await {
        server.counters.rejected.fetch_add(1, Relaxed);
        accepted.refuse("-ERR the connections of all clients need more memory than they may\r\n");
        return "there was no memory for the client";
    }
    let stream = tokio::select! {
        end = stopped.as_mut() => return end,
        stream = accepted.stream() => stream,
    };
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => {
            tracing::info!(client = client.id, error, "no TLS with a client");
            return "there was no handshake";
        }
    };
    let session = Session::new(Arc::clone(&client), server.settings.users.unauthenticated());
    let mut connection = Connection {
        wire: Wire::new(stream, client, server.settings.output_timeout),
        server,
        unfinished_since: None,
        parser: Parser::default(),
        input: BytesMut::new(),
        lease,
        multi: Multi::default(),
        executor: Executor::new(server, session),
    };
    loop {
        if let Err(end) = connection.turn(stopped.as_mut()).await {
            return end;
        }
    }
}

impl Connection<'_> {
    /// Reads the bytes that arrived and executes their requests.
    async fn turn(&mut self, stopped: Pin<&mut impl Future<Output = End>>) -> Result<(), End> {
        self.measure().await?;
        let is_busy = self.receive(stopped).await?;
        loop {
            let limits =
                if self.executor.session.user.is_some() { Limits::FULL } else { Limits::UNAUTHENTICATED };
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
        let complete = self.parser.take_consumed();
        self.input.advance(complete);
        if self.input.is_empty() {
            self.input = BytesMut::new();
        }
        if self.input.is_empty() && !self.wire.is_within_record() {
            self.unfinished_since = None;
        } else {
            let wants_room = self.input.capacity() > 2 * self.input.len() + KEPT_BYTES;
            if complete > 0 || wants_room {
                self.input = BytesMut::from(self.input.as_ref()); // It holds what it needs, and no more.
            }
            if complete > 0 || self.unfinished_since.is_none() {
                // Of a busy client, nearly every read ends within a request, but another one.
                self.unfinished_since = Some(Instant::now());
            }
        }
        if is_busy {
            yield_now().await; // More input is waiting: let other connections run first.
        }
        Ok(())
    }

    /// Waits for bytes. Returns whether more may be waiting.
    async fn receive(&mut self, stopped: Pin<&mut impl Future<Output = End>>) -> Result<bool, End> {
        let settings = &self.server.settings;
        let idle =
            settings.idle_timeout.map(|idle| (Instant::now() + idle, "the client was idle for too long"));
        let login = self.executor.session.user.is_none().then(|| {
            (
                Instant::from(self.executor.session.unknown_since) + LOGIN_TIMEOUT,
                "the client did not authenticate in time",
            )
        });
        let unfinished = self
            .unfinished_since
            .map(|since| (since + settings.request_timeout, "a request was not complete in time"));
        let deadline = [idle, login, unfinished].into_iter().flatten().min();
        let tells_part = self.unfinished_since.is_none();
        let is_busy = self.wire.receive(&mut self.input, tells_part, deadline, stopped).await?;
        self.executor.session.client.note_request();
        if self.input.capacity() > SERVED_BYTES {
            self.measure().await?;
        }
        Ok(is_busy)
    }

    /// Counts the memory of the connection: of requests, of queued commands and of replies.
    async fn measure(&mut self) -> Result<(), End> {
        let held = self.input.capacity() + self.parser.bytes() + self.multi.held() + self.executor.bytes();
        let counted = self.lease.own() + if held < KEPT_BYTES { 0 } else { held };
        if counted == self.lease.held() || self.lease.hold(counted).await {
            return Ok(());
        }
        self.refuse_memory().await
    }

    async fn refuse_memory(&mut self) -> Result<(), End> {
        self.server.counters.disconnected.fetch_add(1, Relaxed);
        self.executor.replies.bytes = Vec::new();
        self.disconnect(&format!(
            "ERR requests and replies of all clients need more than {} bytes, try again later",
            self.server.memory.max()
        ))
        .await
    }

    /// Executes the request that the parser found, or adds it to the batch or to the transaction.
    async fn execute(&mut self) -> Result<(), End> {
        let args = self.parser.lend();
        let request = Request { input: &self.input, args: &args };
        let mut begun = None;
        match self.executor.check_form(request) {
            Ok(command) => match command.run {
                Action::Transaction(step) => {
                    self.executor.execute_pending(&self.input).await;
                    let Executor { session, replies, .. } = &mut self.executor;
                    begun = self.multi.step(step, session, replies);
                    debug_assert!(begun.is_none() || step == TransactionStep::Exec);
                }
                _ if self.multi.is_open() && command.is_open && !command.passes_transaction() => {
                    // Wrong passwords have to wait, which the other commands of a transaction shall not.
                    self.multi.spoil();
                    let refusal = "ERR Command not allowed inside a transaction";
                    self.executor.refuse(refusal, &self.input).await;
                }
                _ if self.multi.is_open() && !command.passes_transaction() => {
                    self.multi.queue(command, request, &mut self.lease, &mut self.executor.replies).await;
                }
                _ if self.multi.is_open() && command.name == "WATCH" => {
                    // As in Redis, the transaction goes on.
                    self.executor.refuse("ERR WATCH inside MULTI is not allowed", &self.input).await;
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
        if let Some(transaction) = begun {
            self.execute_transaction(transaction).await?;
        }
        if self.executor.session.has_to_wait {
            self.wait_after_refusal().await?;
        }
        if self.executor.replies.bytes.len() > REPLY_BYTES {
            // Nobody who is slow to read may keep filters from being deleted.
            self.executor.execute_pending(&self.input).await;
            self.flush().await?;
            yield_now().await; // Whoever reads fast would keep others waiting.
        }
        Ok(())
    }

    async fn execute_transaction(&mut self, open: Transaction) -> Result<(), End> {
        let watched = std::mem::take(&mut self.executor.session.watched);
        let is_exclusive = open.changes();
        let gate = if is_exclusive { Some(self.server.gate.write().await) } else { None };
        if !watched.is_unchanged(&self.server.catalog) {
            self.executor.replies.null_array();
            return Ok(());
        }
        self.executor.is_exclusive = is_exclusive;
        self.executor.replies.array(open.len());
        let (mut next, mut is_cut) = (0, false);
        while next < open.len() {
            next = multi::execute(&mut self.executor, &open, next, REPLY_BYTES).await;
            if is_exclusive {
                is_cut |= self.executor.replies.bytes.len() > KEPT_REPLY_BYTES;
                if is_cut {
                    self.executor.replies.bytes.clear();
                }
            } else {
                self.flush().await?;
            }
            yield_now().await;
        }
        self.executor.is_exclusive = false;
        drop(gate);
        if is_cut {
            self.server.counters.disconnected.fetch_add(1, Relaxed);
            tracing::warn!(
                client = self.executor.session.client.id,
                "disconnected: the replies of a transaction took more than {KEPT_REPLY_BYTES} bytes"
            );
            return Err("the replies of a transaction were too large");
        }
        Ok(())
    }

    /// Makes guessing passwords slow, for one client and for all together.
    async fn wait_after_refusal(&mut self) -> Result<(), End> {
        self.executor.session.has_to_wait = false;
        let refused = self.executor.session.refused_logins;
        sleep(FIRST_REFUSAL_DELAY * 2u32.saturating_pow(refused.saturating_sub(1).min(5))).await;
        {
            let _turn = self.server.refusals.lock().await;
            sleep(REFUSAL_DELAY).await;
        }
        self.flush().await?;
        if refused >= REFUSED_LOGINS_MAX { Err("too many wrong passwords") } else { Ok(()) }
    }

    /// Sends the replies. Large ones count as the client's memory until it has read them.
    async fn flush(&mut self) -> Result<(), End> {
        let (before, replies) = (self.lease.held(), self.executor.replies.bytes.capacity());
        if replies > REPLY_BYTES && !self.lease.hold(before + replies).await {
            return self.refuse_memory().await;
        }
        self.send().await?;
        self.lease.hold(before).await; // It holds no more than that, so nothing is refused.
        Ok(())
    }

    async fn send(&mut self) -> Result<(), End> {
        let sent = self.wire.send(&mut self.executor.replies).await;
        if sent.is_err() {
            self.server.counters.disconnected.fetch_add(1, Relaxed);
        }
        sent
    }

    /// Sends an error and closes the connection.
    async fn disconnect<T>(&mut self, why: &str) -> Result<T, End> {
        self.executor.replies.error(why);
        self.send().await?;
        self.wire.close().await;
        Err("the client was disconnected")
    }
}

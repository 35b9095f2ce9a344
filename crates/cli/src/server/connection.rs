//! One connection: reads, executes, replies, one request after another.
//!
//! A client cannot delay others: the server reads nothing from it while its replies wait to be sent or its
//! changes to be written, and the size of an unfinished request is bounded. An idle connection holds no
//! buffer, so that ten thousand of them cost little.

use super::command::{Action, Call, Command, ItemArgs, ItemOp};
use super::pending::{PendingCommands, ReplyShape};
use super::replies::Replies;
use super::shared::{Lease, Server, Session};
use super::transaction::Transaction;
use super::{insert, table};
use crate::resp::{Limits, Parser};
use bytes::{Buf, BytesMut};
use sidebloom::filter::Verdict;
use sidebloom::guard::Changes;
use std::future::Future;
use std::io::ErrorKind;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};

/// Minimum size of a read; the same as in Redis.
const READ_BYTES: usize = 16 << 10;
/// Unfinished requests up to this size do not count towards the total for all connections.
pub const UNCOUNTED_BYTES: usize = 64 << 10;
/// Replies beyond this size are sent before the next command is executed.
const REPLY_BYTES: usize = 64 << 10;
/// Items processed before yielding to other connections; about a third of a millisecond.
const ITEMS_AT_ONCE: usize = 4096;
/// Time for a client to authenticate.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for a disconnected client to read the reason.
const LINGER: Duration = Duration::from_secs(1);

/// Why a connection ends, for the log.
pub type End = &'static str;

pub struct Connection<'s> {
    stream: TcpStream,
    server: &'s Server,
    session: Session,
    since: Instant,
    parser: Parser,
    pub(super) input: BytesMut,
    pub(super) lease: Lease<'s>,
    pub(super) transaction: Option<Transaction>,
    pending: PendingCommands,
    pub(super) replies: Replies,
}

/// Serves one client until it disconnects, is disconnected, or `stop` becomes true.
pub async fn serve(stream: TcpStream, server: Arc<Server>, id: u64, mut stop: watch::Receiver<bool>) {
    let is_allowed = server.settings.password.is_none();
    let mut connection = Connection {
        stream,
        server: &server,
        session: Session { id, is_allowed, name: Vec::new(), is_over: false },
        since: Instant::now(),
        parser: Parser::default(),
        input: BytesMut::new(),
        lease: Lease::new(&server),
        transaction: None,
        pending: PendingCommands::default(),
        replies: Replies::default(),
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
            let limits = if self.session.is_allowed { Limits::FULL } else { Limits::UNAUTHENTICATED };
            match self.parser.next(&mut self.input, limits) {
                Ok(true) => self.execute().await?,
                Ok(false) => break,
                Err(error) => {
                    self.execute_pending().await?;
                    return self.disconnect(&format!("ERR Protocol error: {}", error.0)).await;
                }
            }
            if self.session.is_over {
                self.flush().await?;
                return Err("the client quit");
            }
        }
        self.execute_pending().await?;
        self.flush().await?;
        self.input.advance(self.parser.take_consumed());
        if self.input.is_empty() {
            self.input = BytesMut::new();
            let held = self.transaction.as_ref().map_or(0, |open| open.held);
            self.lease.hold(if held > UNCOUNTED_BYTES { held } else { 0 }); // No more than before.
        }
        if is_busy {
            yield_now().await; // More input is waiting: let other connections run first.
        }
        Ok(())
    }

    /// Waits for bytes. Returns whether more may be waiting.
    async fn receive(&mut self, stopped: Pin<&mut impl Future<Output = ()>>) -> Result<bool, End> {
        let deadline = if self.session.is_allowed {
            self.server.settings.idle_timeout.map(|idle| Instant::now() + idle)
        } else {
            Some(self.since + LOGIN_TIMEOUT)
        };
        let (stream, input) = (&mut self.stream, &mut self.input);
        let read = async {
            stream.readable().await?;
            input.reserve(READ_BYTES);
            stream.read_buf(input).await
        };
        let len = tokio::select! {
            biased; // A client that never pauses must not keep the server from stopping.
            () = stopped => return Err("the server is stopping"),
            read = read => read.map_err(|_| "the connection broke")?,
            () = until(deadline) => return Err("the client was idle for too long"),
        };
        if len == 0 {
            return Err("the client disconnected");
        }
        let held = self.input.capacity() + self.transaction.as_ref().map_or(0, |open| open.held);
        if held > UNCOUNTED_BYTES && !self.lease.hold(held) {
            self.disconnect("ERR too many large requests at once, try again later").await?;
        }
        Ok(len >= READ_BYTES)
    }

    /// Executes the request that the parser found, or adds it to the batch.
    async fn execute(&mut self) -> Result<(), End> {
        let args = self.parser.lend();
        let done = match self.check_form(&args) {
            Ok(command) => match command.run {
                Action::Transaction(step) => self.step(step).await,
                _ if self.transaction.is_some() && !command.passes_transaction() => {
                    self.queue(command, &args);
                    Ok(())
                }
                _ => {
                    // RESET and QUIT end a transaction; with other commands there is none here.
                    self.transaction = None;
                    self.run(command, &args).await
                }
            },
            Err(refusal) => {
                if let Some(open) = &mut self.transaction {
                    open.spoil();
                }
                self.refuse(&refusal).await
            }
        };
        self.parser.give_back(args);
        done?;
        if self.replies.bytes.len() > REPLY_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Executes a command whose form was checked, or adds it to the batch.
    pub(super) async fn run(&mut self, command: &'static Command, args: &[Range<usize>]) -> Result<(), End> {
        let items = match self.check_items(command, args) {
            Ok(items) => items,
            Err(refusal) => return self.refuse(&refusal).await,
        };
        match command.run {
            Action::Items { what, items: form } => {
                if self.pending.what().is_some_and(|before| !before.joins(what)) {
                    self.execute_pending().await?;
                }
                self.pending.push(
                    what,
                    items,
                    if form == ItemArgs::One { ReplyShape::One } else { ReplyShape::Array },
                );
            }
            Action::Now(run) => {
                self.execute_pending().await?;
                let args: Vec<&[u8]> = args.iter().map(|arg| slice(&self.input, arg)).collect();
                let (server, session, replies) = (self.server, &mut self.session, &mut self.replies);
                run(&mut Call { server, session, replies, commands: table::COMMANDS, args: &args });
                self.server.counters.commands.fetch_add(1, Relaxed);
            }
            Action::Transaction(_) => {} // `execute` handles these.
        }
        Ok(())
    }

    async fn refuse(&mut self, refusal: &str) -> Result<(), End> {
        self.execute_pending().await?;
        self.replies.error(refusal);
        Ok(())
    }

    /// Looks up the command and checks the number of its arguments and the client's permission.
    fn check_form(&mut self, args: &[Range<usize>]) -> Result<&'static Command, String> {
        let arg = |n: usize| args.get(n).map(|arg| slice(&self.input, arg)).unwrap_or_default();
        let Some(command) = table::find(arg(0)) else {
            // A web page can make a browser send these. Redis disconnects such clients too.
            self.session.is_over |=
                [&b"POST"[..], b"Host:"].iter().any(|word| arg(0).eq_ignore_ascii_case(word));
            let shown = |n| format!("{:.128}", arg(n).escape_ascii().to_string());
            let rest: String = (1..args.len().min(4)).map(|n| format!("'{}' ", shown(n))).collect();
            return Err(format!("ERR unknown command '{}', with args beginning with: {rest}", shown(0)));
        };
        if !command.takes(args.len()) {
            return Err(format!(
                "ERR wrong number of arguments for '{}' command",
                command.name.to_ascii_lowercase()
            ));
        }
        if !self.session.is_allowed && !command.is_open {
            return Err("NOAUTH Authentication required.".into());
        }
        Ok(command)
    }

    /// The items of a command, or why it is refused.
    fn check_items<'a>(
        &self,
        command: &Command,
        args: &'a [Range<usize>],
    ) -> Result<&'a [Range<usize>], String> {
        let arg = |n: usize| args.get(n).map(|arg| slice(&self.input, arg));
        if command.takes_filter && arg(1) != Some(&self.server.settings.name) {
            return Err(match command.name {
                "BF.RESERVE" | "CF.RESERVE" => {
                    let only = self.server.settings.name.escape_ascii();
                    format!("ERR could not create filter: this server only has '{only}'")
                }
                _ => "ERR not found".into(),
            });
        }
        let Action::Items { what, items } = command.run else { return Ok(&[]) };
        let first = match items {
            ItemArgs::One | ItemArgs::Many => 2,
            ItemArgs::Listed => insert::items_at(command.group == "bf", arg)?,
        };
        let items = args.get(first..).unwrap_or_default();
        if what != ItemOp::Ask {
            if self.server.settings.is_followed && what != ItemOp::Count {
                return Err("ERR this guard follows a database: change the database instead".into());
            }
            let canonical = self.server.guard.canonical();
            items
                .iter()
                .try_for_each(|item| canonical.apply(slice(&self.input, item)).map(drop))
                .map_err(|e| format!("ERR {e}"))?;
        }
        Ok(items)
    }

    /// Executes the batch and writes its replies.
    pub(super) async fn execute_pending(&mut self) -> Result<(), End> {
        let Some(what) = self.pending.what() else { return Ok(()) };
        self.server.counters.commands.fetch_add(self.pending.commands.len() as u64, Relaxed);
        match what {
            ItemOp::Ask => self.ask().await,
            ItemOp::Count => self.count().await,
            ItemOp::InsertNew | ItemOp::Insert | ItemOp::Remove => self.change().await,
        }
        self.pending.clear();
        Ok(())
    }

    async fn ask(&mut self) {
        if let [item] = self.pending.items.as_slice() {
            let verdict = self.server.guard.may_contain(slice(&self.input, item));
            return self.pending.reply(&mut self.replies, [verdict == Verdict::Maybe], Replies::boolean);
        }
        let verdicts = self.verdicts().await;
        let answers = verdicts.into_iter().map(|verdict| verdict == Verdict::Maybe);
        self.pending.reply(&mut self.replies, answers, Replies::boolean);
    }

    async fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for items in self.pending.items.chunks(ITEMS_AT_ONCE) {
            if !verdicts.is_empty() {
                yield_now().await;
            }
            let items: Vec<&[u8]> = items.iter().map(|item| slice(&self.input, item)).collect();
            verdicts.extend(self.server.guard.may_contain_many(&items));
        }
        verdicts
    }

    /// Counts the items that may be present in another thread, since that may read the disk.
    async fn count(&mut self) {
        // While the guard may lack rows, no item is reported as absent.
        let least = u64::from(self.server.guard.is_suspended());
        let verdicts = self.verdicts().await;
        let maybe = |(item, verdict): (&Range<usize>, &Verdict)| {
            (*verdict == Verdict::Maybe).then(|| slice(&self.input, item).to_vec())
        };
        let items: Vec<Vec<u8>> = self.pending.items.iter().zip(&verdicts).filter_map(maybe).collect();
        let counts: Result<Vec<u64>, String> = if items.is_empty() {
            Ok(Vec::new())
        } else {
            let guard = self.server.guard.clone();
            let count = move || items.iter().map(|item| guard.count(item)).collect::<sidebloom::Result<_>>();
            match tokio::task::spawn_blocking(count).await {
                Ok(counts) => counts.map_err(|e| e.to_string()),
                Err(_) => Err("the server is stopping".into()),
            }
        };
        match counts {
            Ok(counts) => {
                let mut counts = counts.into_iter();
                let answer = |verdict: &Verdict| match verdict {
                    Verdict::Maybe => counts.next().unwrap_or(0).max(least),
                    Verdict::Absent => 0,
                };
                self.pending.reply(&mut self.replies, verdicts.iter().map(answer), Replies::int);
            }
            Err(error) => self.pending.refuse(&mut self.replies, &format!("ERR {error}")),
        }
    }

    async fn change(&mut self) {
        let mut changes = Changes::new();
        for (n, (what, item)) in self.pending.each().enumerate() {
            if n % ITEMS_AT_ONCE == ITEMS_AT_ONCE - 1 {
                yield_now().await;
            }
            let item = slice(&self.input, item);
            match what {
                ItemOp::Insert => changes.insert(item),
                ItemOp::Remove => changes.remove(item),
                ItemOp::InsertNew | ItemOp::Ask | ItemOp::Count => changes.insert_new(item),
            };
        }
        match self.server.writer.write(changes).await {
            Ok(done) => self.pending.reply(&mut self.replies, done, Replies::boolean),
            Err(error) => {
                let error = format!("MISCONF Errors writing to the guard: {error}");
                self.pending.refuse(&mut self.replies, &error);
            }
        }
    }

    /// Sends the replies. A client that does not read them is disconnected.
    async fn flush(&mut self) -> Result<(), End> {
        let mut rest = self.replies.bytes.as_slice();
        while !rest.is_empty() {
            match self.stream.try_write(rest) {
                Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let writable = timeout(self.server.settings.output_timeout, self.stream.writable()).await;
                    writable
                        .map_err(|_| "the client does not read its replies")?
                        .map_err(|_| "the connection broke")?;
                }
                Err(_) => return Err("the connection broke"),
            }
        }
        self.replies.bytes.clear();
        self.replies.bytes.shrink_to(READ_BYTES / 16);
        Ok(())
    }

    /// Sends an error and closes the connection. Input is read and discarded for a moment: closing with
    /// unread input would make the client's system drop the reply.
    async fn disconnect<T>(&mut self, why: &str) -> Result<T, End> {
        self.replies.error(why);
        self.flush().await?;
        let drain = async {
            let _ = self.stream.shutdown().await;
            let mut dropped = [0; 4096];
            while self.stream.read(&mut dropped).await.is_ok_and(|len| len > 0) {}
        };
        let _ = timeout(LINGER, drain).await;
        Err("the client was disconnected")
    }
}

/// The bytes of an argument.
fn slice<'b>(buffer: &'b BytesMut, range: &Range<usize>) -> &'b [u8] {
    buffer.get(range.clone()).unwrap_or_default()
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

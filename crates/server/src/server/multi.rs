//! `WATCH`, `MULTI`, `EXEC` and `DISCARD`: what redis-py's `pipeline()` sends.
//!
//! 1. After `MULTI`, commands are queued, and each gets the reply `QUEUED`. An unknown command, or a wrong
//!    number of arguments, is rejected immediately and aborts the transaction: `EXEC` replies `EXECABORT` and
//!    executes nothing.
//! 2. `EXEC` executes the commands in order and replies with an array of their replies. A command that fails
//!    has an error in the array; the others are still executed. Consecutive changes are one atomic write.
//! 3. If the transaction changes something, nobody else changes anything from the moment when `EXEC` compares
//!    what was watched until its last command. Others may ask in between.
//! 4. If what was watched has changed, `EXEC` replies null and executes nothing.
//!
//! While it keeps others from changing anything, its replies are kept. If they grow too large, the rest is
//! dropped and the client disconnected, after all commands were executed.

use super::command::{Command, TransactionStep};
use super::executor::Executor;
use super::memory::Lease;
use super::request::Request;
use super::state::Session;
use super::transaction::Transaction;
use crate::resp::{Limits, Replies};

/// Commands that are executed before other connections have their turn.
const COMMANDS_AT_ONCE: usize = 1024;

/// The transaction of a connection, if one is open.
#[derive(Default)]
pub struct Multi {
    open: Option<Transaction>,
}

impl Multi {
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Memory of the queued commands, in bytes.
    pub fn held(&self) -> usize {
        self.open.as_ref().map_or(0, Transaction::bytes)
    }

    /// Ends the transaction without executing it.
    pub fn end(&mut self) {
        self.open = None;
    }

    /// Aborts the transaction after an invalid command.
    pub fn spoil(&mut self) {
        if let Some(open) = &mut self.open {
            open.spoil();
        }
    }

    /// `MULTI`, `DISCARD`, and the beginning of `EXEC`, which returns the commands to be executed.
    pub fn step(
        &mut self,
        step: TransactionStep,
        session: &mut Session,
        replies: &mut Replies,
    ) -> Option<Transaction> {
        match (step, self.open.take()) {
            (TransactionStep::Multi, None) => {
                self.open = Some(Transaction::default());
                replies.simple("OK");
            }
            (TransactionStep::Multi, open) => {
                self.open = open;
                replies.error("ERR MULTI calls can not be nested");
            }
            (TransactionStep::Discard, None) => replies.error("ERR DISCARD without MULTI"),
            (TransactionStep::Discard, Some(_)) => {
                session.watched.clear();
                replies.simple("OK");
            }
            (TransactionStep::Exec, None) => replies.error("ERR EXEC without MULTI"),
            (TransactionStep::Exec, Some(open)) if open.is_spoilt => {
                session.watched.clear();
                replies.error("EXECABORT Transaction discarded because of previous errors.");
            }
            (TransactionStep::Exec, Some(open)) => return Some(open),
        }
        None
    }

    /// Queues a command for `EXEC`.
    pub async fn queue(
        &mut self,
        command: &'static Command,
        request: Request<'_>,
        lease: &mut Lease<'_>,
        replies: &mut Replies,
    ) {
        let Some(open) = &mut self.open else { return };
        if open.is_spoilt {
            return replies.simple("QUEUED");
        }
        let bytes: usize = request.args.iter().map(ExactSizeIterator::len).sum();
        let more = Transaction::bytes_of(request.args.len(), bytes);
        let refusal = if open.bytes() + more > Limits::FULL.request {
            "ERR the transaction is too large"
        } else if !lease.hold(lease.held() + more).await {
            "ERR too many large requests at once, try again later"
        } else {
            open.push(command, request.words());
            return replies.simple("QUEUED");
        };
        open.spoil();
        replies.error(refusal);
    }
}

/// Executes some of a transaction's commands, until they have added so many bytes of replies: it does not
/// take long, so others wait little. Returns the number of the command to continue with.
pub async fn execute(
    executor: &mut Executor<'_>,
    open: &Transaction,
    from: usize,
    reply_bytes: usize,
) -> usize {
    let mut next = from;
    let before = executor.replies.bytes.len();
    for (command, args) in open.commands(from).take(COMMANDS_AT_ONCE) {
        executor.run(command, Request { input: &open.arguments, args }).await;
        next += 1;
        if executor.replies.bytes.len() > before + reply_bytes {
            break;
        }
    }
    // Consecutive changes are one write, however many they are.
    if next == open.len() || !executor.has_pending_changes() {
        executor.execute_pending(&open.arguments).await;
    }
    next
}

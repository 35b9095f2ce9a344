//! `MULTI`, `EXEC` and `DISCARD`: what redis-py's `pipeline()` sends.
//!
//! 1. After `MULTI`, commands are queued, and each gets the reply `QUEUED`. An unknown command, or a wrong
//!    number of arguments, is rejected immediately and aborts the transaction: `EXEC` replies `EXECABORT` and
//!    executes nothing.
//! 2. `EXEC` executes the commands in order and replies with an array of their replies. A command that fails
//!    has an error in the array; the others are still executed. Consecutive changes are one atomic write.
//!
//! Other clients may be served between the commands of a transaction. There is no `WATCH`.

use super::command::{Command, TransactionStep};
use super::executor::Executor;
use super::replies::Replies;
use super::request::Request;
use super::shared::Lease;
use super::transaction::Transaction;
use crate::resp::Limits;
use bytes::BytesMut;
use std::mem::size_of;
use std::ops::Range;

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
        self.open.as_ref().map_or(0, |open| open.held)
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

    /// `MULTI`, `EXEC`, `DISCARD`. `input` has the items of the waiting batch.
    pub async fn step(&mut self, step: TransactionStep, executor: &mut Executor<'_>, input: &BytesMut) {
        executor.execute_pending(input).await;
        let replies = &mut executor.replies;
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
            (TransactionStep::Discard, Some(_)) => replies.simple("OK"),
            (TransactionStep::Exec, None) => replies.error("ERR EXEC without MULTI"),
            (TransactionStep::Exec, Some(open)) if open.is_spoilt => {
                replies.error("EXECABORT Transaction discarded because of previous errors.");
            }
            (TransactionStep::Exec, Some(open)) => {
                replies.array(open.commands.len());
                for (command, args) in &open.commands {
                    executor.run(command, Request { input: &open.arguments, args }).await;
                }
                executor.execute_pending(&open.arguments).await;
            }
        }
    }

    /// Queues a command for `EXEC`.
    pub fn queue(
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
        let bytes: usize = request.args.iter().map(|arg| arg.len() + size_of::<Range<usize>>()).sum();
        open.held += bytes + size_of::<(&Command, Vec<Range<usize>>)>();
        let refusal = if open.held > Limits::FULL.request {
            "ERR the transaction is too large"
        } else if !lease.cover(request.input.capacity() + open.held) {
            "ERR too many large requests at once, try again later"
        } else {
            open.push(command, request.words());
            return replies.simple("QUEUED");
        };
        open.spoil();
        replies.error(refusal);
    }
}

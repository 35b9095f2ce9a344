//! `MULTI`, `EXEC` and `DISCARD`: what redis-py's `pipeline()` sends.
//!
//! 1. After `MULTI`, commands are queued, and each is answered with `QUEUED`. An unknown command, or one with
//!    a wrong number of arguments, is rejected immediately and aborts the transaction: `EXEC` replies
//!    `EXECABORT` and executes nothing.
//! 2. `EXEC` executes the commands in order and replies with an array of their replies. A command that fails
//!    has an error in the array; the others are executed nevertheless. Consecutive changes are one atomic
//!    write of the guard.
//!
//! Other clients may be served between the commands of a transaction. There is no `WATCH`.

use super::command::{Command, TransactionStep};
use super::connection::{Connection, End, UNCOUNTED_BYTES};
use super::transaction::Transaction;
use crate::resp::Limits;
use std::mem::{size_of, swap};
use std::ops::Range;

impl Connection<'_> {
    /// `MULTI`, `EXEC`, `DISCARD`.
    pub(super) async fn step(&mut self, step: TransactionStep) -> Result<(), End> {
        self.execute_pending().await?;
        match (step, self.transaction.take()) {
            (TransactionStep::Multi, None) => {
                self.transaction = Some(Transaction::default());
                self.replies.simple("OK");
            }
            (TransactionStep::Multi, open) => {
                self.transaction = open;
                self.replies.error("ERR MULTI calls can not be nested");
            }
            (TransactionStep::Discard, None) => self.replies.error("ERR DISCARD without MULTI"),
            (TransactionStep::Discard, Some(_)) => self.replies.simple("OK"),
            (TransactionStep::Exec, None) => self.replies.error("ERR EXEC without MULTI"),
            (TransactionStep::Exec, Some(open)) if open.is_spoilt => {
                self.replies.error("EXECABORT Transaction discarded because of previous errors.");
            }
            (TransactionStep::Exec, Some(mut open)) => {
                self.replies.array(open.commands.len());
                // `run` expects arguments in the input buffer.
                swap(&mut self.input, &mut open.arguments);
                let done = self.run_all(&open.commands).await;
                swap(&mut self.input, &mut open.arguments);
                done?;
            }
        }
        Ok(())
    }

    async fn run_all(&mut self, commands: &[(&'static Command, Vec<Range<usize>>)]) -> Result<(), End> {
        for (command, args) in commands {
            self.run(command, args).await?;
        }
        self.execute_pending().await
    }

    /// Queues a command for `EXEC`.
    pub(super) fn queue(&mut self, command: &'static Command, args: &[Range<usize>]) {
        let Some(open) = &mut self.transaction else { return };
        if open.is_spoilt {
            return self.replies.simple("QUEUED");
        }
        let bytes: usize = args.iter().map(|arg| arg.len() + size_of::<Range<usize>>()).sum();
        open.held += bytes + size_of::<(&Command, Vec<Range<usize>>)>();
        let held = self.input.capacity() + open.held;
        let refusal = if open.held > Limits::FULL.request {
            "ERR the transaction is too large"
        } else if held > UNCOUNTED_BYTES && !self.lease.hold(held) {
            "ERR too many large requests at once, try again later"
        } else {
            open.push(command, args.iter().map(|arg| self.input.get(arg.clone()).unwrap_or_default()));
            return self.replies.simple("QUEUED");
        };
        open.spoil();
        self.replies.error(refusal);
    }
}

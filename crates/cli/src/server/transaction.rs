//! `MULTI`, `EXEC` and `DISCARD`: what redis-py's `pipeline()` sends.
//!
//! 1. After `MULTI`, commands are kept and answered with `QUEUED`. One that is unknown or has too few or too many arguments is refused
//!    at once and spoils the transaction: `EXEC` answers `EXECABORT`, and nothing is done.
//! 2. `EXEC` does the commands in their order and answers with an array of their replies; one that fails has an error there, and the
//!    others are done all the same. Changes that follow each other are one write of the guard: all of them or none.
//!
//! Other clients may be served between the commands of a transaction, as between those of a pipeline. There is no `WATCH`.

use super::command::{Command, Step};
use super::connection::{Connection, End, UNCOUNTED_BYTES};
use crate::resp::Limits;
use bytes::BytesMut;
use std::mem::{size_of, swap};
use std::ops::Range;

/// The commands since `MULTI`.
#[derive(Default)]
pub struct Transaction {
    /// The arguments of all commands.
    arguments: BytesMut,
    commands: Vec<(&'static Command, Vec<Range<usize>>)>,
    /// Memory of all that, in bytes.
    pub held: usize,
    is_spoilt: bool,
}

impl Transaction {
    /// Nothing will come of it: its memory is not needed.
    pub fn spoil(&mut self) {
        *self = Transaction { is_spoilt: true, ..Transaction::default() };
    }

    fn push(&mut self, command: &'static Command, words: impl Iterator<Item = impl AsRef<[u8]>>) {
        let mut ranges = Vec::new();
        for word in words {
            let start = self.arguments.len();
            self.arguments.extend_from_slice(word.as_ref());
            ranges.push(start..self.arguments.len());
        }
        self.commands.push((command, ranges));
    }
}

impl Connection<'_> {
    /// `MULTI`, `EXEC`, `DISCARD`.
    pub(super) async fn step(&mut self, step: Step) -> Result<(), End> {
        self.settle().await?;
        match (step, self.transaction.take()) {
            (Step::Multi, None) => {
                self.transaction = Some(Transaction::default());
                self.replies.simple("OK");
            }
            (Step::Multi, open) => {
                self.transaction = open;
                self.replies.error("ERR MULTI calls can not be nested");
            }
            (Step::Discard, None) => self.replies.error("ERR DISCARD without MULTI"),
            (Step::Discard, Some(_)) => self.replies.simple("OK"),
            (Step::Exec, None) => self.replies.error("ERR EXEC without MULTI"),
            (Step::Exec, Some(open)) if open.is_spoilt => {
                self.replies.error("EXECABORT Transaction discarded because of previous errors.");
            }
            (Step::Exec, Some(mut open)) => {
                self.replies.array(open.commands.len());
                // The commands' arguments are where those of a request are.
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
        self.settle().await
    }

    /// Keeps a command for `EXEC`.
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

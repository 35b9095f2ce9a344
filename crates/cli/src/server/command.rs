//! A command of the protocol, and a call of it.

use super::replies::Replies;
use super::shared::{Server, Session};
use sidebloom::Expiry;

/// One command.
pub struct Command {
    /// In capitals; clients may use any case.
    pub name: &'static str,
    /// Number of arguments, including the name; if negative, the minimum.
    pub arity: i64,
    pub run: Action,
    /// The first argument is the name of the filter.
    pub takes_filter: bool,
    /// Allowed before the password.
    pub is_open: bool,
    pub group: &'static str,
    pub summary: &'static str,
}

/// A command with its arguments.
pub struct Call<'c> {
    pub server: &'c Server,
    pub session: &'c mut Session,
    pub replies: &'c mut Replies,
    /// All commands of the server.
    pub commands: &'static [Command],
    /// The name first.
    pub args: &'c [&'c [u8]],
}

impl<'c> Call<'c> {
    /// An argument; number 0 is the name. Empty if there is none: the arity was checked before.
    pub fn arg(&self, n: usize) -> &'c [u8] {
        self.args.get(n).copied().unwrap_or_default()
    }

    pub fn is(&self, n: usize, word: &str) -> bool {
        self.arg(n).eq_ignore_ascii_case(word.as_bytes())
    }

    pub fn wrong_arity(&mut self, of: &str) {
        self.replies
            .error(&format!("ERR wrong number of arguments for '{}' command", of.to_ascii_lowercase()));
    }

    pub fn unknown_subcommand(&mut self) {
        let text = format!("ERR unknown subcommand '{:.128}'.", self.arg(1).escape_ascii().to_string());
        self.replies.error(&text);
    }
}

/// How a command is executed.
#[derive(Clone, Copy)]
pub enum Action {
    /// Queries or changes of items; consecutive ones are batched.
    Items { what: ItemOp, items: ItemArgs },
    /// Executed immediately.
    Now(fn(&mut Call<'_>)),
    /// MULTI, EXEC or DISCARD.
    Transaction(TransactionStep),
}

/// Which arguments are items.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ItemArgs {
    One,
    /// The one after the filter's name; what follows says when it expires.
    OneExpiring,
    /// All arguments after the filter's name.
    Many,
    /// All arguments after the options and the word ITEMS.
    Listed,
}

/// The transaction commands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TransactionStep {
    Multi,
    Exec,
    Discard,
}

/// What is done with items. Commands of the same kind are batched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ItemOp {
    /// Whether it may be present, from memory.
    Ask,
    /// How many there are.
    Count,
    /// Inserted unless it is present.
    InsertNew,
    /// Inserted unless it is present, until it expires.
    InsertExpiring(Expiry),
    /// Inserted once more.
    Insert,
    /// Removed once.
    Remove,
}

impl ItemOp {
    /// Whether `self` and `other` can share a batch.
    pub fn joins(self, other: ItemOp) -> bool {
        self == other || (self.is_change() && other.is_change())
    }

    pub fn is_change(self) -> bool {
        !matches!(self, ItemOp::Ask | ItemOp::Count)
    }
}

impl Command {
    pub fn is_named(&self, name: &[u8]) -> bool {
        self.name.len() == name.len() && name.eq_ignore_ascii_case(self.name.as_bytes())
    }

    /// Whether it is executed immediately even within a transaction.
    pub fn passes_transaction(&self) -> bool {
        matches!(self.name, "QUIT" | "RESET")
    }

    pub fn takes(&self, args: usize) -> bool {
        let wanted = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { args >= wanted } else { args == wanted }
    }
}

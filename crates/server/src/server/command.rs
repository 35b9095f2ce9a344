//! A command of the protocol, and a call of it.

use super::state::{Server, Session};
use super::users::RuledCommands;
use crate::filters::Kind;
use crate::resp::Replies;
use sidebloom::Expiry;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Commands whose misuse harms others.
const DANGEROUS: [&str; 10] =
    ["ACL", "BGSAVE", "CLIENT", "CONFIG", "FLUSHALL", "FLUSHDB", "INFO", "KEYS", "SAVE", "SLOWLOG"];
/// Commands for whoever runs the server.
const ADMIN: [&str; 6] = ["ACL", "BGSAVE", "CONFIG", "SAVE", "SLOWLOG", "LATENCY"];
/// Every category, as `ACL CAT` lists them.
pub const CATEGORIES: [&str; 9] =
    ["admin", "bloom", "connection", "cuckoo", "dangerous", "keyspace", "read", "transaction", "write"];

/// One command.
pub struct Command {
    /// In capitals; clients may use any case.
    pub name: &'static str,
    /// Number of arguments, including the name; if negative, the minimum.
    pub arity: i64,
    pub run: Action,
    pub keys: KeyArgs,
    /// Allowed before the password.
    pub is_open: bool,
    /// Whether it changes something. Those of items say so by their operation.
    pub changes: bool,
    pub group: &'static str,
    pub summary: &'static str,
    pub calls: Calls,
}

/// How often a command was executed by this process, and how long that took.
pub struct Calls {
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Calls {
    pub const fn none() -> Self {
        Calls { count: AtomicU64::new(0), nanos: AtomicU64::new(0) }
    }

    /// Notes calls that took this long together.
    pub fn note(&self, count: u64, time: Duration) {
        self.count.fetch_add(count, Relaxed);
        self.nanos.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    pub fn micros(&self) -> u64 {
        self.nanos.load(Relaxed) / 1000
    }

    pub fn reset(&self) {
        self.count.store(0, Relaxed);
        self.nanos.store(0, Relaxed);
    }
}

/// Which arguments are names of filters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KeyArgs {
    None,
    /// The first.
    First,
    /// The first two.
    Two,
    /// All.
    All,
    /// The one after the subcommand.
    Second,
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

    /// `OK`, or the error.
    pub fn done(&mut self, outcome: Result<(), impl std::fmt::Display>) {
        match outcome {
            Ok(()) => self.replies.simple("OK"),
            Err(error) => self.replies.error(&error.to_string()),
        }
    }
}

/// How a command is executed.
#[derive(Clone, Copy)]
pub enum Action {
    /// Queries or changes of items; consecutive ones are batched.
    Items { what: ItemOp, items: ItemArgs },
    /// Executed immediately.
    Now(fn(&mut Call<'_>)),
    /// May wait for the disk.
    Waiting(fn(&mut Call<'_>)),
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
    /// Whether it may be present.
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

    /// Whether it adds items, and so creates a filter.
    pub fn adds(self) -> bool {
        self.is_change() && self != ItemOp::Remove
    }
}

impl Command {
    pub fn is_named(&self, name: &[u8]) -> bool {
        self.name.len() == name.len() && name.eq_ignore_ascii_case(self.name.as_bytes())
    }

    /// Whether it is executed immediately even within a transaction.
    pub fn passes_transaction(&self) -> bool {
        matches!(self.name, "QUIT" | "RESET" | "WATCH")
    }

    /// The kind of filter that it is for.
    pub fn kind(&self) -> Kind {
        if self.group == "bf" { Kind::Bloom } else { Kind::Cuckoo }
    }

    pub fn takes(&self, args: usize) -> bool {
        let wanted = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { args >= wanted } else { args == wanted }
    }

    /// Whether it changes filters.
    pub fn is_change(&self) -> bool {
        match self.run {
            Action::Items { what, .. } => what.is_change(),
            _ => self.changes,
        }
    }

    /// Whether it is in a category of access control lists.
    pub fn is_in(&self, category: &str) -> bool {
        match category.to_ascii_lowercase().as_str() {
            "all" => true,
            "read" => self.has_names() && !self.is_change(),
            "write" => self.is_change(),
            "bloom" => self.group == "bf",
            "cuckoo" => self.group == "cf",
            "keyspace" => self.group == "generic",
            "connection" => self.group == "connection",
            "transaction" => self.group == "transactions",
            "admin" => ADMIN.contains(&self.name),
            "dangerous" => DANGEROUS.contains(&self.name),
            _ => false,
        }
    }

    /// Whether names of filters may be among its arguments.
    pub fn has_names(&self) -> bool {
        self.keys != KeyArgs::None
    }

    /// The positions of the names of filters among `args` arguments, the command's name included.
    pub fn keys(&self, args: usize) -> std::ops::Range<usize> {
        match self.keys {
            KeyArgs::None => 1..1,
            KeyArgs::First => 1..2,
            KeyArgs::Two => 1..3,
            KeyArgs::All => 1..args,
            KeyArgs::Second => 2..args.clamp(2, 3),
        }
    }
}

impl RuledCommands for [Command] {
    fn count(&self) -> usize {
        self.len()
    }

    fn name(&self, position: usize) -> &str {
        self.get(position).map_or("", |command| command.name)
    }

    fn is_in(&self, position: usize, category: &str) -> bool {
        self.get(position).is_some_and(|command| command.is_in(category))
    }
}

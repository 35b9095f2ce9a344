//! The commands: their names, how many arguments they take, and what runs them.

use super::replies::Replies;
use super::session::Session;
use super::shared::Server;
use super::{about, filter, session};

/// One command.
pub struct Command {
    /// In capitals, as a client may write it in any.
    pub name: &'static str,
    /// Arguments with the name; negative: at least so many.
    pub arity: i64,
    pub run: Run,
    /// The first argument is the name of the filter.
    pub takes_filter: bool,
    /// Allowed before the password.
    pub is_open: bool,
    pub group: &'static str,
    pub summary: &'static str,
}

/// What runs a command.
#[derive(Clone, Copy)]
pub enum Run {
    /// Questions to the filter or changes: consecutive ones are done together.
    Items { what: What, items: Items },
    /// At once.
    Now(fn(&mut Call<'_>)),
    /// About the commands of a transaction.
    Transaction(Step),
}

/// Which arguments are items.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Items {
    One,
    /// All after the filter's name.
    Many,
    /// Those after options and the word ITEMS.
    Listed,
}

/// What is done with a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Multi,
    Exec,
    Discard,
}

/// What is done with items. Commands that do the same wait for each other's company.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// May it be there? From memory.
    Ask,
    /// How many are there?
    Count,
    /// It comes, if it is not there.
    InsertNew,
    /// It comes.
    Insert,
    /// It goes.
    Remove,
}

impl What {
    /// Whether `self` and `other` can be done in one step.
    pub fn joins(self, other: What) -> bool {
        self == other || (self.is_change() && other.is_change())
    }

    pub fn is_change(self) -> bool {
        matches!(self, What::InsertNew | What::Insert | What::Remove)
    }
}

/// A command with its arguments.
pub struct Call<'c> {
    pub server: &'c Server,
    pub session: &'c mut Session,
    pub replies: &'c mut Replies,
    /// With the name.
    pub args: &'c [&'c [u8]],
}

impl<'c> Call<'c> {
    /// An argument; the name is number 0. Empty when there is none: arity is checked before.
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

impl Command {
    pub fn find(name: &[u8]) -> Option<&'static Command> {
        COMMANDS.iter().find(|command| {
            command.name.len() == name.len() && name.eq_ignore_ascii_case(command.name.as_bytes())
        })
    }

    /// Whether it is done at once even within a transaction.
    pub fn passes_transaction(&self) -> bool {
        matches!(self.name, "QUIT" | "RESET")
    }

    pub fn takes(&self, args: usize) -> bool {
        let wanted = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { args >= wanted } else { args == wanted }
    }
}

const fn items(name: &'static str, what: What, items: Items, summary: &'static str) -> Command {
    let arity = match items {
        Items::One => 3,
        Items::Many => -3,
        Items::Listed => -4,
    };
    let group = if name.as_bytes()[0] == b'B' { "bf" } else { "cf" };
    Command {
        name,
        arity,
        run: Run::Items { what, items },
        takes_filter: true,
        is_open: false,
        group,
        summary,
    }
}

const fn about_filter(
    name: &'static str,
    arity: i64,
    run: fn(&mut Call<'_>),
    summary: &'static str,
) -> Command {
    let group = if name.as_bytes()[0] == b'B' { "bf" } else { "cf" };
    Command { name, arity, run: Run::Now(run), takes_filter: true, is_open: false, group, summary }
}

const fn general(
    name: &'static str,
    arity: i64,
    run: fn(&mut Call<'_>),
    is_open: bool,
    summary: &'static str,
) -> Command {
    let group = if is_open { "connection" } else { "server" };
    Command { name, arity, run: Run::Now(run), takes_filter: false, is_open, group, summary }
}

const fn transaction(name: &'static str, step: Step, summary: &'static str) -> Command {
    let run = Run::Transaction(step);
    Command { name, arity: 1, run, takes_filter: false, is_open: false, group: "transactions", summary }
}

/// The most frequent first: they are looked for in this order.
pub static COMMANDS: &[Command] = &[
    items("BF.EXISTS", What::Ask, Items::One, "Whether an item may be in the filter"),
    items("BF.MEXISTS", What::Ask, Items::Many, "Whether items may be in the filter"),
    items("CF.EXISTS", What::Ask, Items::One, "Whether an item may be in the filter"),
    items("CF.MEXISTS", What::Ask, Items::Many, "Whether items may be in the filter"),
    items("BF.ADD", What::InsertNew, Items::One, "Adds an item unless it is there"),
    items("BF.MADD", What::InsertNew, Items::Many, "Adds items unless they are there"),
    items("BF.INSERT", What::InsertNew, Items::Listed, "Adds items unless they are there"),
    items("CF.ADD", What::Insert, Items::One, "Adds an item once more"),
    items("CF.ADDNX", What::InsertNew, Items::One, "Adds an item unless it is there"),
    items("CF.INSERT", What::Insert, Items::Listed, "Adds items once more"),
    items("CF.INSERTNX", What::InsertNew, Items::Listed, "Adds items unless they are there"),
    items("CF.DEL", What::Remove, Items::One, "Takes an item away once"),
    items("CF.COUNT", What::Count, Items::One, "How often an item is in the filter"),
    about_filter("BF.RESERVE", -4, filter::reserve, "Creates a filter; here it exists already"),
    about_filter("CF.RESERVE", -3, filter::reserve, "Creates a filter; here it exists already"),
    about_filter("BF.INFO", -2, filter::bloom_info, "Sizes and counts of the filter"),
    about_filter("CF.INFO", 2, filter::cuckoo_info, "Sizes and counts of the filter"),
    about_filter("BF.CARD", 2, filter::card, "How many different items are in the filter"),
    transaction("MULTI", Step::Multi, "Begins a transaction: the commands that follow are kept"),
    transaction("EXEC", Step::Exec, "Does the commands of the transaction"),
    transaction("DISCARD", Step::Discard, "Forgets the commands of the transaction"),
    general("PING", -1, session::ping, false, "Answers, so that the connection is known to work"),
    general("ECHO", 2, session::echo, false, "Returns what it is given"),
    general("HELLO", -1, session::hello, true, "Sets the version of the protocol"),
    general("AUTH", -2, session::auth, true, "Gives the password"),
    general("QUIT", -1, session::quit, true, "Ends the connection"),
    general("RESET", 1, session::reset, true, "Makes the connection as new"),
    general("SELECT", 2, session::select, false, "Chooses a database; there is number 0"),
    general("CLIENT", -2, session::client, false, "Names the connection"),
    general("INFO", -1, about::info, false, "State of the server"),
    general("COMMAND", -1, about::command, false, "The commands"),
    general("CONFIG", -2, about::config, false, "Settings that clients ask about"),
    general("DBSIZE", 1, about::dbsize, false, "How many filters there are"),
];

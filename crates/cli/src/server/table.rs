//! The commands: their names, how many arguments they take, and what runs them.

use super::command::{Action, Call, Command, ItemArgs, ItemOp, TransactionStep};
use super::{about, filter, session};

/// Finds a command by its name, in capitals or not.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.is_named(name))
}

const fn items(name: &'static str, what: ItemOp, items: ItemArgs, summary: &'static str) -> Command {
    let arity = match items {
        ItemArgs::One => 3,
        ItemArgs::Many => -3,
        ItemArgs::Listed => -4,
    };
    let group = if name.as_bytes()[0] == b'B' { "bf" } else { "cf" };
    Command {
        name,
        arity,
        run: Action::Items { what, items },
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
    Command { name, arity, run: Action::Now(run), takes_filter: true, is_open: false, group, summary }
}

const fn general(
    name: &'static str,
    arity: i64,
    run: fn(&mut Call<'_>),
    is_open: bool,
    summary: &'static str,
) -> Command {
    let group = if is_open { "connection" } else { "server" };
    Command { name, arity, run: Action::Now(run), takes_filter: false, is_open, group, summary }
}

const fn transaction(name: &'static str, step: TransactionStep, summary: &'static str) -> Command {
    let run = Action::Transaction(step);
    Command { name, arity: 1, run, takes_filter: false, is_open: false, group: "transactions", summary }
}

/// The most frequent first: they are looked for in this order.
pub static COMMANDS: &[Command] = &[
    items("BF.EXISTS", ItemOp::Ask, ItemArgs::One, "Whether an item may be in the filter"),
    items("BF.MEXISTS", ItemOp::Ask, ItemArgs::Many, "Whether items may be in the filter"),
    items("CF.EXISTS", ItemOp::Ask, ItemArgs::One, "Whether an item may be in the filter"),
    items("CF.MEXISTS", ItemOp::Ask, ItemArgs::Many, "Whether items may be in the filter"),
    items("BF.ADD", ItemOp::InsertNew, ItemArgs::One, "Adds an item unless it is there"),
    items("BF.MADD", ItemOp::InsertNew, ItemArgs::Many, "Adds items unless they are there"),
    items("BF.INSERT", ItemOp::InsertNew, ItemArgs::Listed, "Adds items unless they are there"),
    items("CF.ADD", ItemOp::Insert, ItemArgs::One, "Adds an item once more"),
    items("CF.ADDNX", ItemOp::InsertNew, ItemArgs::One, "Adds an item unless it is there"),
    items("CF.INSERT", ItemOp::Insert, ItemArgs::Listed, "Adds items once more"),
    items("CF.INSERTNX", ItemOp::InsertNew, ItemArgs::Listed, "Adds items unless they are there"),
    items("CF.DEL", ItemOp::Remove, ItemArgs::One, "Takes an item away once"),
    items("CF.COUNT", ItemOp::Count, ItemArgs::One, "How often an item is in the filter"),
    about_filter("BF.RESERVE", -4, filter::reserve, "Creates a filter; here it exists already"),
    about_filter("CF.RESERVE", -3, filter::reserve, "Creates a filter; here it exists already"),
    about_filter("BF.INFO", -2, filter::bloom_info, "Sizes and counts of the filter"),
    about_filter("CF.INFO", 2, filter::cuckoo_info, "Sizes and counts of the filter"),
    about_filter("BF.CARD", 2, filter::card, "How many different items are in the filter"),
    transaction("MULTI", TransactionStep::Multi, "Begins a transaction: the commands that follow are kept"),
    transaction("EXEC", TransactionStep::Exec, "Does the commands of the transaction"),
    transaction("DISCARD", TransactionStep::Discard, "Forgets the commands of the transaction"),
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

//! The table of commands: names, arguments, and functions.

use super::command::{Action, Call, Command, ItemArgs, ItemOp, TransactionStep};
use super::{about, filter, session};

/// Finds a command by its name, in capitals or not.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.is_named(name))
}

const fn items(name: &'static str, what: ItemOp, items: ItemArgs, summary: &'static str) -> Command {
    let arity = match items {
        ItemArgs::One => 3,
        ItemArgs::OneExpiring | ItemArgs::Many => -3,
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

/// The most frequent ones first, since they are searched in this order.
pub static COMMANDS: &[Command] = &[
    items("BF.EXISTS", ItemOp::Ask, ItemArgs::One, "Whether an item may be in the filter"),
    items("BF.MEXISTS", ItemOp::Ask, ItemArgs::Many, "Whether items may be in the filter"),
    items("CF.EXISTS", ItemOp::Ask, ItemArgs::One, "Whether an item may be in the filter"),
    items("CF.MEXISTS", ItemOp::Ask, ItemArgs::Many, "Whether items may be in the filter"),
    items("BF.ADD", ItemOp::InsertNew, ItemArgs::OneExpiring, "Adds an item unless it exists"),
    items("BF.MADD", ItemOp::InsertNew, ItemArgs::Many, "Adds items unless they exist"),
    items("BF.INSERT", ItemOp::InsertNew, ItemArgs::Listed, "Adds items unless they exist"),
    items("CF.ADD", ItemOp::Insert, ItemArgs::One, "Adds one occurrence of an item"),
    items("CF.ADDNX", ItemOp::InsertNew, ItemArgs::One, "Adds an item unless it exists"),
    items("CF.INSERT", ItemOp::Insert, ItemArgs::Listed, "Adds one occurrence of each item"),
    items("CF.INSERTNX", ItemOp::InsertNew, ItemArgs::Listed, "Adds items unless they exist"),
    items("CF.DEL", ItemOp::Remove, ItemArgs::One, "Removes an item once"),
    items("CF.COUNT", ItemOp::Count, ItemArgs::One, "How many times an item is in the filter"),
    about_filter("BF.RESERVE", -4, filter::reserve, "Creates a filter; here it already exists"),
    about_filter("CF.RESERVE", -3, filter::reserve, "Creates a filter; here it already exists"),
    about_filter("BF.INFO", -2, filter::bloom_info, "Sizes and counts of the filter"),
    about_filter("CF.INFO", 2, filter::cuckoo_info, "Sizes and counts of the filter"),
    about_filter("BF.CARD", 2, filter::card, "The number of distinct items in the filter"),
    transaction("MULTI", TransactionStep::Multi, "Begins a transaction: the commands that follow are queued"),
    transaction("EXEC", TransactionStep::Exec, "Executes the commands of the transaction"),
    transaction("DISCARD", TransactionStep::Discard, "Discards the commands of the transaction"),
    general("PING", -1, session::ping, false, "Tests the connection"),
    general("ECHO", 2, session::echo, false, "Returns its argument"),
    general("HELLO", -1, session::hello, true, "Sets the version of the protocol"),
    general("AUTH", -2, session::auth, true, "Authenticates the connection"),
    general("QUIT", -1, session::quit, true, "Closes the connection"),
    general("RESET", 1, session::reset, true, "Resets the connection"),
    general("SELECT", 2, session::select, false, "Selects a database; only 0 exists"),
    general("CLIENT", -2, session::client, false, "Names the connection"),
    general("INFO", -1, about::info, false, "State of the server"),
    general("COMMAND", -1, about::command, false, "The commands"),
    general("CONFIG", -2, about::config, false, "Settings that clients read"),
    general("DBSIZE", 1, about::dbsize, false, "The number of filters"),
];

//! The table of commands: names, arguments, and functions.

use super::command::{Action, Call, Calls, Command, ItemArgs, ItemOp, KeyArgs, TransactionStep};
use super::commands::{about, acl, bloom, client, config, cuckoo, dump, expire, info, keys, session, watch};

/// Finds a command by its name, in capitals or not, and its position in the table.
pub fn find(name: &[u8]) -> std::option::Option<(usize, &'static Command)> {
    COMMANDS.iter().enumerate().find(|(_, command)| command.is_named(name))
}

/// A function of a call.
type Run = fn(&mut Call<'_>);

const fn items(name: &'static str, what: ItemOp, items: ItemArgs, summary: &'static str) -> Command {
    let arity = match items {
        ItemArgs::One => 3,
        ItemArgs::OneExpiring | ItemArgs::Many => -3,
        ItemArgs::Listed => -4,
    };
    command(name, arity, Action::Items { what, items }, KeyArgs::First, filter_group(name), summary)
}

const fn filter_group(name: &'static str) -> &'static str {
    if name.as_bytes()[0] == b'B' { "bf" } else { "cf" }
}

const fn command(
    name: &'static str,
    arity: i64,
    run: Action,
    keys: KeyArgs,
    group: &'static str,
    summary: &'static str,
) -> Command {
    Command { name, arity, run, keys, is_open: false, changes: false, group, summary, calls: Calls::none() }
}

/// A question about a filter as a whole.
const fn ask(name: &'static str, arity: i64, run: Run, summary: &'static str) -> Command {
    command(name, arity, Action::Now(run), KeyArgs::First, filter_group(name), summary)
}

/// A change of a filter as a whole, or what reads it from the disk.
const fn wait(name: &'static str, arity: i64, run: Run, changes: bool, summary: &'static str) -> Command {
    let group = filter_group(name);
    Command { changes, ..command(name, arity, Action::Waiting(run), KeyArgs::First, group, summary) }
}

/// A question about names.
const fn ask_names(
    name: &'static str,
    arity: i64,
    run: Run,
    keys: KeyArgs,
    summary: &'static str,
) -> Command {
    command(name, arity, Action::Now(run), keys, "generic", summary)
}

/// A change of names.
const fn change(name: &'static str, arity: i64, run: Run, keys: KeyArgs, summary: &'static str) -> Command {
    Command { changes: true, ..command(name, arity, Action::Waiting(run), keys, "generic", summary) }
}

const fn general(name: &'static str, arity: i64, run: Run, summary: &'static str) -> Command {
    command(name, arity, Action::Now(run), KeyArgs::None, "server", summary)
}

const fn connection(
    name: &'static str,
    arity: i64,
    run: Run,
    is_open: bool,
    summary: &'static str,
) -> Command {
    Command { is_open, ..command(name, arity, Action::Now(run), KeyArgs::None, "connection", summary) }
}

const fn transaction(name: &'static str, step: TransactionStep, summary: &'static str) -> Command {
    command(name, 1, Action::Transaction(step), KeyArgs::None, "transactions", summary)
}

use ItemArgs::{Listed, Many, One, OneExpiring};
use KeyArgs::{All, First, None, Second, Two};

pub static COMMANDS: &[Command] = &TABLE;

/// The most frequent ones first, since they are searched in this order.
static TABLE: [Command; 70] = [
    items("BF.EXISTS", ItemOp::Ask, One, "Whether an item may be in the filter"),
    items("BF.MEXISTS", ItemOp::Ask, Many, "Whether items may be in the filter"),
    items("CF.EXISTS", ItemOp::Ask, One, "Whether an item may be in the filter"),
    items("CF.MEXISTS", ItemOp::Ask, Many, "Whether items may be in the filter"),
    items("BF.ADD", ItemOp::InsertNew, OneExpiring, "Adds an item unless it exists"),
    items("BF.MADD", ItemOp::InsertNew, Many, "Adds items unless they exist"),
    items("BF.INSERT", ItemOp::InsertNew, Listed, "Adds items unless they exist"),
    items("CF.ADD", ItemOp::Insert, One, "Adds one occurrence of an item"),
    items("CF.ADDNX", ItemOp::InsertNew, One, "Adds an item unless it exists"),
    items("CF.INSERT", ItemOp::Insert, Listed, "Adds one occurrence of each item"),
    items("CF.INSERTNX", ItemOp::InsertNew, Listed, "Adds items unless they exist"),
    items("CF.DEL", ItemOp::Remove, One, "Removes an item once"),
    items("CF.COUNT", ItemOp::Count, One, "How many times an item is in the filter"),
    wait("BF.RESERVE", -4, bloom::reserve, true, "Creates a filter"),
    wait("CF.RESERVE", -3, cuckoo::reserve, true, "Creates a filter"),
    ask("BF.INFO", -2, bloom::info, "Sizes and counts of the filter"),
    ask("CF.INFO", 2, cuckoo::info, "Sizes and counts of the filter"),
    ask("BF.CARD", 2, bloom::card, "The number of distinct items in the filter"),
    wait("BF.SCANDUMP", 3, dump::scan_bloom, false, "A part of the filter, to load it elsewhere"),
    wait("CF.SCANDUMP", 3, dump::scan_cuckoo, false, "A part of the filter, to load it elsewhere"),
    wait("BF.LOADCHUNK", 4, dump::load_bloom, true, "Loads a part of a filter"),
    wait("CF.LOADCHUNK", 4, dump::load_cuckoo, true, "Loads a part of a filter"),
    wait("CF.COMPACT", 2, cuckoo::compact, true, "Counts deletions anew"),
    transaction("MULTI", TransactionStep::Multi, "Begins a transaction: the commands that follow are queued"),
    transaction("EXEC", TransactionStep::Exec, "Executes the commands of the transaction"),
    transaction("DISCARD", TransactionStep::Discard, "Discards the commands of the transaction"),
    Command {
        group: "transactions",
        ..ask_names("WATCH", -2, watch::watch, All, "Lets the next transaction depend on filters")
    },
    Command { group: "transactions", ..general("UNWATCH", 1, watch::unwatch, "Forgets what was watched") },
    connection("PING", -1, session::ping, false, "Tests the connection"),
    connection("ECHO", 2, session::echo, false, "Returns its argument"),
    connection("HELLO", -1, session::hello, true, "Sets the version of the protocol"),
    connection("AUTH", -2, session::auth, true, "Authenticates the connection"),
    connection("QUIT", -1, session::quit, true, "Closes the connection"),
    connection("RESET", 1, session::reset, true, "Resets the connection"),
    connection("SELECT", 2, keys::select, false, "Selects one of the databases, each with names of its own"),
    // Lists may be long.
    Command {
        run: Action::Waiting(client::client),
        ..connection("CLIENT", -2, client::client, false, "Names the connection, lists and ends connections")
    },
    change("DEL", -2, keys::delete, All, "Deletes filters"),
    change("UNLINK", -2, keys::delete, All, "Deletes filters"),
    ask_names("EXISTS", -2, keys::exists, All, "How many of the names have a filter"),
    ask_names("TYPE", 2, keys::kind, First, "The kind of a filter"),
    change("RENAME", 3, keys::rename, Two, "Renames a filter"),
    change("RENAMENX", 3, keys::rename_if_free, Two, "Renames a filter unless the new name has one"),
    command("KEYS", 2, Action::Waiting(keys::list), None, "generic", "The names that match a pattern"),
    command("SCAN", -2, Action::Waiting(keys::scan), None, "generic", "The names, part by part"),
    command("RANDOMKEY", 1, Action::Waiting(keys::any), None, "generic", "A name"),
    change("EXPIRE", -3, expire::expire, First, "Lets a filter expire in some seconds"),
    change("PEXPIRE", -3, expire::expire_millis, First, "Lets a filter expire in some milliseconds"),
    change("EXPIREAT", -3, expire::expire_at, First, "Lets a filter expire at a time in seconds"),
    change(
        "PEXPIREAT",
        -3,
        expire::expire_at_millis,
        First,
        "Lets a filter expire at a time in milliseconds",
    ),
    change("PERSIST", 2, expire::persist, First, "Lets a filter stay"),
    ask_names("TTL", 2, expire::seconds_left, First, "When a filter expires, in seconds"),
    ask_names("PTTL", 2, expire::millis_left, First, "When a filter expires, in milliseconds"),
    ask_names("EXPIRETIME", 2, expire::moment, First, "When a filter expires, in seconds since 1970"),
    ask_names(
        "PEXPIRETIME",
        2,
        expire::moment_millis,
        First,
        "When a filter expires, in milliseconds since 1970",
    ),
    change("FLUSHDB", -1, keys::flush_database, None, "Deletes all filters of the selected database"),
    change("FLUSHALL", -1, keys::flush_all, None, "Deletes all filters"),
    general("DBSIZE", 1, keys::count, "The number of filters"),
    general("INFO", -1, info::info, "State of the server"),
    Command { keys: Second, ..general("MEMORY", -2, info::memory, "Memory of a filter") },
    general("COMMAND", -1, about::command, "The commands"),
    general("CONFIG", -2, config::config, "Settings"),
    general("TIME", 1, about::time, "The time of the server"),
    general("ROLE", 1, about::role, "The role of the server"),
    general("MODULE", -2, about::module, "The modules whose commands the server has"),
    general("SLOWLOG", -2, about::slow_log, "The commands that took long"),
    general("ACL", -2, acl::acl, "Who the client is, and what users may do"),
    general("LATENCY", -2, about::latency, "Latencies; see SLOWLOG"),
    command(
        "SAVE",
        1,
        Action::Waiting(about::save),
        None,
        "server",
        "Saves all filters: a backup or a checkpoint",
    ),
    general("BGSAVE", -1, about::save_in_background, "Saves all filters in the background"),
    general("LASTSAVE", 1, about::last_save, "When all filters were last saved"),
];

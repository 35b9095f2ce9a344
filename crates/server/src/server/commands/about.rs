//! Commands about the server and its commands.

use super::super::command::{Action, Call, Command};
use super::super::saves::Started;
use super::super::usage;
use super::numbers::integer;
use crate::filters::Filters;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

/// `COMMAND [COUNT | LIST | INFO [name …] | DOCS [name …] | GETKEYS command arg …]`
pub fn command(call: &mut Call<'_>) {
    let all = call.commands;
    let named = |call: &Call<'_>| -> Vec<Option<&'static Command>> {
        match call.args.get(2..) {
            Some(names) if !names.is_empty() => {
                names.iter().map(|name| all.iter().find(|command| command.is_named(name))).collect()
            }
            _ => all.iter().map(Some).collect(),
        }
    };
    if call.args.len() == 1 || call.is(1, "INFO") {
        let commands = named(call);
        call.replies.array(commands.len());
        commands.into_iter().for_each(|command| match command {
            Some(command) => describe(call, command),
            None => call.replies.null(),
        });
    } else if call.is(1, "COUNT") {
        call.replies.int(all.len() as u64);
    } else if call.is(1, "LIST") {
        call.replies.array(all.len());
        all.iter().for_each(|command| call.replies.bulk(command.name.to_ascii_lowercase()));
    } else if call.is(1, "DOCS") {
        let commands: Vec<_> = named(call).into_iter().flatten().collect();
        call.replies.map(commands.len());
        for command in commands {
            call.replies.bulk(command.name.to_ascii_lowercase());
            let usage = usage::of(command.name);
            let has_arguments = !usage.is_empty();
            call.replies.map(2 + usize::from(has_arguments));
            call.replies.bulk("summary");
            call.replies.bulk(command.summary);
            call.replies.bulk("group");
            // Clients of RedisBloom find these in a module.
            call.replies.bulk(if matches!(command.group, "bf" | "cf") { "module" } else { command.group });
            if has_arguments {
                call.replies.bulk("arguments");
                usage::reply(call.replies, usage);
            }
        }
    } else if call.is(1, "GETKEYS") && call.args.len() > 2 {
        keys_of(call);
    } else {
        call.unknown_subcommand();
    }
}

fn keys_of(call: &mut Call<'_>) {
    let args = call.args.get(2..).unwrap_or_default();
    let command = call.commands.iter().find(|command| command.is_named(call.arg(2)));
    let Some(command) = command.filter(|command| command.takes(args.len())) else {
        return call.replies.error("ERR Invalid command specified");
    };
    let keys = args.get(command.keys(args.len())).unwrap_or_default();
    if keys.is_empty() {
        return call.replies.error("ERR The command has no key arguments");
    }
    call.replies.array(keys.len());
    keys.iter().for_each(|key| call.replies.bulk(key));
}

/// Name, arity, flags, first, last and step of the keys, the categories, and three lists, which are empty
/// here.
fn describe(call: &mut Call<'_>, command: &Command) {
    let replies = &mut *call.replies;
    replies.array(10);
    replies.bulk(command.name.to_ascii_lowercase());
    replies.signed(command.arity);
    let mut flags = Vec::new();
    match command.run {
        _ if command.is_change() => flags.push("write"),
        _ if command.has_names() => flags.push("readonly"),
        _ => {}
    }
    match command.run {
        Action::Transaction(_) => flags.push("noscript"),
        Action::Items { .. } | Action::Now(_) => flags.push("fast"),
        Action::Waiting(_) => {}
    }
    if command.is_open {
        flags.push("no_auth");
    }
    replies.set(flags.len());
    flags.into_iter().for_each(|flag| replies.simple(flag));
    let keys = command.keys(usize::MAX);
    let [first, last, step] = match keys.len() {
        0 => [0, 0, 0],
        1 => [keys.start as i64, keys.start as i64, 1],
        2 => [1, 2, 1],
        _ => [1, -1, 1],
    };
    [first, last, step].into_iter().for_each(|number| replies.signed(number));
    (0..4).for_each(|_| replies.array(0));
}

/// `TIME`: seconds since 1970, and microseconds.
pub fn time(call: &mut Call<'_>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    call.replies.array(2);
    call.replies.bulk(now.as_secs().to_string());
    call.replies.bulk(now.subsec_micros().to_string());
}

/// `ROLE`: it has no replicas.
pub fn role(call: &mut Call<'_>) {
    call.replies.array(3);
    call.replies.bulk("master");
    call.replies.int(0);
    call.replies.array(0);
}

/// `MODULE LIST`: a client that looks for RedisBloom finds the version whose commands these are.
pub fn module(call: &mut Call<'_>) {
    if !call.is(1, "LIST") {
        return call.unknown_subcommand();
    }
    call.replies.array(1);
    call.replies.map(4);
    call.replies.bulk("name");
    call.replies.bulk("bf");
    call.replies.bulk("ver");
    call.replies.int(20_800);
    call.replies.bulk("path");
    call.replies.bulk("");
    call.replies.bulk("args");
    call.replies.array(0);
}

/// `SLOWLOG GET [count] | LEN | RESET`
pub fn slow_log(call: &mut Call<'_>) {
    let server = call.server;
    match call.args {
        [_, word] if word.eq_ignore_ascii_case(b"LEN") => call.replies.int(server.slow_log.len() as u64),
        [_, word] if word.eq_ignore_ascii_case(b"RESET") => {
            server.slow_log.clear();
            call.replies.simple("OK");
        }
        [_, word, count @ ..] if word.eq_ignore_ascii_case(b"GET") && count.len() <= 1 => {
            let wanted = match count.first().map(|count| integer(count)) {
                None => 10,
                Some(Some(-1)) => usize::MAX,
                Some(Some(number @ 0..)) => usize::try_from(number).unwrap_or(usize::MAX),
                _ => return call.replies.error("ERR count should be greater than or equal to -1"),
            };
            let latest = server.slow_log.latest(wanted);
            call.replies.array(latest.len());
            for slow in latest {
                call.replies.array(6);
                call.replies.int(slow.id);
                call.replies.int(slow.time);
                call.replies.int(slow.micros);
                call.replies.array(slow.args.len());
                slow.args.iter().for_each(|arg| call.replies.bulk(arg));
                call.replies.bulk(slow.address);
                call.replies.bulk(slow.client_name);
            }
        }
        _ => call.unknown_subcommand(),
    }
}

/// `LATENCY LATEST | RESET | HISTORY event`: nothing is monitored; `SLOWLOG` and `INFO commandstats` tell
/// more.
pub fn latency(call: &mut Call<'_>) {
    match call.args {
        [_, word] if word.eq_ignore_ascii_case(b"LATEST") => call.replies.array(0),
        [_, word, _] if word.eq_ignore_ascii_case(b"HISTORY") => call.replies.array(0),
        [_, word, ..] if word.eq_ignore_ascii_case(b"RESET") => call.replies.int(0),
        _ => call.unknown_subcommand(),
    }
}

/// `SAVE`: a backup or a checkpoint of all filters, in the directory that the server was started with.
pub fn save(call: &mut Call<'_>) {
    if let Some((started, filters)) = begin_saving(call) {
        call.done(started.write(&filters));
    }
}

/// `BGSAVE [SCHEDULE]`
pub fn save_in_background(call: &mut Call<'_>) {
    if let Some((started, filters)) = begin_saving(call) {
        tokio::task::spawn_blocking(move || {
            if let Err(error) = started.write(&filters) {
                tracing::error!("cannot save all filters: {error}");
            }
        });
        call.replies.simple("Background saving started");
    }
}

/// Replies with an error if nothing can be saved now.
fn begin_saving(call: &mut Call<'_>) -> Option<(Started, Arc<Filters>)> {
    let Some(own) = call.server.catalog.own() else {
        call.replies.error("ERR there are no filters to save: `sidebloom guard backup` backs up a guard");
        return None;
    };
    match call.server.saves.start() {
        Ok(started) => Some((started, Arc::clone(&own.filters))),
        Err(error) => {
            call.replies.error(&error);
            None
        }
    }
}

/// `LASTSAVE`: when the last save was complete, or the server started, in seconds since 1970.
pub fn last_save(call: &mut Call<'_>) {
    call.replies.int(call.server.saves.latest.load(Relaxed));
}

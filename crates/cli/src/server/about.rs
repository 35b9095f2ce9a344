//! Commands about the server.

use super::command::{Action, Call, Command};
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

/// The Redis version that the commands match. Client libraries use it to decide what to send.
const REDIS_VERSION: &str = "7.2.0";

/// Appends its lines to the text.
type Section = fn(&mut Call<'_>, &mut String);

/// `INFO [section …]`
pub fn info(call: &mut Call<'_>) {
    let sections: [(&str, Section); 5] = [
        ("Server", server_section),
        ("Clients", clients_section),
        ("Stats", stats_section),
        ("Guard", guard_section),
        ("Keyspace", |_, text| text.push_str("db0:keys=1,expires=0,avg_ttl=0\r\n")),
    ];
    let wanted = call.args.get(1..).unwrap_or_default();
    let is_wanted = |title: &str| {
        let names = [title, "all", "default", "everything"];
        wanted.is_empty()
            || wanted.iter().any(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes())))
    };
    let mut text = String::new();
    for (title, section) in sections.into_iter().filter(|(title, _)| is_wanted(title)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let _ = write!(text, "# {title}\r\n");
        section(call, &mut text);
    }
    call.replies.text(&text);
}

fn server_section(call: &mut Call<'_>, text: &mut String) {
    let seconds = call.server.started.elapsed().as_secs();
    let _ = write!(
        text,
        "redis_version:{REDIS_VERSION}\r\nsidebloom_version:{}\r\nredis_mode:standalone\r\nprocess_id:{}\r\ntcp_port:{}\r\n\
         uptime_in_seconds:{seconds}\r\nuptime_in_days:{}\r\n",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        call.server.port,
        seconds / 86_400,
    );
}

fn clients_section(call: &mut Call<'_>, text: &mut String) {
    let _ = write!(
        text,
        "connected_clients:{}\r\nmaxclients:{}\r\nunfinished_request_bytes:{}\r\n",
        call.server.counters.clients.load(Relaxed),
        call.server.settings.max_clients,
        call.server.counters.requests_bytes.load(Relaxed),
    );
}

fn stats_section(call: &mut Call<'_>, text: &mut String) {
    let counters = &call.server.counters;
    let _ = write!(
        text,
        "total_connections_received:{}\r\ntotal_commands_processed:{}\r\nrejected_connections:{}\r\n",
        counters.connections.load(Relaxed),
        counters.commands.load(Relaxed),
        counters.rejected.load(Relaxed),
    );
}

fn guard_section(call: &mut Call<'_>, text: &mut String) {
    let stats = call.server.guard.stats();
    let _ = write!(
        text,
        "guard_keys:{}\r\nguard_rows:{}\r\nguard_asked:{}\r\nguard_absent:{}\r\nguard_expected_fpr:{:.6}\r\nguard_suspended:{}\r\n\
         guard_unknown_removals:{}\r\nguard_filter_bytes:{}\r\nguard_memtable_bytes:{}\r\nguard_disk_bytes:{}\r\n",
        stats.keys,
        stats.rows,
        stats.asked,
        stats.absent,
        stats.expected_fpr,
        u8::from(stats.suspended),
        stats.unknown_removals,
        stats.filter_bytes,
        stats.memtable_bytes,
        stats.disk_bytes,
    );
}

/// `COMMAND [COUNT | LIST | INFO [name …] | DOCS [name …]]`
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
            call.replies.map(2);
            call.replies.bulk("summary");
            call.replies.bulk(command.summary);
            call.replies.bulk("group");
            call.replies.bulk(command.group);
        }
    } else {
        call.unknown_subcommand();
    }
}

/// Name, arity, flags, first, last and step of the keys, and four lists, which are empty here.
fn describe(call: &mut Call<'_>, command: &Command) {
    let replies = &mut *call.replies;
    replies.array(10);
    replies.bulk(command.name.to_ascii_lowercase());
    replies.signed(command.arity);
    let changes = matches!(command.run, Action::Items { what, .. } if what.is_change());
    let mut flags = vec![if changes { "write" } else { "readonly" }, "fast"];
    if command.is_open {
        flags.push("no_auth");
    }
    replies.set(flags.len());
    flags.into_iter().for_each(|flag| replies.simple(flag));
    let key = u64::from(command.takes_filter);
    (0..3).for_each(|_| replies.int(key));
    (0..4).for_each(|_| replies.array(0));
}

/// `CONFIG GET name …`: durability and limits, under Redis' names. `*` stands for all.
pub fn config(call: &mut Call<'_>) {
    if !call.is(1, "GET") {
        return call.unknown_subcommand();
    }
    let server = call.server;
    let settings = [
        ("save", String::new()),
        ("appendonly", "yes".to_owned()),
        ("appendfsync", if server.settings.is_synced { "always" } else { "no" }.to_owned()),
        ("maxclients", server.settings.max_clients.to_string()),
        ("timeout", server.settings.idle_timeout.map_or(0, |idle| idle.as_secs()).to_string()),
    ];
    let wanted = call.args.get(2..).unwrap_or_default();
    let is_wanted =
        |name: &str| wanted.iter().any(|word| *word == b"*" || word.eq_ignore_ascii_case(name.as_bytes()));
    let found: Vec<_> = settings.iter().filter(|(name, _)| is_wanted(name)).collect();
    call.replies.map(found.len());
    for (name, value) in found {
        call.replies.bulk(name);
        call.replies.bulk(value);
    }
}

/// `DBSIZE`
pub fn dbsize(call: &mut Call<'_>) {
    call.replies.int(1);
}

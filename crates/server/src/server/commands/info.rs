//! `INFO` and `MEMORY`.

use super::super::catalog::Target;
use super::super::command::Call;
use super::keys::count_in;
use crate::filters::DATABASES;
use crate::resp::Limits;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

/// The Redis version that the commands match. Client libraries use it to decide what to send.
const REDIS_VERSION: &str = "7.2.0";

/// Appends its lines to the text.
type Section = fn(&Call<'_>, &mut String);

/// `INFO [section …]`
pub fn info(call: &mut Call<'_>) {
    let sections: [(&str, Section, bool); 9] = [
        ("Server", server_section, true),
        ("Clients", clients_section, true),
        ("Memory", memory_section, true),
        ("Persistence", persistence_section, true),
        ("Stats", stats_section, true),
        ("Filters", filters_section, true),
        ("Guards", guards_section, true),
        ("Commandstats", commands_section, false),
        ("Keyspace", keyspace_section, true),
    ];
    let wanted = call.args.get(1..).unwrap_or_default();
    let is_wanted = |title: &str, is_default: bool| {
        let names = [title, "all", "everything", if is_default { "default" } else { title }];
        wanted.is_empty() && is_default
            || wanted.iter().any(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes())))
    };
    let mut text = String::new();
    for (title, section, _) in
        sections.into_iter().filter(|(title, _, is_default)| is_wanted(title, *is_default))
    {
        let mut lines = String::new();
        section(call, &mut lines);
        if lines.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let _ = write!(text, "# {title}\r\n{lines}");
    }
    call.replies.text(&text);
}

fn server_section(call: &Call<'_>, text: &mut String) {
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

fn clients_section(call: &Call<'_>, text: &mut String) {
    let (server, limits) = (call.server, Limits::FULL);
    let _ = write!(
        text,
        "connected_clients:{}\r\nmaxclients:{}\r\nclient_bytes:{}\r\nclient_bytes_max:{}\r\n\
         request_arguments_max:{}\r\nrequest_argument_bytes_max:{}\r\nrequest_bytes_max:{}\r\n",
        server.counters.clients.load(Relaxed),
        server.settings.max_clients,
        server.memory.held(),
        server.memory.max(),
        limits.args,
        limits.bulk,
        limits.request,
    );
}

fn memory_section(call: &Call<'_>, text: &mut String) {
    let names = call.server.catalog.own().map_or(0, |own| own.filters.names_bytes());
    let _ = write!(
        text,
        "used_memory_rss:{}\r\nclient_bytes:{}\r\nname_bytes:{names}\r\n",
        resident_bytes().unwrap_or(0),
        call.server.memory.held(),
    );
}

/// Resident memory of the process, mapped files included.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

fn stats_section(call: &Call<'_>, text: &mut String) {
    let counters = &call.server.counters;
    let _ = write!(
        text,
        "total_connections_received:{}\r\ntotal_commands_processed:{}\r\nrejected_connections:{}\r\n\
         refused_logins:{}\r\ndisconnected_clients:{}\r\n",
        counters.connections.load(Relaxed),
        counters.commands.load(Relaxed),
        counters.rejected.load(Relaxed),
        counters.refused_logins.load(Relaxed),
        counters.disconnected.load(Relaxed),
    );
}

/// The fields of Redis about `BGSAVE`.
fn persistence_section(call: &Call<'_>, text: &mut String) {
    let saves = &call.server.saves;
    let _ = write!(
        text,
        "loading:0\r\nrdb_bgsave_in_progress:{}\r\nrdb_last_save_time:{}\r\nrdb_last_bgsave_status:{}\r\n\
         rdb_last_bgsave_time_sec:{}\r\n",
        u8::from(saves.is_saving()),
        saves.latest.load(Relaxed),
        if saves.last_was_complete() { "ok" } else { "err" },
        saves.last_took(),
    );
}

fn filters_section(call: &Call<'_>, text: &mut String) {
    let Some(own) = call.server.catalog.own() else { return };
    let (stats, items) = (own.filters.db().stats(), own.filters.stats());
    let filters: usize = (0..DATABASES).map(|database| own.filters.count(database)).sum();
    let _ = write!(
        text,
        "filters:{filters}\r\nfilters_filter_bytes:{}\r\nfilters_memtable_bytes:{}\r\nfilters_disk_bytes:{}\r\n",
        items.filter_bytes, stats.memtable_bytes, items.data_bytes,
    );
}

fn guards_section(call: &Call<'_>, text: &mut String) {
    let guards = call.server.catalog.guards();
    for named in guards {
        // With several guards, each has its name in its fields.
        let prefix = match guards {
            [_] => "guard".to_owned(),
            _ => format!("guard:{}", named.name.escape_ascii()),
        };
        let stats = named.guard.stats();
        for (field, value) in [
            ("keys", stats.keys.to_string()),
            ("rows", stats.rows.to_string()),
            ("asked", stats.asked.to_string()),
            ("absent", stats.absent.to_string()),
            ("expected_fpr", format!("{:.6}", stats.expected_fpr)),
            ("suspended", u8::from(stats.suspended).to_string()),
            ("unknown_removals", stats.unknown_removals.to_string()),
            ("filter_bytes", stats.filter_bytes.to_string()),
            ("memtable_bytes", stats.memtable_bytes.to_string()),
            ("disk_bytes", stats.disk_bytes.to_string()),
        ] {
            let _ = write!(text, "{prefix}_{field}:{value}\r\n");
        }
    }
}

fn commands_section(call: &Call<'_>, text: &mut String) {
    for command in call.commands.iter().filter(|command| command.calls.count() > 0) {
        let (calls, micros) = (command.calls.count(), command.calls.micros());
        let _ = write!(
            text,
            "cmdstat_{}:calls={calls},usec={micros},usec_per_call={:.2}\r\n",
            command.name.to_ascii_lowercase(),
            micros as f64 / calls as f64,
        );
    }
}

fn keyspace_section(call: &Call<'_>, text: &mut String) {
    for database in 0..DATABASES {
        let names = count_in(call, database);
        if names > 0 {
            let expiring = call.server.catalog.own().map_or(0, |own| own.filters.expiring(database));
            let _ = write!(text, "db{database}:keys={names},expires={expiring},avg_ttl=0\r\n");
        }
    }
}

/// `MEMORY USAGE name [SAMPLES n]`: of a filter's name and counters, and its share of the filters in memory.
pub fn memory(call: &mut Call<'_>) {
    let is_usage = call.is(1, "USAGE") && matches!(call.args.len(), 3 | 5);
    if !is_usage {
        return call.unknown_subcommand();
    }
    match call.target(call.arg(2)) {
        None => call.replies.null(),
        Some(Target::Guard(named)) => {
            let stats = named.guard.stats();
            call.replies.int(stats.filter_bytes + stats.memtable_bytes);
        }
        Some(Target::Filter(filter)) => {
            let bytes = call.server.catalog.own().map_or(0, |own| own.filters.bytes_of(&filter, call.arg(2)));
            call.replies.int(bytes);
        }
    }
}

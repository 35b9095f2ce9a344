//! The metrics of the server itself, in the text format of Prometheus: what `INFO` counts.
//!
//! docs/metrics.md lists them. The names follow the conventions of the library's own metrics.

use super::state::Server;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

/// Writes all of them.
pub fn write(server: &Server, text: &mut String) {
    let counters = &server.counters;
    for (name, kind, value, help) in [
        (
            "sidebloom_server_clients",
            "gauge",
            counters.clients.load(Relaxed) as u64,
            "Clients that are connected.",
        ),
        (
            "sidebloom_server_client_bytes",
            "gauge",
            server.memory.held() as u64,
            "Memory of the requests and replies of all clients.",
        ),
        (
            "sidebloom_server_connections_total",
            "counter",
            counters.connections.load(Relaxed),
            "Connections of clients, rejected ones included.",
        ),
        (
            "sidebloom_server_connections_rejected_total",
            "counter",
            counters.rejected.load(Relaxed),
            "Connections rejected because the most clients were connected.",
        ),
        (
            "sidebloom_server_clients_disconnected_total",
            "counter",
            counters.disconnected.load(Relaxed),
            "Clients disconnected because of memory, or because they were too slow.",
        ),
        (
            "sidebloom_server_commands_total",
            "counter",
            counters.commands.load(Relaxed),
            "Commands processed.",
        ),
        (
            "sidebloom_server_logins_refused_total",
            "counter",
            counters.refused_logins.load(Relaxed),
            "Wrong passwords.",
        ),
    ] {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"); // To a string.
    }
}

//! `WATCH` and `UNWATCH`: what the next transaction depends on.

use super::super::command::Call;
use super::super::state::Watched;

/// Names that one client watches at most, and their length together.
const WATCHED_MAX: usize = 1 << 10;
const WATCHED_BYTES_MAX: usize = 64 << 10;

/// `WATCH name …`
pub fn watch(call: &mut Call<'_>) {
    let database = call.session.database;
    for name in call.args.get(1..).unwrap_or_default() {
        if call.server.catalog.guard(database, name).is_some() {
            return call.replies.error("ERR a guard cannot be watched: it changes with its database");
        }
        let bytes: usize = call.session.watched.iter().map(|watched| watched.name.len()).sum();
        if call.session.watched.len() == WATCHED_MAX || bytes + name.len() > WATCHED_BYTES_MAX {
            return call.replies.error("ERR too many names are watched");
        }
        let mark = call.server.catalog.mark(database, name);
        call.session.watched.push(Watched { database, name: name.to_vec(), mark });
    }
    call.replies.simple("OK");
}

/// `UNWATCH`
pub fn unwatch(call: &mut Call<'_>) {
    call.session.watched.clear();
    call.replies.simple("OK");
}

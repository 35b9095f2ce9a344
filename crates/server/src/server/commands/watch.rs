//! `WATCH` and `UNWATCH`: what the next transaction depends on.

use super::super::command::Call;

/// `WATCH name …`
pub fn watch(call: &mut Call<'_>) {
    let database = call.session.database;
    for name in call.args.get(1..).unwrap_or_default() {
        if call.server.catalog.guard(database, name).is_some() {
            return call.replies.error("ERR a guard cannot be watched: it changes with its database");
        }
        if !call.session.watched.add(&call.server.catalog, database, name) {
            return call.replies.error("ERR too many names are watched");
        }
    }
    call.replies.simple("OK");
}

/// `UNWATCH`
pub fn unwatch(call: &mut Call<'_>) {
    call.session.watched.clear();
    call.replies.simple("OK");
}

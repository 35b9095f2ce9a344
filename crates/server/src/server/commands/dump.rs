//! `SCANDUMP` and `LOADCHUNK`, which move filters between servers.
//!
//! The chunks are this server's own: neither it nor RedisBloom reads those of the other.

use super::super::catalog::Target;
use super::super::command::Call;
use super::numbers::integer;
use crate::filters::{Kind, Refusal, is_chunk};

/// `BF.SCANDUMP name iterator`
pub fn scan_bloom(call: &mut Call<'_>) {
    match integer(call.arg(2)) {
        Some(position) => scan(call, Kind::Bloom, u64::try_from(position).unwrap_or(u64::MAX)),
        None => call.replies.error("ERR Second argument must be numeric"),
    }
}

/// `CF.SCANDUMP name iterator`
pub fn scan_cuckoo(call: &mut Call<'_>) {
    match integer(call.arg(2)).and_then(|position| u64::try_from(position).ok()) {
        Some(position) => scan(call, Kind::Cuckoo, position),
        None => call.replies.error("ERR Invalid position"),
    }
}

fn scan(call: &mut Call<'_>, kind: Kind, position: u64) {
    let Some(own) = call.server.catalog.own() else { return call.replies.error(GUARD) };
    let filter = match call.target(call.arg(1)) {
        Some(Target::Filter(filter)) if filter.kind() == kind => filter,
        Some(Target::Filter(_)) => return call.replies.error(&Refusal::WrongType.to_string()),
        Some(Target::Guard(_)) => return call.replies.error(GUARD),
        None => return call.replies.error(&Refusal::NotFound.to_string()),
    };
    let is_empty = kind == Kind::Cuckoo && filter.items() == 0;
    let dumped = if is_empty { Ok((0, Vec::new())) } else { own.filters.dump(&filter, position) };
    match dumped {
        Ok((next, chunk)) => {
            call.replies.array(2);
            call.replies.int(next);
            if next == 0 && kind == Kind::Cuckoo {
                call.replies.null();
            } else {
                call.replies.bulk(chunk);
            }
        }
        Err(refusal) => call.replies.error(&refusal.to_string()),
    }
}

/// `BF.LOADCHUNK name iterator data`
pub fn load_bloom(call: &mut Call<'_>) {
    match integer(call.arg(2)) {
        Some(position) => load(call, Kind::Bloom, position, ["ERR received bad data"; 2]),
        None => call.replies.error("ERR Second argument must be numeric"),
    }
}

/// `CF.LOADCHUNK name iterator data`
pub fn load_cuckoo(call: &mut Call<'_>) {
    match integer(call.arg(2)) {
        Some(0) | None => call.replies.error("ERR Invalid position"),
        Some(position) => {
            load(call, Kind::Cuckoo, position, ["ERR Couldn't create filter!", "ERR Couldn't load chunk!"]);
        }
    }
}

/// `bad` are RedisBloom's errors for a head and for rows that cannot be read.
fn load(call: &mut Call<'_>, kind: Kind, position: i64, bad: [&str; 2]) {
    let Some(own) = call.server.catalog.own() else { return call.replies.error(GUARD) };
    let (name, chunk, database) = (call.arg(1), call.arg(3), call.session.database);
    let (loaded, bad) = match call.target(name) {
        Some(Target::Guard(_)) => return call.replies.error(GUARD),
        Some(Target::Filter(filter)) if filter.kind() != kind => (Err(Refusal::WrongType), bad[1]),
        Some(Target::Filter(_)) if position == 1 => {
            (own.filters.load_head(database, name, kind, chunk), bad[0])
        }
        Some(Target::Filter(_)) if position < 1 => (Err(Refusal::BadChunk), bad[1]),
        Some(Target::Filter(filter)) => (own.filters.load_rows(&filter, chunk), bad[1]),
        None if position == 1 => (own.filters.load_head(database, name, kind, chunk), bad[0]),
        None => (Err(Refusal::NotFound), bad[1]),
    };
    match loaded {
        Err(Refusal::BadChunk) if is_chunk(chunk) => call.replies.error(bad),
        Err(Refusal::BadChunk) => call.replies.error(&format!("{bad} {FOREIGN}")),
        loaded => call.done(loaded),
    }
}

const FOREIGN: &str = "(not a chunk of sidebloom, whose form is not RedisBloom's)";
const GUARD: &str = "ERR a guard cannot be dumped or loaded: copy its directory, or use `guard publish`";

//! Commands about filters by name, of any kind.

use super::super::catalog::Target;
use super::super::command::Call;
use super::glob;
use super::numbers::integer;
use crate::filters::{DATABASES, Filters, Kind, Refusal};
use std::sync::Arc;

/// What clients get who try to change a guard's name or life.
const GUARD: &str = "READONLY this is a guard, which only the server's start options add and remove";
/// Filters that `SCAN` looks at without COUNT, and at most.
const SCAN_COUNT: usize = 10;
const SCAN_COUNT_MAX: usize = 10_000;
/// Names that `KEYS` returns at most.
const KEYS_MAX: usize = 1 << 16;
/// What matching may cost, in products of a pattern's length and a name's. A part of `SCAN` ends after that,
/// or after one name; `KEYS` gives up, which is after about a second.
const SCAN_STEPS_MAX: usize = 1 << 22;
const KEYS_STEPS_MAX: usize = 1 << 30;
/// A part of a list ends after so many bytes of names.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// The names of `TYPE`, which are those of RedisBloom's types.
fn type_of(target: &Target) -> &'static str {
    match target {
        Target::Filter(filter) if filter.kind() == Kind::Cuckoo => "MBbloomCF",
        Target::Filter(_) | Target::Guard(_) => "MBbloom--",
    }
}

impl Call<'_> {
    /// What a name stands for in the selected database.
    pub fn target(&self, name: &[u8]) -> Option<Target> {
        self.server.catalog.find(self.session.database, name)
    }

    /// The store of filters; replies with an error if the server has none, or if one of the names is a
    /// guard's.
    fn changeable(&mut self, names: std::ops::Range<usize>) -> Option<Arc<Filters>> {
        let database = self.session.database;
        let mut names = self.args.get(names).unwrap_or_default().iter();
        if names.any(|name| self.server.catalog.guard(database, name).is_some()) {
            self.replies.error(GUARD);
            return None;
        }
        let own = self.server.catalog.own().map(|own| Arc::clone(&own.filters));
        if own.is_none() {
            self.replies.error(GUARD);
        }
        own
    }
}

/// `DEL name …`, `UNLINK name …`
pub fn delete(call: &mut Call<'_>) {
    let Some(filters) = call.changeable(1..call.args.len()) else { return };
    match filters.delete(call.session.database, call.args.get(1..).unwrap_or_default()) {
        Ok(deleted) => call.replies.int(deleted),
        Err(refusal) => call.replies.error(&refusal.to_string()),
    }
}

/// `EXISTS name …`
pub fn exists(call: &mut Call<'_>) {
    let names = call.args.get(1..).unwrap_or_default().iter();
    let found = names.filter(|name| call.target(name).is_some()).count();
    call.replies.int(found as u64);
}

/// `TYPE name`
pub fn kind(call: &mut Call<'_>) {
    let found = call.target(call.arg(1));
    call.replies.simple(found.as_ref().map_or("none", type_of));
}

/// `RENAME from to`
pub fn rename(call: &mut Call<'_>) {
    let Some(filters) = call.changeable(1..3) else { return };
    match filters.rename(call.session.database, call.arg(1), call.arg(2), false) {
        Ok(_) => call.replies.simple("OK"),
        Err(Refusal::NotFound) => call.replies.error("ERR no such key"),
        Err(refusal) => call.replies.error(&refusal.to_string()),
    }
}

/// `RENAMENX from to`
pub fn rename_if_free(call: &mut Call<'_>) {
    let Some(filters) = call.changeable(1..3) else { return };
    match filters.rename(call.session.database, call.arg(1), call.arg(2), true) {
        Ok(is_renamed) => call.replies.int(u64::from(is_renamed)),
        Err(Refusal::NotFound) => call.replies.error("ERR no such key"),
        Err(refusal) => call.replies.error(&refusal.to_string()),
    }
}

/// `DBSIZE`
pub fn count(call: &mut Call<'_>) {
    let count = count_in(call, call.session.database);
    call.replies.int(count as u64);
}

/// Filters and guards of a database.
pub fn count_in(call: &Call<'_>, database: u8) -> usize {
    let guards = if database == 0 { call.server.catalog.guards().len() } else { 0 };
    guards + call.server.catalog.own().map_or(0, |own| own.filters.count(database))
}

/// `KEYS pattern`
pub fn list(call: &mut Call<'_>) {
    let pattern = call.arg(1);
    if pattern.len() > glob::LEN_MAX {
        return call.replies.error(glob::TOO_LONG);
    }
    let (mut names, mut steps) = (Vec::new(), 0);
    let mut next = Some(0);
    while let Some(cursor) = next {
        let (page, rest) = page(call, cursor, SCAN_COUNT_MAX, PAGE_BYTES_MAX);
        steps += page.iter().map(|(name, _)| name.len() * pattern.len()).sum::<usize>();
        if steps > KEYS_STEPS_MAX {
            return call.replies.error("ERR there are too many names for this pattern: use SCAN");
        }
        names.extend(page.into_iter().map(|(name, _)| name).filter(|name| glob::matches(pattern, name)));
        next = rest;
        if names.len() > KEYS_MAX {
            let text = format!("ERR more than {KEYS_MAX} names match: use SCAN");
            return call.replies.error(&text);
        }
    }
    call.replies.array(names.len());
    names.iter().for_each(|name| call.replies.bulk(name));
}

/// `SCAN cursor [MATCH pattern] [COUNT n] [TYPE type]`
pub fn scan(call: &mut Call<'_>) {
    let Some(cursor) = std::str::from_utf8(call.arg(1)).ok().and_then(|cursor| cursor.parse().ok()) else {
        return call.replies.error("ERR invalid cursor");
    };
    let (mut pattern, mut wanted, mut count) = (&b"*"[..], None, SCAN_COUNT);
    for option in call.args.get(2..).unwrap_or_default().chunks(2) {
        match option {
            [word, value] if word.eq_ignore_ascii_case(b"MATCH") => {
                if value.len() > glob::LEN_MAX {
                    return call.replies.error(glob::TOO_LONG);
                }
                pattern = value;
            }
            [word, value] if word.eq_ignore_ascii_case(b"TYPE") => wanted = Some(*value),
            [word, value] if word.eq_ignore_ascii_case(b"COUNT") => match integer(value) {
                Some(number @ 1..) => {
                    count = usize::try_from(number).unwrap_or(usize::MAX).min(SCAN_COUNT_MAX)
                }
                Some(_) => return call.replies.error("ERR syntax error"),
                None => return call.replies.error("ERR value is not an integer or out of range"),
            },
            _ => return call.replies.error("ERR syntax error"),
        }
    }
    let bytes_max = PAGE_BYTES_MAX.min(SCAN_STEPS_MAX / pattern.len().max(1));
    let (page, next) = page(call, cursor, count, bytes_max);
    let is_wanted =
        |target: &Target| wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(type_of(target).as_bytes()));
    let found: Vec<Vec<u8>> = page
        .into_iter()
        .filter(|(name, target)| is_wanted(target) && glob::matches(pattern, name))
        .map(|(name, _)| name)
        .collect();
    call.replies.array(2);
    call.replies.bulk(next.unwrap_or(0).to_string());
    call.replies.array(found.len());
    found.iter().for_each(|name| call.replies.bulk(name));
}

/// Guards at cursor 0, then filters from their number on: `max` or fewer, and none once their names have so
/// many bytes. Returns the next cursor, unless that was the end.
fn page(call: &Call<'_>, cursor: u64, max: usize, bytes_max: usize) -> (Vec<(Vec<u8>, Target)>, Option<u64>) {
    let (catalog, database) = (&call.server.catalog, call.session.database);
    let mut found = Vec::new();
    if cursor == 0 && database == 0 {
        let guards = catalog.guards().iter();
        found.extend(guards.map(|guard| (guard.name.clone(), Target::Guard(Arc::clone(guard)))));
    }
    let Some(own) = catalog.own() else { return (found, None) };
    let (filters, next) = own.filters.page(database, cursor, max, bytes_max);
    let filters = filters.into_iter().filter(|(name, _)| catalog.guard(database, name).is_none());
    found.extend(filters.map(|(name, filter)| (name, Target::Filter(filter))));
    (found, next)
}

/// `RANDOMKEY`: not random, but the first. Clients use it to see whether there is any.
pub fn any(call: &mut Call<'_>) {
    let mut next = Some(0);
    while let Some(cursor) = next {
        let (page, rest) = page(call, cursor, SCAN_COUNT, PAGE_BYTES_MAX);
        if let Some((name, _)) = page.first() {
            return call.replies.bulk(name);
        }
        next = rest;
    }
    call.replies.null();
}

/// `FLUSHDB [ASYNC | SYNC]`
pub fn flush_database(call: &mut Call<'_>) {
    flush(call, Some(call.session.database));
}

/// `FLUSHALL [ASYNC | SYNC]`
pub fn flush_all(call: &mut Call<'_>) {
    flush(call, None);
}

/// Guards stay: they belong to whoever started the server.
fn flush(call: &mut Call<'_>, database: Option<u8>) {
    if call.args.len() > 2 || call.args.len() == 2 && !call.is(1, "ASYNC") && !call.is(1, "SYNC") {
        return call.replies.error("ERR syntax error");
    }
    let Some(filters) = call.changeable(1..1) else { return };
    let flushed = filters.flush(database);
    call.done(flushed);
}

/// `SELECT number`
pub fn select(call: &mut Call<'_>) {
    match integer(call.arg(1)) {
        Some(number) => match u8::try_from(number) {
            Ok(database)
                if database < DATABASES && (database == 0 || call.server.catalog.own().is_some()) =>
            {
                call.session.select(database);
                call.replies.simple("OK");
            }
            _ => call.replies.error("ERR DB index is out of range"),
        },
        None => call.replies.error("ERR value is not an integer or out of range"),
    }
}

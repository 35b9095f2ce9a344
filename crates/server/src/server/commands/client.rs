//! `CLIENT`: this connection, and the others.

use super::super::clients::Client;
use super::super::command::Call;
use super::super::users::DEFAULT;
use super::numbers::integer;
use super::session::{is_shown, set_name};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// `CLIENT ID | GETNAME | SETNAME | SETINFO | INFO | LIST | KILL | NO-EVICT | NO-TOUCH`
pub fn client(call: &mut Call<'_>) {
    match call.args {
        [_, word] if word.eq_ignore_ascii_case(b"ID") => call.replies.int(call.session.client.id),
        [_, word] if word.eq_ignore_ascii_case(b"GETNAME") => {
            let name = call.session.client.text().name.clone();
            if name.is_empty() { call.replies.null() } else { call.replies.bulk(name) }
        }
        [_, word] if word.eq_ignore_ascii_case(b"INFO") => {
            let mut text = String::new();
            describe(&call.session.client, &mut text);
            call.replies.text(&text);
        }
        [_, word, rest @ ..] if word.eq_ignore_ascii_case(b"LIST") => list(call, rest),
        [_, word, rest @ ..] if word.eq_ignore_ascii_case(b"KILL") => kill(call, rest),
        [_, word, name] if word.eq_ignore_ascii_case(b"SETNAME") => {
            if set_name(call, name) {
                call.replies.simple("OK");
            }
        }
        [_, word, field, value] if word.eq_ignore_ascii_case(b"SETINFO") => set_info(call, field, value),
        // Nothing is evicted, and no filter is remembered for being used.
        [_, word, _] if word.eq_ignore_ascii_case(b"NO-EVICT") || word.eq_ignore_ascii_case(b"NO-TOUCH") => {
            if call.is(2, "ON") || call.is(2, "OFF") {
                call.replies.simple("OK")
            } else {
                call.replies.error("ERR syntax error")
            }
        }
        _ => call.unknown_subcommand(),
    }
}

fn set_info(call: &mut Call<'_>, field: &[u8], value: &[u8]) {
    if !is_shown(value, 128) {
        return call
            .replies
            .error("ERR the value cannot contain spaces, newlines or special characters, nor be long");
    }
    {
        let mut text = call.session.client.text();
        if field.eq_ignore_ascii_case(b"LIB-NAME") {
            text.library = value.to_vec();
        } else if field.eq_ignore_ascii_case(b"LIB-VER") {
            text.library_version = value.to_vec();
        } else {
            drop(text);
            let text = format!("ERR Unrecognized option '{:.128}'", field.escape_ascii().to_string());
            return call.replies.error(&text);
        }
    }
    call.replies.simple("OK");
}

/// One line about a client, in the fields of Redis that have a meaning here.
fn describe(client: &Client, text: &mut String) {
    let says = client.text().clone();
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let _ = writeln!(
        text,
        "id={} addr={} name={} age={} idle={} db={} resp={} tot-mem={} user={} lib-name={} lib-ver={}",
        client.id,
        client.address_text(),
        shown(&says.name),
        client.since.elapsed().as_secs(),
        client.idle().as_secs(),
        client.database.load(Relaxed),
        if client.is_resp3.load(Relaxed) { 3 } else { 2 },
        client.held.load(Relaxed),
        if says.user.is_empty() { DEFAULT } else { &says.user },
        shown(&says.library),
        shown(&says.library_version),
    );
}

/// `CLIENT LIST [TYPE normal] [ID id …]`
fn list(call: &mut Call<'_>, options: &[&[u8]]) {
    let all = call.server.clients.all();
    let wanted: Vec<Arc<Client>> = match options {
        [] => all,
        [word, kind] if word.eq_ignore_ascii_case(b"TYPE") => {
            if kind.eq_ignore_ascii_case(b"NORMAL") {
                all
            } else {
                Vec::new()
            }
        }
        [word, ids @ ..] if word.eq_ignore_ascii_case(b"ID") && !ids.is_empty() => {
            let ids: Option<BTreeSet<i64>> = ids.iter().map(|id| integer(id)).collect();
            let Some(ids) = ids else { return call.replies.error("ERR Invalid client ID") };
            let is_meant = |client: &Arc<Client>| ids.contains(&i64::try_from(client.id).unwrap_or(0));
            all.into_iter().filter(is_meant).collect()
        }
        _ => return call.replies.error("ERR syntax error"),
    };
    let mut text = String::new();
    wanted.iter().for_each(|client| describe(client, &mut text));
    call.replies.text(&text);
}

/// `CLIENT KILL address`, or `CLIENT KILL [ID id] [ADDR address] [SKIPME yes | no] …`
fn kill(call: &mut Call<'_>, options: &[&[u8]]) {
    if options.is_empty() {
        return call.wrong_arity("CLIENT|KILL");
    }
    let mine = call.session.client.id;
    let address_of = |client: &Client| client.address_text().into_bytes();
    if let [address] = options {
        let found = call.server.clients.all().into_iter().find(|client| address_of(client) == *address);
        return match found {
            Some(client) if end(call, &client, mine) => call.replies.simple("OK"),
            _ => call.replies.error("ERR No such client"),
        };
    }
    let (mut id, mut address, mut spares_me) = (None, None, true);
    for option in options.chunks(2) {
        match option {
            [word, value] if word.eq_ignore_ascii_case(b"ID") => match integer(value) {
                Some(number @ 1..) => id = u64::try_from(number).ok(),
                _ => return call.replies.error("ERR client-id should be greater than 0"),
            },
            [word, value] if word.eq_ignore_ascii_case(b"ADDR") => address = Some(*value),
            [word, value] if word.eq_ignore_ascii_case(b"SKIPME") && value.eq_ignore_ascii_case(b"YES") => {
                spares_me = true;
            }
            [word, value] if word.eq_ignore_ascii_case(b"SKIPME") && value.eq_ignore_ascii_case(b"NO") => {
                spares_me = false;
            }
            _ => return call.replies.error("ERR syntax error"),
        }
    }
    let is_meant = |client: &Client| {
        id.is_none_or(|id| client.id == id)
            && address.is_none_or(|address| address_of(client) == address)
            && !(spares_me && client.id == mine)
    };
    let meant = call.server.clients.all().into_iter().filter(|client| is_meant(client));
    let ended = meant.filter(|client| end(call, client, mine)).count();
    call.replies.int(ended as u64);
}

/// Disconnects a client, and says whether this did it: one that is still listed may be on its way out. A
/// client that ends itself gets its reply first.
fn end(call: &mut Call<'_>, client: &Client, mine: u64) -> bool {
    if client.id == mine {
        call.session.is_over = true;
        return true;
    }
    client.kill()
}

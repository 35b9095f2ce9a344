//! The commands about one connection.

use super::super::command::Call;
use super::super::users::DEFAULT;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// `PING [message]`
pub fn ping(call: &mut Call<'_>) {
    match call.args.len() {
        1 => call.replies.simple("PONG"),
        2 => call.replies.bulk(call.arg(1)),
        _ => call.wrong_arity("ping"),
    }
}

/// `ECHO message`
pub fn echo(call: &mut Call<'_>) {
    call.replies.bulk(call.arg(1));
}

/// `QUIT`
pub fn quit(call: &mut Call<'_>) {
    call.session.is_over = true;
    call.replies.simple("OK");
}

/// `RESET`
pub fn reset(call: &mut Call<'_>) {
    set_version(call, false);
    {
        let mut text = call.session.client.text();
        text.name.clear();
        text.user.clear();
    }
    call.session.user = call.server.settings.users.unauthenticated();
    call.session.unknown_since = Instant::now();
    call.session.select(0);
    call.session.watched.clear();
    call.replies.simple("RESET");
}

fn set_version(call: &mut Call<'_>, resp3: bool) {
    call.replies.resp3 = resp3;
    call.session.client.is_resp3.store(resp3, Relaxed);
}

/// `AUTH [user] password`
pub fn auth(call: &mut Call<'_>) {
    let (user, password) = match call.args {
        [_, password] => (DEFAULT.as_bytes(), *password),
        [_, user, password] => (*user, *password),
        _ => return call.replies.error("ERR syntax error"),
    };
    if call.server.settings.users.unauthenticated().is_some() && call.args.len() == 2 {
        call.replies.error(
            "ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        );
    } else if log_in(call, user, password) {
        call.replies.simple("OK");
    } else {
        call.replies.error(WRONG_PASSWORD);
    }
}

/// Makes the client this user if the password is right.
fn log_in(call: &mut Call<'_>, user: &[u8], password: &[u8]) -> bool {
    if let Some(user) = call.server.settings.users.log_in(user, password) {
        call.session.client.text().user = user.name.clone();
        call.session.user = Some(user);
        call.session.refused_logins = 0;
        return true;
    }
    call.session.refused_logins += 1;
    call.session.has_to_wait = true;
    let total = call.server.counters.refused_logins.fetch_add(1, Relaxed) + 1;
    let client = &call.session.client;
    tracing::warn!(client = client.id, address = client.address_text(), total, "wrong user name or password");
    false
}

/// `HELLO [version [AUTH user password] [SETNAME name]]`
pub fn hello(call: &mut Call<'_>) {
    let mut resp3 = call.replies.resp3;
    if call.args.len() > 1 {
        resp3 = match call.arg(1) {
            b"2" => false,
            b"3" => true,
            number if number.iter().all(u8::is_ascii_digit) => {
                return call.replies.error("NOPROTO unsupported protocol version");
            }
            _ => return call.replies.error("ERR Protocol version is not an integer or out of range"),
        };
    }
    let mut options = call.args.get(2..).unwrap_or_default();
    let (mut login, mut name) = (None, None);
    loop {
        options = match options {
            [] => break,
            [word, user, password, rest @ ..] if word.eq_ignore_ascii_case(b"AUTH") => {
                login = Some((*user, *password));
                rest
            }
            [word, value, rest @ ..] if word.eq_ignore_ascii_case(b"SETNAME") => {
                name = Some(*value);
                rest
            }
            [word, ..] => {
                let text =
                    format!("ERR Syntax error in HELLO option '{:.128}'", word.escape_ascii().to_string());
                return call.replies.error(&text);
            }
        };
    }
    if let Some((user, password)) = login
        && !log_in(call, user, password)
    {
        return call.replies.error(WRONG_PASSWORD);
    }
    if call.session.user.is_none() {
        return call.replies.error(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> \
             option can be used to authenticate the client and select the RESP protocol version at the same time",
        );
    }
    if let Some(name) = name
        && !set_name(call, name)
    {
        return;
    }
    set_version(call, resp3);
    let id = call.session.client.id;
    let replies = &mut *call.replies;
    replies.map(7);
    replies.bulk("server");
    replies.bulk("sidebloom");
    replies.bulk("version");
    replies.bulk(env!("CARGO_PKG_VERSION"));
    replies.bulk("proto");
    replies.int(if resp3 { 3 } else { 2 });
    replies.bulk("id");
    replies.int(id);
    replies.bulk("mode");
    replies.bulk("standalone");
    replies.bulk("role");
    replies.bulk("master");
    replies.bulk("modules");
    replies.array(0);
}

/// Names the connection, or replies with an error.
pub fn set_name(call: &mut Call<'_>, name: &[u8]) -> bool {
    let is_fine = is_shown(name, 1024);
    if is_fine {
        call.session.client.text().name = name.to_vec();
    } else {
        call.replies.error("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    is_fine
}

/// Whether it can stand in a line of `CLIENT LIST`.
pub fn is_shown(text: &[u8], len_max: usize) -> bool {
    text.len() <= len_max && text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

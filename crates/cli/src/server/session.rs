//! The commands about one connection.

use super::command::Call;

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

/// `SELECT number`
pub fn select(call: &mut Call<'_>) {
    match std::str::from_utf8(call.arg(1)).ok().and_then(|number| number.parse::<i32>().ok()) {
        Some(0) => call.replies.simple("OK"),
        Some(_) => call.replies.error("ERR DB index is out of range"),
        None => call.replies.error("ERR value is not an integer or out of range"),
    }
}

/// `RESET`
pub fn reset(call: &mut Call<'_>) {
    call.replies.resp3 = false;
    call.session.name.clear();
    call.session.is_allowed = call.server.settings.password.is_none();
    call.replies.simple("RESET");
}

/// `AUTH [user] password`
pub fn auth(call: &mut Call<'_>) {
    let (user, password) = match call.args {
        [_, password] => (&b"default"[..], *password),
        [_, user, password] => (*user, *password),
        _ => return call.replies.error("ERR syntax error"),
    };
    if call.server.settings.password.is_none() && call.args.len() == 2 {
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

/// Without a configured password, the default user may log in with any password, as in Redis.
fn log_in(call: &mut Call<'_>, user: &[u8], password: &[u8]) -> bool {
    let is_right = call.server.settings.password.is_none() || call.server.is_password(password);
    let is_allowed = is_right && user == b"default";
    if is_allowed {
        call.session.is_allowed = true;
    } else {
        tracing::info!(client = call.session.id, "wrong password, or a user other than \"default\"");
    }
    is_allowed
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
    if !call.session.is_allowed {
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
    call.replies.resp3 = resp3;
    let id = call.session.id;
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
fn set_name(call: &mut Call<'_>, name: &[u8]) -> bool {
    let is_fine = name.len() <= 1024 && name.iter().all(|byte| (b'!'..=b'~').contains(byte));
    if is_fine {
        call.session.name = name.to_vec();
    } else {
        call.replies.error("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    is_fine
}

/// `CLIENT SETNAME | GETNAME | SETINFO | ID | INFO | NO-EVICT | NO-TOUCH`: sent on connecting.
pub fn client(call: &mut Call<'_>) {
    match call.args {
        [_, word] if word.eq_ignore_ascii_case(b"ID") => call.replies.int(call.session.id),
        [_, word] if word.eq_ignore_ascii_case(b"GETNAME") => {
            if call.session.name.is_empty() {
                call.replies.null()
            } else {
                call.replies.bulk(&call.session.name)
            }
        }
        [_, word] if word.eq_ignore_ascii_case(b"INFO") => {
            let name = String::from_utf8_lossy(&call.session.name);
            let resp = if call.replies.resp3 { 3 } else { 2 };
            let line = format!("id={} name={name} db=0 resp={resp}\n", call.session.id);
            call.replies.text(&line);
        }
        [_, word, name] if word.eq_ignore_ascii_case(b"SETNAME") => {
            if set_name(call, name) {
                call.replies.simple("OK");
            }
        }
        // Has a meaning only where connections are listed or data is evicted.
        [_, word, _, _] if word.eq_ignore_ascii_case(b"SETINFO") => call.replies.simple("OK"),
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
